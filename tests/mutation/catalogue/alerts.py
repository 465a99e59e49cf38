"""Mutants of alerts: silent in every signal, raised once, closed with an outcome, and by a person."""

from tests.mutation.mutant import Mutant

_CHECK = "tests/unit/core/alerts/test_check.py"
_CLOSE = "tests/unit/core/alerts/test_close.py"
_PRECISION = "tests/unit/core/alerts/test_precision.py"
_RULES = "tests/unit/core/alerts/test_rules.py"
_STUCK = "tests/unit/core/alerts/test_stuck.py"
_STUCK_RULE = "coord.core.alerts.stuck:is_stuck"
_BUSY = "coord.core.alerts.stuck:is_busy"

MUTANTS = [
    Mutant(
        "a file that was overwritten and restored counts as edited once",
        "coord.core.alerts.rules:_find_duplicates",
        "yield from _find_overwrites(tx, world, now)",
        "pass",
        (f"{_RULES}::test_a_file_that_was_overwritten_and_restored_was_edited_twice",),
    ),
    Mutant(
        "what processes did last does not count",
        _STUCK_RULE,
        "now - max(session.beat_ms, watch.busy_ms) >= stuck_ms and ",
        "",
        (f"{_STUCK}::test_activity_of_processes_counts_from_its_end",),
    ),
    Mutant(
        "a tool call under way is no life",
        _STUCK_RULE,
        "if calls or watch is None",
        "if watch is None",
        (f"{_STUCK}::test_a_tool_call_under_way_is_life_for_half_an_hour",),
    ),
    Mutant(
        "a tool call is life for ever",
        _STUCK_RULE,
        "calls and watch is not None and now - watch.busy_ms < stuck_ms",
        "calls",
        (f"{_STUCK}::test_a_tool_call_under_way_is_life_for_half_an_hour",),
    ),
    Mutant(
        "a long build is stuck",
        _STUCK_RULE,
        "calls and watch is not None and now - watch.busy_ms < stuck_ms",
        "False",
        (f"{_STUCK}::test_a_long_build_is_life_for_as_long_as_it_computes",),
    ),
    Mutant(
        "processes that nobody looked at are quiet",
        _STUCK_RULE,
        " and measured_ms >= stuck_ms - 2 * INTERVAL_MS",
        "",
        (f"{_STUCK}::test_samples_must_cover_the_silence",),
    ),
    Mutant(
        "unseen processes are quiet",
        _STUCK_RULE,
        "if silent_ms >= prompting_ms:",
        "if silent_ms >= stuck_ms:",
        (f"{_STUCK}::test_unseen_processes_may_call_a_model",),
    ),
    Mutant(
        "processor time is no life",
        _BUSY,
        "after.cpu_ms - before.cpu_ms >= CPU_SHARE_BUSY * elapsed_ms",
        "False",
        (f"{_STUCK}::test_busy_processes_are_life",),
    ),
    Mutant(
        "what a model answers is no life",
        _BUSY,
        "or after.read_bytes - before.read_bytes >= READ_BYTES_BUSY * minutes",
        "",
        (f"{_STUCK}::test_busy_processes_are_life",),
    ),
    Mutant(
        "a transcript that grows is no life",
        _BUSY,
        "or after.written_bytes - before.written_bytes >= WRITTEN_BYTES_BUSY * minutes",
        "",
        (f"{_STUCK}::test_busy_processes_are_life",),
    ),
    Mutant(
        "an agent that asks a person is stuck",
        "coord.core.alerts.stuck:Running",
        " and not waits_for_person",
        "",
        (f"{_STUCK}::test_an_agent_that_waits_is_not_stuck",),
    ),
    Mutant(
        "a call that never ended is idleness",
        "coord.core.alerts.stuck:Running",
        ' or (bool(self.session.calls) and self.state == "idle")',
        "",
        (f"{_STUCK}::test_a_call_that_never_ended_is_no_idleness",),
    ),
    Mutant(
        "the sample of another process counts",
        "coord.core.alerts.stuck:update_watches",
        "taken is not None and taken.process == session.process",
        "taken is not None",
        (f"{_STUCK}::test_a_sample_of_another_process_says_nothing",),
    ),
    Mutant(
        "an agent that went on was stuck",
        "coord.core.alerts.rules:_end_stuck",
        "(_right if long else _wrong)",
        "_right",
        (f"{_STUCK}::test_it_went_on_by_itself",),
    ),
    Mutant(
        "the same alert is raised again",
        "coord.core.alerts.check:Book.may_raise",
        "name not in self._open and ",
        "",
        (f"{_CHECK}::test_one_alert_for_a_rule_and_a_subject",),
    ),
    Mutant(
        "an alert comes back within its interval",
        "coord.core.alerts.check:Book.may_raise",
        " and rested",
        "",
        (f"{_CHECK}::test_not_twice_within_an_interval",),
    ),
    Mutant(
        "alerts are kept without a limit",
        "coord.core.alerts.check:Book.raise_alert",
        "if len(self._kept) > KEPT_MAX:",
        "if False:",
        (f"{_CHECK}::test_a_hundred_are_kept",),
    ),
    Mutant(
        "a muted rule still warns",
        "coord.core.alerts.check:shown_severity",
        "Severity.INFO if rules.get(alert.rule, RuleRecord()).muted else alert.severity",
        "alert.severity",
        (f"{_PRECISION}::test_a_rule_that_is_wrong_too_often_mutes_itself_and_comes_back",),
    ),
    Mutant(
        "a rule is never muted",
        "coord.core.alerts.precision:with_outcome",
        "muted=wrong > WRONG_MAX",
        "muted=False",
        (f"{_PRECISION}::test_a_record_counts_everything_and_judges_the_newest",),
    ),
    Mutant(
        "a token closes the alerts of another project",
        "coord.core.alerts.close:close_alert",
        'if limits is not None and limits.project not in ("", alert.project):',
        "if False:",
        (f"{_CLOSE}::test_a_token_closes_what_it_covers",),
    ),
]
