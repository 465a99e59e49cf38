"""The wait-for graph as a tree: who blocks is on top, and a cycle is marked."""

import pytest

from coord.core.locks.commands import Blocker, SessionWait
from coord.transports.cli.table import cells_wide
from coord.transports.cli.waiting.tree import tree
from tests.support.cli import Coord


def wait(session: str, behind: dict[str, str], **fields: object) -> SessionWait:
    """A session that waits for locks of others."""
    blockers = [Blocker(owner, "lock", f"file:{path}") for owner, path in behind.items()]
    wants = [blocker.what for blocker in blockers]
    whole = {"kind": "lock", "wants": wants, "blockers": blockers, "position": 1, "waited_s": 61.0, **fields}
    return SessionWait(session=session, agent="", since_ms=0, **whole)  # type: ignore[arg-type]


def test_a_chain_has_its_cause_on_top() -> None:
    """DLK-2: ann blocks bob, and bob blocks cid."""
    waits = [
        wait("bob", {"ann": "a.py"}),
        wait("cid", {"bob": "b.py"}),
        wait("dan", {"ann": "a.py"}, position=2),
    ]
    assert tree(waits, 80).splitlines() == [
        "ann",
        "├─ bob waits for a.py (position 1, 1m1s)",
        "│  └─ cid waits for b.py (position 1, 1m1s)",
        "└─ dan waits for a.py (position 2, 1m1s)",
    ]


def test_denied_requests_tasks_and_sub_agents_are_marked() -> None:
    """CFL-17: a denied request does not wait."""
    task = SessionWait("eve", "", "task", ["T1"], 0, 5.0, [Blocker("ann", "claim", "T1")])
    waits = [wait("bob", {"ann": "a.py"}, denied=True), wait("kid", {"ann": "a.py"}, parent="cid"), task]
    assert tree(waits, 80).splitlines() == [
        "ann",
        "├─ bob was denied a.py and may ask again (first 1m1s ago)",
        "├─ kid waits for a.py (position 1, 1m1s), sub-agent of cid",
        "└─ eve waits for a task, T1 (5s) behind claim T1",
    ]


def test_a_cycle_is_shown_once_and_marked() -> None:
    """DLK-3: everybody in it waits, so one of them is on top."""
    cycle = ["bob", "ann"]
    waits = [wait("bob", {"ann": "a.py"}, cycle=cycle), wait("ann", {"bob": "b.py"}, cycle=cycle)]
    lines = tree(waits, 200).splitlines()
    assert lines[0] == "ann"
    assert [line.count("DEADLOCK bob → ann → bob") for line in lines] == [0, 1, 1]


@pytest.mark.parametrize("room", [24, 40, 80])
def test_long_names_are_wrapped_and_not_cut(room: int) -> None:
    """Every listing fits, and each name can be read."""
    waits = [wait("s-" + "b" * 30, {"s-" + "a" * 50: "src/" + "long/" * 12 + "x.py"})]
    text = tree(waits, room)
    assert all(cells_wide(line) <= room for line in text.splitlines())
    unwrapped = "".join(text.replace("└─", "").split())
    assert "a" * 50 in unwrapped
    assert "long/" * 12 + "x.py" in unwrapped


def test_nobody_waits() -> None:
    """An empty graph is an empty text."""
    assert tree([], 80) == ""


def test_a_pipe_gets_the_graph_as_json(coord: Coord) -> None:
    """Issue 14: who waits for what, behind whom, since when."""
    coord("ann lock a.py")
    coord("bob lock a.py --no-wait")
    answer = coord("ann waits").answer
    (wait,) = answer["waits"]
    assert (wait["session"], wait["denied"], wait["wants"]) == ("s-bob", True, ["file:a.py"])
    assert wait["blockers"] == [{"session": "s-ann", "by": "lock", "what": "file:a.py"}]
    assert wait["since_at"].endswith("Z")
