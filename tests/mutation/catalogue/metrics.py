"""Mutants of metrics: who reads them, that no counter falls, and that no name breaks them."""

from tests.mutation.mutant import Mutant

SCRAPE = "tests/unit/transports/hub/followers/test_scrape.py"
CONFIG = "tests/unit/followers/metrics/test_config.py"
OBSERVE = "tests/unit/integrations/shell_effects/test_observe.py"
REPORT = "tests/unit/followers/metrics/test_report.py"
LANDING = "tests/unit/integrations/git/gate/test_check_landing.py"

MUTANTS = [
    Mutant(
        "a token of one project scrapes the tenant",
        "coord.transports.hub.followers.scrape:scrape",
        "identity.token is not None and identity.token.project",
        "False",
        (f"{SCRAPE}::test_a_token_reads_the_counts_of_its_tenant",),
    ),
    Mutant(
        "a token scrapes another tenant",
        "coord.transports.hub.followers.scrape:scrape",
        'identity.check_tenant(request.query.get("tenant", ""))',
        'request.query.get("tenant", "")',
        (f"{SCRAPE}::test_a_token_reads_the_counts_of_its_tenant",),
    ),
    Mutant(
        "a counter falls after a restart",
        "coord.transports.hub.followers.scrape:_counted",
        "run.offset >= _counted_from[follower]",
        "True",
        (f"{SCRAPE}::test_counts_that_lag_behind_are_not_shown",),
    ),
    Mutant(
        "any text is a prefix",
        "coord.followers.metrics.config:check_prefix",
        "isinstance(prefix, str) and _PREFIX.fullmatch(prefix)",
        "isinstance(prefix, str)",
        (f"{CONFIG}::test_what_would_break_a_name_is_refused",),
    ),
    Mutant(
        "restored files are not recorded",
        "coord.integrations.shell_effects.attribution:Attribution._record",
        "if not back:",
        "if back:",
        (f"{OBSERVE}::test_overwrites_are_counted_where_they_were_stopped",),
    ),
    Mutant(
        "refused commits are not recorded",
        "coord.integrations.git.gate.hooks:_report",
        "if gate.shared:",
        "if True:",
        (f"{LANDING}::test_refused_commits_are_recorded",),
    ),
    Mutant(
        "a refusal of a hook counts as one of a lock",
        "coord.followers.metrics.counts:Counts._count_lock",
        'details.get("use") == HOOK',
        "False",
        (f"{OBSERVE}::test_overwrites_are_counted_where_they_were_stopped",),
    ),
    Mutant(
        "a report starts too late",
        "coord.followers.metrics.report:_first_since",
        "entries[0].at < from_ms",
        "True",
        (f"{REPORT}::test_a_report_starts_at_the_first_entry_of_its_time",),
    ),
    Mutant(
        "a report prints names as they are",
        "coord.transports.cli.handlers.awareness.report:_lines",
        "visible(each.resource)",
        "each.resource",
        (f"{REPORT}::test_a_report_fits_on_one_screen_whatever_names_say",),
    ),
]
