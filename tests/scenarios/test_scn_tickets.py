"""The stories of the first founding document: Beatrice, Otto and Rem share files."""

from pathlib import Path

import pytest

from coord.core.errors import Dead
from coord.core.locks.commands import Outcome
from coord.core.sessions.schema import Liveness
from coord.core.tasks.commands import ClaimTask
from tests.support.store_harness import START_MS, StoreHarness


def claim(harness: StoreHarness, task: str, session: str, lease_s: int) -> tuple[str, int]:
    """Claim a task; return the verdict and the generation."""
    command = ClaimTask(harness.tenant, "shop", task, session=session, agent=session, lease_ms=lease_s * 1000)
    reply = harness.call(command)
    return str(reply.reason), int(reply.claim.generation) if reply.claim else 0


def test_scn_17_a_workflow_of_two_agents(harness: StoreHarness, tmp_path: Path) -> None:
    """SCN-17: Otto blocks on foo.py without a cycle, and has it the moment Beatrice gives it back."""
    code = tmp_path / "foo.py"
    beatrice, otto = harness.actor("beatrice"), harness.actor("otto")
    beatrice.register(status="idle")
    otto.register(status="idle")
    assert claim(harness, "code_gen-1", "beatrice", 300) == ("GRANTED", 1)
    ticket = beatrice.take("file:foo.py", mode="write", reason="code_gen-1")
    beatrice.update(status="working")

    place = otto.wait_for("file:foo.py", mode="write", reason="refactor")
    otto.update(status="blocked")
    assert beatrice.show("otto").state == "blocked"
    assert harness.events("lock.deadlock") == [], "one who waits is no deadlock"

    for second in (10, 20, 30):
        harness.at(second)
        assert beatrice.beat().session_id == "beatrice"
        assert otto.confirm(place).outcome is Outcome.WAITING
    code.write_text("final = True\n")
    beatrice.unlock("file:foo.py", fence=ticket.fence)

    assert harness.holders() == {"file:foo.py": "otto"}, "handed over by the very commit that released it"
    reply = otto.confirm(place)
    assert reply.outcome is Outcome.GRANTED
    assert reply.locks[0].fence > ticket.fence
    assert code.read_text() == "final = True\n"
    (handed,) = [event for event in harness.events("lock.acquired") if event["session"] == "otto"]
    assert handed["waited_ms"] == 30_000
    assert {peer.liveness for peer in beatrice.peers()} == {Liveness.LIVE}


def test_scn_18_the_second_writer_waits(harness: StoreHarness) -> None:
    """SCN-18, LCK-34: A holds write on foo.py; B's write is granted when A releases, and not before."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    ann.take("file:foo.py", mode="write")
    place = bob.wait_for("file:foo.py", mode="write")
    harness.pass_seconds(100)
    waiting = bob.confirm(place)
    assert waiting.outcome is Outcome.WAITING
    assert waiting.holder is not None
    assert (waiting.holder.owner, waiting.holder.expires_in_s, waiting.position) == ("ann", 200, 1)
    ann.unlock("file:foo.py")
    assert bob.confirm(place).outcome is Outcome.GRANTED
    assert harness.holders() == {"file:foo.py": "bob"}


def test_scn_19_a_deadlock_is_broken_at_once(harness: StoreHarness) -> None:
    """Who closes the circle last finds it broken in the same commit, far below 60 s.

    SCN-19, AUD-12, PRF-8.
    """
    beatrice, otto = harness.actor("beatrice"), harness.actor("otto")
    beatrice.take("file:fileA")
    harness.pass_seconds(5)
    lost = otto.take("file:fileB")
    place = beatrice.wait_for("file:fileB")
    harness.pass_seconds(5)
    before = harness.head

    refused = otto.lock("file:fileA", wait_s=100)
    assert refused.outcome is Outcome.DEADLOCK
    assert refused.cycle == ["otto", "beatrice", "otto"]
    assert harness.head == before + 1, "found and resolved by one commit"
    assert harness.holders() == {"file:fileA": "beatrice", "file:fileB": "beatrice"}
    assert beatrice.confirm(place).outcome is Outcome.GRANTED

    (found,) = harness.events("lock.deadlock")
    assert (found["victim"], found["resolved"], found["since_ms"]) == ("otto", True, harness.now)
    (told,) = otto.receive()
    assert (told.kind, told.from_session_id) == ("preempt", "system")
    assert told.blob == {"cycle": ["otto", "beatrice", "otto"]}
    sentence = "Deadlock: you lost fileB to beatrice. Stop editing it, then run: coord lock fileA fileB"
    assert told.subject == f"[System] {sentence}"
    assert not otto.check("file:fileB", fence=lost.fence).free


def test_scn_20_the_lower_priority_is_the_victim(harness: StoreHarness) -> None:
    """SCN-20: Rem (3) and Beatrice (5) wait for each other: Rem loses, though it began first."""
    rem, beatrice = harness.actor("rem"), harness.actor("beatrice")
    rem.take("file:index.json", priority=3)
    harness.pass_seconds(20)
    beatrice.take("file:CONTRACTS.md", priority=5)
    place = rem.wait_for("file:CONTRACTS.md", priority=3)

    reply = beatrice.lock("file:index.json", wait_s=60, priority=5)
    assert reply.outcome is Outcome.GRANTED, "Beatrice goes on in the same commit"
    assert harness.holders() == {"file:index.json": "beatrice", "file:CONTRACTS.md": "beatrice"}
    refused = rem.confirm(place)
    assert refused.outcome is Outcome.DEADLOCK
    assert refused.cycle == ["beatrice", "rem", "beatrice"]
    assert [event["victim"] for event in harness.events("lock.deadlock")] == ["rem"]
    assert rem.confirm(place).outcome is Outcome.WITHDRAWN, "it is told once, and the place is gone"


@pytest.mark.parametrize("preemptible", [False, True])
def test_scn_21_equal_priorities(harness: StoreHarness, preemptible: bool) -> None:
    """SCN-21: of equals the preemptible one loses, else the one that has worked for the shortest time."""
    old, young = harness.actor("old"), harness.actor("young")
    old.take("file:a", priority=4, preemptible=preemptible)
    harness.pass_seconds(30)
    young.take("file:b", priority=4)
    harness.pass_seconds(30)
    place = young.wait_for("file:a", priority=4)
    closing = old.lock("file:b", wait_s=60, priority=4)
    if preemptible:
        assert closing.outcome is Outcome.DEADLOCK
        assert young.confirm(place).outcome is Outcome.GRANTED
        assert set(harness.holders().values()) == {"young"}
    else:
        assert closing.outcome is Outcome.GRANTED
        assert young.confirm(place).outcome is Outcome.DEADLOCK
        assert set(harness.holders().values()) == {"old"}


def test_scn_22_nobody_starves(harness: StoreHarness) -> None:
    """SCN-22: under constant demand of priority 5 one of priority 0 gets through within five steps."""
    first = harness.actor("first")
    first.take("file:hot", ttl_ms=3_600_000)
    low = harness.actor("low")
    place = low.wait_for("file:hot", priority=0)
    holder, served = first, list[str]()
    for number in range(40):
        rival = harness.actor(f"high-{number}")
        rival_place = rival.wait_for("file:hot", priority=5, ttl_ms=3_600_000)
        harness.pass_seconds(30)
        holder.unlock("file:hot")
        (owner,) = harness.holders().values()
        served.append(owner)
        if owner == "low":
            break
        assert owner == rival.session, "while it has not aged, the high priority goes first"
        holder = rival
        assert rival.confirm(rival_place).outcome is Outcome.GRANTED
    assert served[-1] == "low"
    assert len(served) > 5, "a priority is worth something"
    assert (harness.now - START_MS) / 1000 <= 5 * 60 + 30 + 30
    assert low.confirm(place).outcome is Outcome.GRANTED


def test_scn_23_a_killed_holder_blocks_nobody(harness: StoreHarness) -> None:
    """SCN-23, STA-4: Beatrice is killed holding CONTRACTS.md; Otto, in line for it, goes on at once."""
    process = harness.process(1234)
    beatrice, otto = harness.actor("beatrice", process=process), harness.actor("otto")
    beatrice.take("file:CONTRACTS.md", ttl_ms=3_600_000)
    place = otto.wait_for("file:CONTRACTS.md")
    assert otto.confirm(place).outcome is Outcome.WAITING
    harness.kill(process)
    assert otto.confirm(place).outcome is Outcome.GRANTED
    assert harness.holders() == {"file:CONTRACTS.md": "otto"}
    (ended,) = harness.events("lock.released")
    assert (ended["session"], ended["end_reason"], ended["note"]) == (
        "beatrice",
        "owner_dead",
        "pid 1234 is dead",
    )
    (death,) = harness.events("session.ended")
    assert (death["session"], death["end_reason"], death["evidence"]) == (
        "beatrice",
        "dead",
        "pid 1234 is dead",
    )
    assert otto.show("beatrice").state == "crashed"


def test_scn_24_two_minutes_of_silence(harness: StoreHarness) -> None:
    """A ticket's holder silent for two minutes is crashed: ticket free, task claimed anew.

    SCN-24, SES-36, SCH-3, REC-2.
    """
    beatrice, otto = harness.actor("beatrice"), harness.actor("otto")
    beatrice.register()
    assert claim(harness, "task-1", "beatrice", 3600) == ("GRANTED", 1)
    beatrice.take("file:foo.py", profile="ticket", ttl_ms=600_000)
    place = otto.wait_for("file:foo.py", profile="ticket")
    harness.at(119)
    assert otto.confirm(place).outcome is Outcome.WAITING
    harness.at(120)
    assert otto.confirm(place).outcome is Outcome.GRANTED
    assert otto.show("beatrice").state == "crashed"
    assert harness.events("session.ended")[0]["evidence"] == "no heartbeat for 120 s"
    assert claim(harness, "task-1", "otto", 300) == ("GRANTED", 2)
    with pytest.raises(Dead) as caught:
        beatrice.beat()
    assert "register" in caught.value.hint
