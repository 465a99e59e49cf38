"""Close an alert: only people, with an outcome, which corrects that of the rule."""

import pytest

from coord.core.alerts.commands import CloseAlert
from coord.core.errors import Invalid, NotFound, Refused
from coord.core.identity import Caller
from coord.core.sessions.commands import UpdateSession
from coord.core.tokens.commands import CreateToken
from coord.core.tokens.schema import Role
from tests.support.alert_harness import AlertHarness


@pytest.fixture
def harness() -> AlertHarness:
    harness = AlertHarness()
    harness.start("ann")
    caller = Caller("ann", agent="ann", project="p")
    harness.engine.call(UpdateSession(caller=caller, merge_blob={"context_percent": 90}))
    harness.look()
    return harness


def test_a_person_closes_it(harness: AlertHarness) -> None:
    closed = harness.close("a1", right=False, note="it compacts now")
    assert (closed.outcome, closed.closed_by, closed.note) == ("false", "user-eve", "it compacts now")
    (event,) = harness.events("alert.closed")
    assert (event["outcome"], event["by"], event["project"]) == ("false", "user-eve", "p")
    assert harness.open() == []


def test_the_same_outcome_again_changes_nothing(harness: AlertHarness) -> None:
    harness.close("1", right=True)
    assert harness.written_by(lambda: harness.close("a1", right=True)) == []


def test_a_later_outcome_replaces_the_first(harness: AlertHarness) -> None:
    first = harness.close("a1", right=True)
    harness.pass_time(60_000)
    second = harness.close("a1", right=False)
    assert (second.outcome, second.closed_ms) == ("false", first.closed_ms)
    pressure = next(each for each in harness.listed().rules if each.rule == "context_pressure")
    assert (pressure.right, pressure.wrong) == (0, 1)


def test_an_agent_closes_none(harness: AlertHarness) -> None:
    """Neither its own alert nor that of others."""
    for name in ("ann", "bob"):
        with pytest.raises(Refused, match="is an agent; only a person closes alerts"):
            harness.engine.call(CloseAlert(caller=harness.who(name), id="a1", right=False))
    assert len(harness.open()) == 1


@pytest.mark.parametrize("name", ["a2", "a0", "q1", "", "a1 ", "a99999999999"])
def test_an_unknown_alert(harness: AlertHarness, name: str) -> None:
    with pytest.raises(NotFound, match="there is no alert"):
        harness.close(name, right=True)


@pytest.mark.parametrize("note", ["two\nlines", "\x1b[31m", "x" * 501])
def test_a_note_is_one_line(harness: AlertHarness, note: str) -> None:
    with pytest.raises(Invalid, match="one line"):
        harness.close("a1", right=True, note=note)


@pytest.mark.parametrize(
    ("role", "project", "session", "error"),
    [
        (Role.OPERATE, "", "", None),
        (Role.OPERATE, "p", "", None),
        (Role.OPERATE, "q", "", NotFound),
        (Role.OPERATE, "", "ann", Refused),
        (Role.VIEW, "", "", Refused),
    ],
)
def test_a_token_closes_what_it_covers(
    harness: AlertHarness, role: Role, project: str, session: str, error: type[Exception] | None
) -> None:
    person = Caller("user-eve", person=True, terminal=True)
    create = CreateToken(
        caller=person, hash="0" * 64, role=role, project=project, session=session, label="phone"
    )
    token = harness.engine.call(create).id
    command = CloseAlert(caller=Caller("", token=token), id="a1", right=True)
    if error is None:
        assert harness.engine.call(command).closed_by == "phone"
        return
    with pytest.raises(error):
        harness.engine.call(command)
    assert len(harness.open()) == 1
