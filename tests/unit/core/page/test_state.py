"""What entries make of the state of the page."""

import json
from typing import Any

from coord.core.page.rules import RECENT
from coord.core.page.state import PageState, apply_entry


def after(*entries: list[dict[str, Any]], at: int = 1000) -> PageState:
    """Return the state after entries, a second apart."""
    state = PageState()
    for number, events in enumerate(entries, 1):
        apply_entry(state, number, at * number, [json.dumps(each).encode() for each in events])
    return state


BEGAN = {"event": "session.registered", "session": "ada", "agent": "claude", "state": "idle"}
TOOK = {
    "event": "lock.acquired",
    "session": "ada",
    "resource": "file:a.py",
    "agent": "claude",
    "mode": "write",
    "expires_ms": 301000,
}


def test_a_lock_has_its_fence_and_its_time() -> None:
    state = after([BEGAN], [TOOK])
    assert state.tables["locks"] == {
        "ada\nfile:a.py": {
            "session": "ada",
            "resource": "file:a.py",
            "agent": "claude",
            "mode": "write",
            "expires_ms": 301000,
            "fence": 2,
            "since_ms": 2000,
        }
    }
    assert state.tables["sessions"]["ada"]["file"] == "file:a.py"
    assert (state.offset, state.at) == (2, 2000)


def test_a_session_was_seen_at_its_newest_event_and_not_after_its_end() -> None:
    renewed = {"event": "lock.renewed", "session": "ada", "resource": "file:a.py", "expires_ms": 9}
    state = after([BEGAN], [], [renewed])
    assert state.tables["sessions"]["ada"]["seen_ms"] == 3000
    ended = {"event": "session.ended", "session": "ada", "agent": "claude", "end_reason": "dereg"}
    state = after([BEGAN], [ended], [renewed])
    assert state.tables["sessions"] == {}
    assert state.recent["ended"] == [{**ended, "offset": 2, "at": 2000}]


HUNG = {"event": "session.hung", "session": "ada", "silent_s": 999}
LOST = {"event": "lock.released", "session": "ada", "resource": "file:a.py"}
LEARNT = {"event": "message.delivered", "session": "ada", "id": "m1"}


def test_a_session_hangs_until_it_is_heard_of() -> None:
    """What others do to it, and the report itself, are no sign of life."""
    silent: list[dict[str, Any]] = [HUNG, LOST, {**TOOK, "waited_ms": 9}, {**LEARNT, "by": "ida"}]
    state = after([BEGAN], *([each] for each in silent))
    session = state.tables["sessions"]["ada"]
    assert (session["seen_ms"], session["hung_s"]) == (1000, 999)
    for sign in (TOOK, LEARNT, {"event": "file.edited", "session": "ada", "resource": "file:a.py"}):
        heard = after([BEGAN], [HUNG], [sign]).tables["sessions"]["ada"]
        assert heard["seen_ms"] == 3000
        assert "hung_s" not in heard


def test_a_lock_moves_to_a_successor() -> None:
    moved = {
        "event": "lock.moved",
        "session": "ada",
        "resource": "file:a.py",
        "successor": "bob",
        "agent": "x",
    }
    (row,) = after([TOOK], [moved]).tables["locks"].values()
    assert (row["session"], row["agent"], row["fence"]) == ("bob", "x", 1)


def test_a_task_keeps_its_claim_when_its_description_changes() -> None:
    added = {"event": "task.added", "project": "p", "task": "t", "state": "ready", "title": "do it"}
    claimed = {
        "event": "task.claimed",
        "project": "p",
        "task": "t",
        "generation": 1,
        "session": "ada",
        "agent": "claude",
        "lease_ms": 500,
    }
    state = after([added], [claimed], [{**added, "title": "do that"}])
    task = state.tables["tasks"]["p/t"]
    assert (task["title"], task["state"], task["expires_ms"]) == ("do that", "in_progress", 2500)


def test_the_end_of_a_claim_leaves_an_open_task() -> None:
    claimed = {"event": "task.claimed", "project": "p", "task": "t", "session": "ada", "lease_ms": 500}
    ended = {"event": "task.expired", "project": "p", "task": "t", "generation": 1, "session": "ada"}
    task = after([claimed], [ended]).tables["tasks"]["p/t"]
    assert task == {"project": "p", "task": "t", "ended_ms": 2000, "reason": "its lease expired"}


def test_what_a_report_does_not_say_stays() -> None:
    used = {"event": "usage.reported", "session": "ada", "cost": 5, "estimated": 2, "input": 10}
    state = after([BEGAN], [{**used, "context_percent": 40}], [used])
    session = state.tables["sessions"]["ada"]
    found = [session[name] for name in ("cost", "estimated", "input", "context_percent")]
    assert found == [10, 4, 20, 40]


def test_a_list_forgets_its_oldest() -> None:
    sent = [[{"event": "lock.deadlock", "victim": str(number)}] for number in range(RECENT["deadlocks"] + 3)]
    kept = after(*sent).recent["deadlocks"]
    assert ([kept[0]["victim"], kept[-1]["victim"]], len(kept)) == (["3", "52"], RECENT["deadlocks"])


def test_bytes_that_are_no_event_change_nothing() -> None:
    """Whoever has the store may write anything into the log."""
    state = after([TOOK])
    before = PageState(2, 7, state.tables, state.recent)
    hostile = [b"", b"[]", b"{", b'{"event":["lock.released"]}', b'{"event":"lock.released"}', b"[" * 5000]
    apply_entry(state, 2, 7, hostile)
    assert state == before
    wrong = {"event": "task.claimed", "project": 5, "task": ["a", {"b": 1}], "lease_ms": "long"}
    apply_entry(state, 3, 9, [json.dumps(wrong).encode()])
    assert state.tables["tasks"]["/a\n"]["expires_ms"] == 9


def test_an_absurd_number_is_not_added() -> None:
    """A browser could not add it exactly, and Python could not make a float of it."""
    used = {"event": "usage.reported", "session": "ada"}
    amounts: list[dict[str, Any]] = [{**used, "cost": each} for each in (1.5, 10**400, 2**52 + 1, 2)]
    state = after([BEGAN], amounts)
    assert state.tables["sessions"]["ada"]["cost"] == 3.5
