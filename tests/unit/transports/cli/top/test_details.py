"""Why something waits: chains, cycles and a mesh of waits."""

import itertools

from coord.core.lifecycle.commands import Overview, QueueCounts
from coord.core.locks.commands import Blocker, SessionWait
from coord.core.plans.commands import QueueReply
from coord.core.sessions.commands import SessionInfo
from coord.core.sessions.schema import Liveness
from coord.sdk.client.client import connect
from coord.transports.cli.top.details import details
from coord.transports.cli.top.sections import Item, sections
from coord.transports.cli.top.snapshot import Snapshot


def session(name: str, liveness: Liveness = Liveness.LIVE, claims: int = 0) -> SessionInfo:
    texts = ("", "", "", "", "", "", 0, "", "", "")
    return SessionInfo(name, liveness, "working", *texts, 1, 1, {}, {}, {}, claims=claims)


def wait(name: str, *behind: str, cycle: tuple[str, ...] = ()) -> SessionWait:
    blockers = [Blocker(each, "lock", f"file:{each}.py") for each in behind]
    return SessionWait(
        name, name, "lock", [f"file:{each}.py" for each in behind], 1, 2.0, blockers, cycle=list(cycle)
    )


def snapshot(*waits: SessionWait, sessions: tuple[SessionInfo, ...] = ()) -> Snapshot:
    names = dict.fromkeys(
        [each.session for each in waits] + [b.session for each in waits for b in each.blockers]
    )
    found = Overview(10_000, [*(session(name) for name in names), *sessions], 0, QueueCounts())
    return Snapshot("shop", "me", found, [], waits, QueueReply([], [], []), [], [], [], 0, 0.0)


def shown(taken: Snapshot, name: str) -> list[str]:
    with connect("memory:", session="me", project="shop") as client:
        return details(client, taken, Item("session", name, {}, taken.session(name)))


def test_a_chain_is_followed_to_its_end() -> None:
    lines = shown(snapshot(wait("a", "b"), wait("b", "c")), "a")
    chain = lines[lines.index("WHAT DOES a WAIT FOR?") + 1 :]
    assert chain[0] == "   a waits for b.py, 2s"
    assert chain[1] == "      behind b: lock file:b.py"
    assert chain[2] == "         b waits for c.py, 2s"
    assert chain[4].startswith("               c waits for nothing: working, live")


def test_a_cycle_ends_and_is_named() -> None:
    """It also needs a person, once."""
    cycle = ("a", "b")
    taken = snapshot(wait("a", "b", cycle=cycle), wait("b", "a", cycle=cycle))
    assert any("and so on: a deadlock of a → b → a" in line for line in shown(taken, "a"))
    (needs, *_) = sections(taken, sort="name", now=0.0)
    assert [(item.row["what"], item.row["about"]) for item in needs.items] == [("deadlock", "a and b")]


def test_a_mesh_of_waits_is_shown_once() -> None:
    """Eight layers of sessions that all wait for the next layer: the lines grow with the waits only."""
    layers = [[f"{layer}-{number}" for number in range(3)] for layer in range(8)]
    waits = [wait(name, *below) for above, below in itertools.pairwise(layers) for name in above]
    lines = shown(snapshot(*waits), "0-0")
    assert len(lines) < 200
    assert any("waits, too: see above" in line for line in lines)


def test_sessions_without_a_sign_of_life_need_a_person_if_they_keep_something() -> None:
    dead = session("d", Liveness.DEAD, claims=2)
    taken = snapshot(sessions=(dead, session("e", Liveness.DEAD), session("f", Liveness.HUNG, claims=1)))
    (needs, *_) = sections(taken, sort="name", now=0.0)
    assert [(item.row["what"], item.row["about"]) for item in needs.items] == [
        ("dead", "d has 2 tasks"),
        ("hung", "f has 1 task"),
    ]
    assert any("coord dereg d" in line for line in shown(taken, "d"))
