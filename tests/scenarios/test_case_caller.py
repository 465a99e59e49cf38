"""Who calls (DESIGN §5): found through ancestors, told apart, never another one, and moved by `/clear`."""

import pytest

from coord.core.errors import CoordError, Dead, Impostor, Invalid, NotFound, Refused
from coord.core.identity import Caller
from coord.core.locks.commands import Outcome
from coord.core.sessions.schema import Liveness
from coord.core.tasks.commands import ClaimTask, GetSessionClaims, RenewLease
from tests.support.store_harness import Actor, StoreHarness


def nameless(harness: StoreHarness, *pids: int) -> Actor:
    """A command below processes, in an agent tool that does not say which session it is."""
    process_ancestors = tuple(process for pid in pids for process in harness.life if process.pid == pid)
    return Actor(harness, Caller("", tool="cursor", process_ancestors=process_ancestors))


def test_the_nearest_registered_ancestor_decides(harness: StoreHarness) -> None:
    """CFL-10: a command without a session acts for the nearest ancestor that a hook registered."""
    outer, inner = harness.process(10), harness.process(20)
    harness.process(30)
    harness.actor("outer", process=outer).register()
    harness.actor("inner", process=inner, process_ancestors=(inner, outer)).register()
    nameless(harness, 30, 20, 10).take("file:a.py")
    nameless(harness, 30, 10).take("file:b.py")
    assert harness.holders() == {"file:a.py": "inner", "file:b.py": "outer"}


def test_the_parent_speaks_where_sub_agents_share_its_process(harness: StoreHarness) -> None:
    """A process in which a session and its sub-agents live stands for the session itself."""
    shared = harness.process(10)
    harness.actor("parent", process=shared).register()
    harness.actor("child", process=shared, parent="parent").register()
    assert nameless(harness, 10).beat().session_id == "parent"
    assert harness.actor("child", process_ancestors=(shared,)).beat().session_id == "child"


def test_signs_of_a_tool_but_no_session(harness: StoreHarness) -> None:
    """Never taken for a person: refused, with what to do, and nothing is written."""
    harness.process(10)
    for act in (
        lambda: nameless(harness, 10).lock("file:a.py"),
        lambda: nameless(harness, 10).register(),
        lambda: nameless(harness).receive(),
    ):
        with pytest.raises(Invalid, match="cursor") as caught:
            act()
        assert "COORD_SESSION_ID" in caught.value.hint
    assert harness.head == 0


def test_two_terminals_are_two_owners(harness: StoreHarness) -> None:
    """The same person at two terminals excludes itself; a terminal that is closed frees its files."""
    first, second = harness.process(100), harness.process(200)
    left = harness.actor("ann@host:100-1", user="ann", process=first, process_ancestors=(first,))
    right = harness.actor("ann@host:200-1", user="ann", process=second, process_ancestors=(second,))
    left.take("file:a.py")
    assert right.lock("file:a.py").outcome is Outcome.HELD
    assert [peer.user for peer in right.peers()] == ["ann"]
    harness.kill(first)
    assert right.lock("file:a.py").outcome is Outcome.GRANTED


def test_an_impostor_is_refused(harness: StoreHarness) -> None:
    """Who lives in one session cannot act in the name of another: nothing of the other's is touched."""
    mine, theirs = harness.process(10), harness.process(20)
    harness.actor("me", process=mine, process_ancestors=(mine,)).register()
    victim = harness.actor("victim", process=theirs, process_ancestors=(theirs,))
    fence = victim.take("file:a.py").fence
    victim.send("me", "status", "hello")
    posing = harness.actor("victim", process_ancestors=(harness.process(11), mine))
    before = harness.head
    for act in (
        lambda: posing.unlock("file:a.py"),
        lambda: posing.unlock("file:a.py", fence=fence),
        lambda: posing.renew("file:a.py"),
        lambda: posing.lock("file:b.py"),
        lambda: posing.check("file:a.py", fence=fence),
        lambda: posing.leave(),
        lambda: posing.register(task="mine now"),
        lambda: posing.update(task="mine now"),
        lambda: posing.receive(),
        lambda: posing.peek(),
        lambda: posing.send("me", "status", "forged"),
        lambda: posing.beat(),
    ):
        with pytest.raises(Impostor, match="already acts as me") as caught:
            act()
        assert "coord dereg" in caught.value.hint
    assert harness.head == before
    assert victim.check("file:a.py", fence=fence).free


def test_a_new_name_from_a_known_process_is_a_further_session(harness: StoreHarness) -> None:
    """Any other new id from a known pid is no impostor: a session of its own, beside the first."""
    process = harness.process(10)
    harness.actor("first", process=process, process_ancestors=(process,)).take("file:a.py")
    further = harness.actor("further", process_ancestors=(process,))
    assert further.lock("file:a.py").outcome is Outcome.HELD
    assert further.lock("file:b.py").outcome is Outcome.GRANTED
    assert further.unlock("file:b.py").released == ["file:b.py"], "and it goes on from there"
    assert {peer.session_id for peer in harness.actor("onlooker").peers()} == {"first", "further"}


def test_unknown_descent_is_accepted_and_told(harness: StoreHarness) -> None:
    """Where nothing is known of the ancestors the session is believed, and its event says so."""
    process = harness.process(10)
    harness.actor("known", process=process, process_ancestors=(process,)).register()
    harness.actor("below", process_ancestors=(process,)).take("file:a.py")
    stranger = harness.actor("stranger", process_ancestors=(harness.process(99),))
    stranger.take("file:b.py")
    told = {event["session"]: event["ancestry"] for event in harness.events("session.registered")}
    assert told == {"known": "known", "below": "known", "stranger": "unknown"}
    assert harness.actor("stranger").unlock("file:b.py").released == ["file:b.py"]


def test_two_resumes_of_one_session(harness: StoreHarness) -> None:
    """SES-25: a second living process under one id is `<id>~2`; both exclude each other."""
    one, two, three = (harness.process(pid) for pid in (10, 20, 30))
    first = harness.actor("s1", process=one, process_ancestors=(one,))
    second = harness.actor("s1", process=two, process_ancestors=(two,))
    assert first.register().session.session_id == "s1"
    assert second.register().session.session_id == "s1~2"
    assert second.register().session.session_id == "s1~2", "and stays so"
    assert harness.actor("s1", process=three, process_ancestors=(three,)).beat().session_id == "s1~3"
    first.take("file:a.py")
    denied = second.lock("file:a.py")
    assert denied.outcome is Outcome.HELD
    assert denied.holder is not None
    assert denied.holder.owner == "s1"
    second.take("file:b.py")
    assert harness.holders() == {"file:a.py": "s1", "file:b.py": "s1~2"}


def test_a_resume_after_the_process_died_is_the_same_session(harness: StoreHarness) -> None:
    """A session whose process is gone and that comes back in another is no twin."""
    one, two = harness.process(10), harness.process(20)
    harness.actor("s1", process=one, process_ancestors=(one,)).register(task="T-1")
    harness.kill(one)
    again = harness.actor("s1", process=two, process_ancestors=(two,)).register()
    assert again.session.session_id == "s1"
    assert again.session.current_task == {"ticket": "T-1"}, "what it does not name stays"
    assert again.session.pid == 20


def test_one_declared_dead_holds_nothing(harness: StoreHarness) -> None:
    """AMB-9: One declared dead is refused until it registers again, and comes back with empty hands."""
    process = harness.process(10)
    ann, bob = harness.actor("ann", process=process), harness.actor("bob")
    fences = {name: ann.take(name).fence for name in ("file:a.py", "file:b.py", "name:main-push")}
    harness.kill(process)
    assert bob.lock("file:a.py").ok, "any command that meets the dead declares it so"
    before = harness.head
    for act in (
        lambda: ann.beat(),
        lambda: ann.renew("file:b.py"),
        lambda: ann.unlock("name:main-push"),
        lambda: ann.lock("file:c.py"),
        lambda: ann.send("bob", "status", "I am here"),
    ):
        with pytest.raises(Dead) as caught:
            act()
        assert "register" in caught.value.hint
    assert harness.head == before
    assert harness.holders() == {"file:a.py": "bob", "name:main-push": "ann"}, "a theft alone ends a name"

    back = harness.actor("ann", process=harness.process(11))
    assert back.register().session.liveness is Liveness.LIVE
    assert harness.holders() == {"file:a.py": "bob"}
    for name, fence in fences.items():
        assert not back.check(name, fence=fence).free
        with pytest.raises(CoordError):
            back.renew(name, fence=fence)
    assert back.lock("name:main-push").ok


def claim(harness: StoreHarness, task: str, session: str) -> int:
    reply = harness.call(ClaimTask(harness.tenant, "shop", task, session, session, 300_000))
    return int(reply.claim.generation) if reply.claim else 0


def claims_of(harness: StoreHarness, session: str) -> list[tuple[str, int]]:
    found = harness.call(GetSessionClaims(harness.tenant, session))
    return [(item.task_id, int(item.generation)) for item in found]


def test_clear_moves_everything_in_one_commit(harness: StoreHarness) -> None:
    """`/clear`: the new id takes over locks with their fences, claims and messages; the old one ends."""
    process = harness.process(10)
    old = harness.actor("old", process=process, process_ancestors=(process,))
    new = harness.actor("new", process=process, process_ancestors=(process,))
    bob = harness.actor("bob")
    bob.register()
    fences = {name: old.take(name).fence for name in ("file:a.py", "name:main-push")}
    generation = claim(harness, "task-1", "old")
    bob.send("old", "handoff", "first")
    bob.send("", "status", "to all")
    bob.send("old", "handoff", "second")
    before = harness.head

    registered = new.register(replaces="old")
    assert harness.head == before + 1
    assert (registered.moved_locks, registered.moved_claims) == (2, 1)
    assert harness.holders() == {"file:a.py": "new", "name:main-push": "new"}
    for name, fence in fences.items():
        assert new.check(name, fence=fence).free
        assert new.renew(name, fence=fence).locks[0].fence == fence
    assert (claims_of(harness, "new"), claims_of(harness, "old")) == ([("task-1", generation)], [])
    assert harness.call(RenewLease(harness.tenant, "shop", "task-1", "new", generation)).success
    assert sorted(message.subject for message in new.receive()) == ["first", "second", "to all"]

    assert new.show("old").liveness is Liveness.ENDED
    (ended,) = harness.events("session.ended")
    assert (ended["end_reason"], ended["successor"]) == ("replaced", "new")
    moved = harness.events("lock.moved")
    assert {(event["session"], event["successor"]) for event in moved} == {("old", "new")}
    assert bob.lock("file:a.py").outcome is Outcome.HELD
    new.unlock()
    assert harness.holders() == {}


def test_clear_lets_those_behind_go_on(harness: StoreHarness) -> None:
    """A place in line does not move with `/clear`: who stood behind it is served by the same commit."""
    process = harness.process(10)
    old = harness.actor("old", process=process)
    reader, behind = harness.actor("reader"), harness.actor("behind")
    reader.take("file:a.py", mode="read")
    old.wait_for("file:a.py", mode="write")
    place = behind.wait_for("file:a.py", mode="read")
    harness.actor("new", process=process).register(replaces="old")
    assert behind.confirm(place).outcome is Outcome.GRANTED


def test_clear_keeps_the_family_together(harness: StoreHarness) -> None:
    """After `/clear` a sub-agent still works under the lock that moved, and loses its own with it."""
    process = harness.process(10)
    parent = harness.actor("parent", process=process)
    child = harness.actor("child", parent="parent")
    parent.take("file:src")
    child.take("file:src/a.py")
    heir = harness.actor("heir", process=process)
    heir.register(replaces="parent")
    assert child.lock("file:src/b.py").outcome is Outcome.GRANTED
    heir.unlock("file:src")
    assert harness.holders() == {}


def test_clear_from_another_process_is_refused(harness: StoreHarness) -> None:
    """While a session may be alive, it is replaced only from its own process; nothing moves."""
    old = harness.actor("old", process=harness.process(10))
    old.take("file:a.py")
    before = harness.head
    with pytest.raises(Refused, match="another process") as caught:
        harness.actor("thief", process=harness.process(20)).register(replaces="old")
    assert "--force --reason" in caught.value.hint
    assert harness.head == before
    assert harness.holders() == {"file:a.py": "old"}
    with pytest.raises(NotFound):
        harness.actor("thief").show("thief")


def test_a_twin_stays_itself_when_the_first_ends(harness: StoreHarness) -> None:
    """SES-25: what `<id>~2` holds stays its own when the process of `<id>` dies."""
    one, two = harness.process(10), harness.process(20)
    harness.actor("s1", process=one, process_ancestors=(one,)).register()
    second = harness.actor("s1", process=two, process_ancestors=(two,))
    fence = second.take("file:a.py").fence
    harness.kill(one)
    assert second.beat().session_id == "s1~2"
    assert second.check("file:a.py", fence=fence).free
    assert second.unlock("file:a.py", fence=fence).released == ["file:a.py"]


def test_a_command_below_a_twin_acts_for_the_twin(harness: StoreHarness) -> None:
    """SES-25: the tool's variable names `<id>` in both processes; the ancestors tell which one it is."""
    one, two = harness.process(10), harness.process(20)
    harness.actor("s1", process=one, process_ancestors=(one,)).take("file:a.py")
    harness.actor("s1", process=two, process_ancestors=(two,)).take("file:b.py")
    below_two = harness.actor("s1", process_ancestors=(harness.process(21), two))
    assert below_two.beat().session_id == "s1~2"
    assert below_two.lock("file:a.py").outcome is Outcome.HELD
    assert below_two.unlock("file:b.py").released == ["file:b.py"]
    below_one = harness.actor("s1", process_ancestors=(harness.process(11), one))
    assert below_one.unlock("file:a.py").released == ["file:a.py"]
