"""Who calls (DESIGN §5): found through ancestors, told apart, never another one, and moved by `/clear`."""

import pytest

from coord.core.commands import ClaimTask, GetSessionClaims, RenewLease
from coord.core.errors import CoordError, Dead, Impostor, Invalid, NotFound
from coord.core.identity import Caller
from coord.core.replies import Liveness, Outcome
from tests.support.store_harness import Actor, Scene


def nameless(scene: Scene, *pids: int) -> Actor:
    """A command below processes, in an agent tool that does not say which session it is."""
    descent = tuple(process for pid in pids for process in scene.life if process.pid == pid)
    return Actor(scene, Caller("", tool="cursor", descent=descent))


def test_the_nearest_registered_ancestor_decides(scene: Scene) -> None:
    """CFL-10: a command without a session acts for the nearest ancestor that a hook registered."""
    outer, inner = scene.process(10), scene.process(20)
    scene.process(30)
    scene.actor("outer", process=outer).register()
    scene.actor("inner", process=inner, descent=(inner, outer)).register()
    nameless(scene, 30, 20, 10).take("file:a.py")
    nameless(scene, 30, 10).take("file:b.py")
    assert scene.holders() == {"file:a.py": "inner", "file:b.py": "outer"}


def test_the_parent_speaks_where_sub_agents_share_its_process(scene: Scene) -> None:
    """A process in which a session and its sub-agents live stands for the session itself."""
    shared = scene.process(10)
    scene.actor("parent", process=shared).register()
    scene.actor("child", process=shared, parent="parent").register()
    assert nameless(scene, 10).beat().session_id == "parent"
    assert scene.actor("child", descent=(shared,)).beat().session_id == "child"


def test_signs_of_a_tool_but_no_session(scene: Scene) -> None:
    """Never taken for a person: refused, with what to do, and nothing is written."""
    scene.process(10)
    for act in (
        lambda: nameless(scene, 10).lock("file:a.py"),
        lambda: nameless(scene, 10).register(),
        lambda: nameless(scene).receive(),
    ):
        with pytest.raises(Invalid, match="cursor") as caught:
            act()
        assert "COORD_SESSION_ID" in caught.value.hint
    assert scene.head == 0


def test_two_terminals_are_two_owners(scene: Scene) -> None:
    """The same person at two terminals excludes itself; a terminal that is closed frees its files."""
    first, second = scene.process(100), scene.process(200)
    left = scene.actor("ann@host:100-1", user="ann", process=first, descent=(first,))
    right = scene.actor("ann@host:200-1", user="ann", process=second, descent=(second,))
    left.take("file:a.py")
    assert right.lock("file:a.py").outcome is Outcome.HELD
    assert [peer.user for peer in right.peers()] == ["ann"]
    scene.kill(first)
    assert right.lock("file:a.py").outcome is Outcome.GRANTED


def test_an_impostor_is_refused(scene: Scene) -> None:
    """Who lives in one session cannot act in the name of another: nothing of the other's is touched."""
    mine, theirs = scene.process(10), scene.process(20)
    scene.actor("me", process=mine, descent=(mine,)).register()
    victim = scene.actor("victim", process=theirs, descent=(theirs,))
    fence = victim.take("file:a.py").fence
    victim.send("me", "status", "hello")
    posing = scene.actor("victim", descent=(scene.process(11), mine))
    before = scene.head
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
        with pytest.raises(Impostor, match="belongs to session me") as caught:
            act()
        assert "use me" in caught.value.hint
    assert scene.head == before
    assert victim.check("file:a.py", fence=fence).free


def test_a_new_name_from_a_known_process_is_a_further_session(scene: Scene) -> None:
    """Any other new id from a known pid is no impostor: a session of its own, beside the first."""
    process = scene.process(10)
    scene.actor("first", process=process, descent=(process,)).take("file:a.py")
    further = scene.actor("further", descent=(process,))
    assert further.lock("file:a.py").outcome is Outcome.HELD
    assert further.lock("file:b.py").outcome is Outcome.GRANTED
    assert further.unlock("file:b.py").released == ["file:b.py"], "and it goes on from there"
    assert {peer.session_id for peer in scene.actor("onlooker").peers()} == {"first", "further"}


def test_unknown_descent_is_accepted_and_told(scene: Scene) -> None:
    """Where nothing is known of the ancestors the session is believed, and its event says so."""
    process = scene.process(10)
    scene.actor("known", process=process, descent=(process,)).register()
    scene.actor("below", descent=(process,)).take("file:a.py")
    stranger = scene.actor("stranger", descent=(scene.process(99),))
    stranger.take("file:b.py")
    told = {event["session"]: event["descent"] for event in scene.events("session.registered")}
    assert told == {"known": "known", "below": "known", "stranger": "unknown"}
    assert scene.actor("stranger").unlock("file:b.py").released == ["file:b.py"]


def test_two_resumes_of_one_session(scene: Scene) -> None:
    """SES-25: a second living process under one id is `<id>~2`; both exclude each other."""
    one, two, three = (scene.process(pid) for pid in (10, 20, 30))
    first = scene.actor("s1", process=one, descent=(one,))
    second = scene.actor("s1", process=two, descent=(two,))
    assert first.register().session.session_id == "s1"
    assert second.register().session.session_id == "s1~2"
    assert second.register().session.session_id == "s1~2", "and stays so"
    assert scene.actor("s1", process=three, descent=(three,)).beat().session_id == "s1~3"
    first.take("file:a.py")
    denied = second.lock("file:a.py")
    assert denied.outcome is Outcome.HELD
    assert denied.holder is not None
    assert denied.holder.owner == "s1"
    second.take("file:b.py")
    assert scene.holders() == {"file:a.py": "s1", "file:b.py": "s1~2"}


def test_a_resume_after_the_process_died_is_the_same_session(scene: Scene) -> None:
    """A session whose process is gone and that comes back in another is no twin."""
    one, two = scene.process(10), scene.process(20)
    scene.actor("s1", process=one, descent=(one,)).register(task="T-1")
    scene.kill(one)
    again = scene.actor("s1", process=two, descent=(two,)).register()
    assert again.session.session_id == "s1"
    assert again.session.current_task == {"ticket": "T-1"}, "what it does not name stays"
    assert again.session.pid == 20


def test_one_declared_dead_holds_nothing(scene: Scene) -> None:
    """AMB-9: One declared dead is refused until it registers again, and comes back with empty hands."""
    process = scene.process(10)
    ann, bob = scene.actor("ann", process=process), scene.actor("bob")
    fences = {name: ann.take(name).fence for name in ("file:a.py", "file:b.py", "name:main-push")}
    scene.kill(process)
    assert bob.lock("file:a.py").ok, "any command that meets the dead declares it so"
    before = scene.head
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
    assert scene.head == before
    assert scene.holders() == {"file:a.py": "bob", "name:main-push": "ann"}, "a theft alone ends a name"

    back = scene.actor("ann", process=scene.process(11))
    assert back.register().session.liveness is Liveness.LIVE
    assert scene.holders() == {"file:a.py": "bob"}
    for name, fence in fences.items():
        assert not back.check(name, fence=fence).free
        with pytest.raises(CoordError):
            back.renew(name, fence=fence)
    assert back.lock("name:main-push").ok


def claim(scene: Scene, task: str, session: str) -> int:
    reply = scene.call(ClaimTask(scene.tenant, "shop", task, session, session, 300_000))
    return int(reply.claim.generation) if reply.claim else 0


def claims_of(scene: Scene, session: str) -> list[tuple[str, int]]:
    found = scene.call(GetSessionClaims(scene.tenant, session))
    return [(item.task_id, int(item.generation)) for item in found]


def test_clear_moves_everything_in_one_commit(scene: Scene) -> None:
    """`/clear`: the new id takes over locks with their fences, claims and messages; the old one ends."""
    process = scene.process(10)
    old = scene.actor("old", process=process, descent=(process,))
    new = scene.actor("new", process=process, descent=(process,))
    bob = scene.actor("bob")
    bob.register()
    fences = {name: old.take(name).fence for name in ("file:a.py", "name:main-push")}
    generation = claim(scene, "task-1", "old")
    bob.send("old", "handoff", "first")
    bob.send("", "status", "to all")
    bob.send("old", "handoff", "second")
    before = scene.head

    registered = new.register(replaces="old")
    assert scene.head == before + 1
    assert (registered.moved_locks, registered.moved_claims) == (2, 1)
    assert scene.holders() == {"file:a.py": "new", "name:main-push": "new"}
    for name, fence in fences.items():
        assert new.check(name, fence=fence).free
        assert new.renew(name, fence=fence).locks[0].fence == fence
    assert (claims_of(scene, "new"), claims_of(scene, "old")) == ([("task-1", generation)], [])
    assert scene.call(RenewLease(scene.tenant, "shop", "task-1", "new", generation)).success
    assert sorted(message.subject for message in new.receive()) == ["first", "second", "to all"]

    assert new.show("old").liveness is Liveness.ENDED
    (ended,) = scene.events("session.ended")
    assert (ended["ending"], ended["successor"]) == ("replaced", "new")
    moved = scene.events("lock.moved")
    assert {(event["session"], event["successor"]) for event in moved} == {("old", "new")}
    assert bob.lock("file:a.py").outcome is Outcome.HELD
    new.unlock()
    assert scene.holders() == {}


def test_clear_lets_those_behind_go_on(scene: Scene) -> None:
    """A place in line does not move with `/clear`: who stood behind it is served by the same commit."""
    process = scene.process(10)
    old = scene.actor("old", process=process)
    reader, behind = scene.actor("reader"), scene.actor("behind")
    reader.take("file:a.py", mode="read")
    old.wait_for("file:a.py", mode="write")
    place = behind.wait_for("file:a.py", mode="read")
    scene.actor("new", process=process).register(replaces="old")
    assert behind.confirm(place).outcome is Outcome.GRANTED


def test_clear_keeps_the_family_together(scene: Scene) -> None:
    """After `/clear` a sub-agent still works under the lock that moved, and loses its own with it."""
    process = scene.process(10)
    parent = scene.actor("parent", process=process)
    child = scene.actor("child", parent="parent")
    parent.take("file:src")
    child.take("file:src/a.py")
    heir = scene.actor("heir", process=process)
    heir.register(replaces="parent")
    assert child.lock("file:src/b.py").outcome is Outcome.GRANTED
    heir.unlock("file:src")
    assert scene.holders() == {}


def test_clear_from_another_process_is_refused(scene: Scene) -> None:
    """Only from its own process can a session be replaced; nothing moves."""
    old = scene.actor("old", process=scene.process(10))
    old.take("file:a.py")
    before = scene.head
    with pytest.raises(Invalid, match="another process") as caught:
        scene.actor("thief", process=scene.process(20)).register(replaces="old")
    assert caught.value.hint
    assert scene.head == before
    assert scene.holders() == {"file:a.py": "old"}
    with pytest.raises(NotFound):
        scene.actor("thief").show("thief")


def test_a_twin_stays_itself_when_the_first_ends(scene: Scene) -> None:
    """SES-25: what `<id>~2` holds stays its own when the process of `<id>` dies."""
    one, two = scene.process(10), scene.process(20)
    scene.actor("s1", process=one, descent=(one,)).register()
    second = scene.actor("s1", process=two, descent=(two,))
    fence = second.take("file:a.py").fence
    scene.kill(one)
    assert second.beat().session_id == "s1~2"
    assert second.check("file:a.py", fence=fence).free
    assert second.unlock("file:a.py", fence=fence).released == ["file:a.py"]


def test_a_command_below_a_twin_acts_for_the_twin(scene: Scene) -> None:
    """SES-25: the tool's variable names `<id>` in both processes; the ancestors tell which one it is."""
    one, two = scene.process(10), scene.process(20)
    scene.actor("s1", process=one, descent=(one,)).take("file:a.py")
    scene.actor("s1", process=two, descent=(two,)).take("file:b.py")
    below_two = scene.actor("s1", descent=(scene.process(21), two))
    assert below_two.beat().session_id == "s1~2"
    assert below_two.lock("file:a.py").outcome is Outcome.HELD
    assert below_two.unlock("file:b.py").released == ["file:b.py"]
    below_one = scene.actor("s1", descent=(scene.process(11), one))
    assert below_one.unlock("file:a.py").released == ["file:a.py"]
