"""Mutants of the page's files: what is served, to whom, and under which policy."""

from tests.mutation.mutant import Mutant

TESTS = "tests/unit/transports/hub"
ASSETS = f"{TESTS}/page/test_assets.py"
HUB = "coord.transports.hub"
FOREIGN = "test_another_tenant_of_this_repository_learns_nothing_of_the_machine"
LIMITED = "test_a_limited_token_and_another_tenant_learn_nothing_of_the_machine"

MUTANTS = [
    Mutant(
        "a link in the folder of the page is served",
        f"{HUB}.page.assets:find_assets",
        " and not path.is_symlink()",
        "",
        (f"{ASSETS}::test_a_link_and_an_unknown_type_are_left_out",),
    ),
    Mutant(
        "a file of any type is served",
        f"{HUB}.page.assets:find_assets",
        "path.suffix in TYPES and ",
        "",
        (f"{ASSETS}::test_a_link_and_an_unknown_type_are_left_out",),
        also=(f"{HUB}.page.assets:_asset", "TYPES[suffix]", 'TYPES.get(suffix, "")'),
    ),
    Mutant(
        "the page is served without its policy",
        f"{HUB}.page.assets:asset",
        "if name != INDEX else None",
        "",
        (f"{ASSETS}::test_every_file_is_served_once_it_is_needed[index.html]",),
    ),
    Mutant(
        "a module is served without the lines of its comments",
        f"{HUB}.page.assets:_FOR_READERS",
        '(//.*)?"',
        '(//.*\\n)?"',
        (f"{ASSETS}::test_every_file_is_served_once_it_is_needed[app.js]",),
    ),
    Mutant(
        "a text of a module is taken for a comment",
        f"{HUB}.page.assets:_FOR_READERS",
        "^[ \\t]*(//.*)?",
        "^[ \\t]*|//.*",
        (f"{ASSETS}::test_a_module_means_the_same_as_it_is_served",),
    ),
    Mutant(
        "text may become HTML",
        f"{HUB}.page.assets:CSP",
        "require-trusted-types-for 'script'; ",
        "",
        (f"{ASSETS}::test_the_policy_allows_nothing_inline_and_nothing_foreign",),
    ),
    Mutant(
        "both forms of a file have one ETag",
        f"{HUB}.page.assets:_response",
        "-gzip",
        "",
        (f"{ASSETS}::test_every_file_is_served_once_it_is_needed[app.js]",),
    ),
    Mutant(
        "who refuses gzip gets it",
        f"{HUB}.page.assets:_takes_gzip",
        'quality.replace(" ", "").rstrip("0") not in ("q=", "q=0.")',
        "True",
        (f"{ASSETS}::test_who_does_not_take_gzip_gets_plain_text",),
    ),
    Mutant(
        "every route is as public as the page",
        f"{HUB}.app:App.answer",
        "if handler in self._private",
        "if False",
        (f"{TESTS}/test_app.py::test_no_route_but_the_public_ones_answers_without_a_token",),
    ),
    *(
        Mutant(
            f"{whose} sees what is set up on the machine",
            f"{HUB}.api.this_repository:{rule}",
            old,
            new,
            (f"{TESTS}/api/test_setup.py::{test}",),
        )
        for whose, rule, old, new, test in (
            ("a token of a project", "_is_limited", "token.project or ", "", f"{LIMITED}[/v1/mirrors]"),
            ("a token of a session", "_is_limited", " or token.session", "", f"{LIMITED}[/v1/mirrors]"),
            ("another tenant", "_here", "asking.tenant == UNLIMITED_TENANT and ", "", FOREIGN),
            ("another repository", "_here", " and asking.repository == location.repository_id", "", FOREIGN),
        )
    ),
    Mutant(
        "everybody who looks starts every hook",
        f"{HUB}.api.endpoints.setup:show_hooks",
        "found is None or ",
        "True or ",
        (f"{TESTS}/api/test_setup.py::test_a_viewer_sees_hooks_and_many_who_look_cost_one_check",),
    ),
    Mutant(
        "a token of one project reads the claims of all",
        "coord.core.tasks.queries:get_session_claims",
        "if command.project:",
        "if False:",
        (f"{TESTS}/api/test_other_projects.py::test_no_read_shows_another_project_or_tenant",),
    ),
    Mutant(
        "an event of any depth is read",
        "coord.core.events:_is_flat",
        "levels > 0 and ",
        "",
        ("tests/unit/core/test_events.py",),
    ),
    Mutant(
        "a page adds numbers that no browser can add",
        "coord.core.page.state:_number",
        " and abs(value) <= NUMBER_MAX",
        "",
        ("tests/unit/core/page/test_state.py::test_an_absurd_number_is_not_added",),
    ),
    Mutant(
        "the report of a hang is a sign of life",
        "coord.core.page.state:_says_seen",
        'field is None or (field != "" and not event.get(field))',
        "not field or not event.get(field)",
        ("tests/unit/core/page/test_state.py::test_a_session_hangs_until_it_is_heard_of",),
    ),
    Mutant(
        "all versions of the page have one name",
        f"{HUB}.page.assets:page_id",
        '"".join(each.etag for each in assets().values()).encode()',
        'b""',
        (f"{ASSETS}::test_the_name_of_the_page_is_that_of_its_files",),
    ),
]
