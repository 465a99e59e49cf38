"""`coord why` from end to end."""

from coord.core.why.commands import Reason, Remedy, WhyReply
from coord.transports.cli.handlers.awareness.why import drawn
from tests.support.cli import Coord

NOW = 1_700_000_000_000


def test_a_task_a_lock_and_an_agent_are_explained(coord: Coord) -> None:
    assert coord("ann lock src/app.py --reason login").code == 0
    assert coord("bob task add T-1 --files src/app.py").code == 0
    assert coord("bob task add T-2 --depends-on T-1").code == 0
    task = coord("bob why task T-2")
    assert (task.code, task.line) == (0, "T-2 waits for other tasks")
    assert [reason["depth"] for reason in task.answer["reasons"]] == [0, 1]
    assert task.answer["remedy"]["line"].startswith("coord preempt file:src/app.py ")
    lock = coord("bob why lock src/app.py")
    assert lock.line == "src/app.py is held by ann"
    assert lock.answer["reasons"][0]["text"].endswith('): "login"')
    assert coord("ann why agent").line == "ann is idle"
    assert coord("bob why agent s-ann").line == "ann is idle"
    free = coord("bob why lock src/other.py").answer
    assert (free["answer"], free["reasons"], "remedy" in free) == ("nobody holds src/other.py", [], False)


def test_a_name_is_needed_and_has_to_exist(coord: Coord) -> None:
    assert coord("ann why task").code == 2
    missing = coord("ann why task T-9")
    assert (missing.code, "no task T-9" in missing.line) == (4, True)


def test_links_stand_below_what_they_explain_with_their_times() -> None:
    reasons = [
        Reason(kind="task", text="it depends on a", depth=0),
        Reason(kind="claim", text="ann works on a", depth=1, since_ms=NOW - 5_000, until_ms=NOW + 60_000),
    ]
    reply = WhyReply(NOW, "b waits", reasons, Remedy("Answer ann", ["decide", "q1", "it's ok"]))
    assert drawn(reply, 80).splitlines() == [
        "  it depends on a",
        "    ann works on a (for 5s, 1m left)",
        "To free it: Answer ann",
        "  coord decide q1 'it'\"'\"'s ok'",
    ]
