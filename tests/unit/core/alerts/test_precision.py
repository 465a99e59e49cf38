"""The precision of a rule: over its newest alerts, muted below 80 %, and corrected by people."""

from hypothesis import given
from hypothesis import strategies as st

from coord.core.alerts.precision import PRECISION_MIN, WINDOW, WRONG_MAX, precision, with_outcome
from coord.core.alerts.schema import RuleRecord
from coord.core.lifecycle.commands import NeedsYou
from tests.support.alert_harness import AlertHarness


def record_of(outcomes: list[bool]) -> RuleRecord:
    record = RuleRecord()
    for number, right in enumerate(outcomes, 1):
        record = with_outcome(record, number, right)
    return record


@given(st.lists(st.booleans(), max_size=60))
def test_a_record_counts_everything_and_judges_the_newest(outcomes: list[bool]) -> None:
    record, newest = record_of(outcomes), outcomes[-WINDOW:]
    assert (record.right, record.wrong) == (sum(outcomes), len(outcomes) - sum(outcomes))
    assert precision(record) == (sum(newest) / len(newest) if newest else None)
    filled = [*newest, *[True] * (WINDOW - len(newest))]
    assert record.muted == (sum(filled) / WINDOW < PRECISION_MIN)


@given(st.lists(st.booleans(), min_size=1, max_size=WINDOW), st.data())
def test_a_correction_is_as_if_it_had_been_right_at_once(outcomes: list[bool], data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(outcomes)))
    right = data.draw(st.booleans())
    corrected = [*outcomes[: number - 1], right, *outcomes[number:]]
    assert with_outcome(record_of(outcomes), number, right) == record_of(corrected)


def test_a_rule_that_is_wrong_too_often_mutes_itself_and_comes_back() -> None:
    """Its alerts are only information then; right outcomes take the mute away. Both are events."""
    harness = AlertHarness()
    harness.start("ann")
    for _ in range(WRONG_MAX + 1):
        harness.watch(11)
        harness.beat("ann")
        harness.watch(1)
    assert [each["muted"] for each in harness.events("alert.rule_muted")] == [True]
    harness.watch(11)
    (alert,) = harness.listed().alerts
    assert (alert.rule, alert.severity) == ("stuck_agent", "info")
    assert harness.events("alert.raised")[-1]["severity"] == "info"
    assert harness.engine.call(NeedsYou()).needs == []
    stuck = harness.listed().rules[0]
    assert (stuck.rule, stuck.muted, stuck.precision, stuck.wrong) == ("stuck_agent", True, 0.0, 5)
    harness.close("a1", right=True, note="it did hang")
    last = harness.events("alert.rule_muted")[-1]
    assert (last["rule"], last["muted"], last["right"], last["wrong"]) == ("stuck_agent", False, 1, 4)
    assert harness.listed().alerts[0].severity == "warning"
