"""Mutants of the page's files: what is served, to whom, and under which policy."""

from tests.mutation.mutant import Mutant

TESTS = "tests/unit/transports/hub"
ASSETS = f"{TESTS}/page/test_assets.py"
HUB = "coord.transports.hub"

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
        also=(f"{HUB}.page.assets:_asset", "TYPES[path.suffix]", 'TYPES.get(path.suffix, "")'),
    ),
    Mutant(
        "the page is served without its policy",
        f"{HUB}.page.assets:asset",
        "if name != INDEX else None",
        "",
        (f"{ASSETS}::test_every_file_is_served_once_it_is_needed[index.html]",),
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
]
