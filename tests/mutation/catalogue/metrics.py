"""Mutants of metrics: who reads them, that no counter falls, and that no name breaks them."""

from tests.mutation.mutant import Mutant, seeds

SCRAPE = "tests/unit/transports/hub/followers/test_scrape.py"
CONFIG = "tests/unit/followers/metrics/test_config.py"
OBSERVE = "tests/unit/integrations/shell_effects/test_observe.py"
REPORT = "tests/unit/followers/metrics/test_report.py"
LANDING = "tests/unit/integrations/git/gate/test_check_landing.py"
GAUGES = "tests/unit/followers/metrics/test_gauges.py"
TEST_COUNTS = "tests/unit/followers/metrics/test_counts.py"
COUNTS = "coord.followers.metrics.counts:Counts"
TASKS = seeds(3, 7)
LOCKS = tuple(f"tests/simulation/test_lock_simulation.py::test_lock_seed[{seed}]" for seed in (1, 2, 12))
PLANS = tuple(f"tests/simulation/test_plan_simulation.py::test_work_seed[{seed}]" for seed in (2, 3))

MUTANTS = [
    Mutant(
        "a claim that ended stays open for metrics",
        f"{COUNTS}._end_claim",
        "self.claims.pop(key, None)",
        "pass",
        PLANS,
    ),
    Mutant(
        "an expired lease is not counted",
        f"{COUNTS}._end_claim",
        'what == "expired"',
        "False",
        TASKS,
    ),
    Mutant(
        "a failed renewal counts as a renewal",
        f"{COUNTS}._count_task",
        "{SEPARATOR}failed",
        "{SEPARATOR}renewed",
        TASKS,
    ),
    Mutant(
        "a retry of the sweep counts as one of a person",
        f"{COUNTS}._count_task",
        '"retried" if not details["retries"]',
        '"retried"',
        PLANS,
    ),
    Mutant(
        "the last hour has 59 minutes",
        f"{COUNTS}.tasks_per_hour",
        "minute > first",
        "minute > first + 1",
        (f"{GAUGES}::test_tasks_are_counted_as_they_are_now",),
    ),
    Mutant(
        "a bucket ends before its bound",
        f"{COUNTS}._observe",
        "value <= bound",
        "value < bound",
        TASKS,
    ),
    Mutant(
        "every label has its own series",
        f"{COUNTS}._new_numbers",
        "len(series) >= LABELS_MAX",
        "False",
        seeds(20),
    ),
    Mutant(
        "every grant counts as one that waited",
        f"{COUNTS}._count_lock",
        'details.get("waited_ms")',
        '"waited_ms" in details or True',
        LOCKS,
    ),
    Mutant(
        "a session that ended is still there",
        f"{COUNTS}._count_session",
        "self.sessions.pop(session)",
        "self.sessions[session]",
        (f"{GAUGES}::test_utilisation_is_the_share_of_its_time_in_which_an_agent_had_a_claim",),
    ),
    Mutant(
        "a message to a group is no message",
        f"{COUNTS}.apply",
        '"sent_to_group", ',
        "",
        (f"{TEST_COUNTS}::test_simple_events_count_as_a_naive_count_says",),
    ),
    Mutant(
        "a histogram shows its sum as its last bucket",
        "coord.followers.metrics.text:_family_lines",
        "[*numbers[:-2], numbers[-1]]",
        "numbers[:-1]",
        TASKS,
    ),
    Mutant(
        "a claim that runs is no work yet",
        "coord.followers.metrics.gauges:_seconds",
        "max(0, now - since_ms) / 1000",
        "0",
        (*PLANS, f"{GAUGES}::test_utilisation_is_the_share_of_its_time_in_which_an_agent_had_a_claim"),
    ),
    Mutant(
        "a pending task counts as active",
        "coord.followers.metrics.gauges:_of_tasks",
        "active[labels] += found.active",
        "active[labels] += found.active + found.pending",
        TASKS,
    ),
    Mutant(
        "a dead session is live for metrics",
        "coord.followers.metrics.gauges:_of_sessions",
        "session.liveness not in _SILENT",
        "True",
        (f"{GAUGES}::test_live_sessions_held_locks_and_waiters_are_those_of_now",),
    ),
    Mutant(
        "a denied request counts as a waiter",
        "coord.followers.metrics.gauges:_of_locks",
        "len(requests) - denied",
        "len(requests)",
        (f"{GAUGES}::test_live_sessions_held_locks_and_waiters_are_those_of_now",),
    ),
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
