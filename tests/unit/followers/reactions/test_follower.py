"""Reactions happen at least once, in order, each by itself; nothing is lost, whatever is killed."""

import os
import random
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coord.core.events import Origin
from coord.core.followers import ListFollowers, ReadFollower
from coord.core.identity import Caller
from coord.core.messages.commands import SendMessage
from coord.core.reactions.commands import DecideReaction, NoteReactions
from coord.core.reactions.schema import ReactionRan
from coord.followers.follower import LogSource
from coord.followers.reactions import queue
from coord.followers.reactions.actions import Outcome
from coord.followers.reactions.events import HOPS_MAX, Delivery
from coord.followers.reactions.follower import PRESENT_MS, Reactions, State
from coord.followers.reactions.settings import Reaction
from coord.followers.runner import Runner
from coord.host.store_location import StoreLocation
from coord.stores.open import open_store
from tests.conftest import SOAK
from tests.support.store_harness import StoreHarness

JOIN_S = 30.0


class Scripted(Reactions):
    """Performs nothing: it remembers deliveries, fails as it is told, and waits where it is told to."""

    done: list[tuple[str, str]] = []
    failing: dict[str, int] = {}
    gate = threading.Event()
    gated: set[str] = set()
    killed = False

    def _attempt(self, reaction: Reaction, delivery: Delivery, stop: threading.Event) -> Outcome:
        del stop
        kind = type(self)
        if reaction.name in kind.gated:
            kind.gate.wait(JOIN_S)
        if self.killed:
            return Outcome("killed", stopped=True)
        if kind.failing.get(reaction.name, 0):
            kind.failing[reaction.name] -= 1
            return Outcome("no answer", permanent=True)
        kind.done.append((reaction.name, delivery.id_for(reaction.name)))
        return Outcome()


class Place:
    """A store with a clock set by hand, and the reactions of its user."""

    def __init__(self, harness: StoreHarness, home: Path) -> None:
        self.harness = harness
        self.home = home
        (home / "coord").mkdir(parents=True)
        self.environ = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home / "s")}
        self.actor = harness.actor("ada-1")

    def configure(self, *names: str, event: str = "lock.acquired", at_ms: int | None = None) -> None:
        tables = "".join(f'[[on]]\nname = "{each}"\nevent = "{event}"\nrun = ["true"]\n' for each in names)
        file = self.home / "coord/coord.toml"
        file.write_text(tables)
        at_ns = (self.harness.now if at_ms is None else at_ms) * 1_000_000
        os.utime(file, ns=(at_ns, at_ns))

    def runner(self, name: str = "me") -> Runner:
        harness = self.harness
        location = StoreLocation("memory:", "r", None, harness.database.store_id, 0, "/nowhere")
        source = LogSource(harness.local, harness.store, location, self.environ, lambda: harness.now)
        return Runner(source, [Scripted], name)

    def work(self, times: int = 1) -> list[str]:
        """Cause events that reactions mean; return where each of them is."""
        found = []
        for _ in range(times):
            self.actor.lock("file:a.py")
            entry = self.harness.entries(self.harness.head - 1)[0]
            number = next(at for at, each in enumerate(entry) if each["event"] == "lock.acquired")
            found.append(f"{self.harness.head}.{number}")
            self.actor.unlock("file:a.py")
        return found

    def saved(self) -> State:
        return msgspec.json.decode(self.harness.local.call(ReadFollower("reactions")).state, type=State)


def follower(runner: Runner) -> Scripted:
    (run,) = runner.runs
    assert run.failure is None
    assert isinstance(run.follower, Scripted)
    return run.follower


def kill(place: Place, runner: Runner) -> None:
    """Let the process of a runner end without a word; its lease ends later."""
    follower(runner).killed = True
    Scripted.gate.set()
    for thread in threading.enumerate():
        if thread.name.startswith("coord-react-"):
            thread.join(JOIN_S)
    Scripted.gate, Scripted.gated = threading.Event(), set()
    place.harness.pass_seconds(40)


def finish(runner: Runner) -> None:
    """Let everything that waits be performed and noted."""
    for _ in range(100):
        runner.step()
        running = [each for each in threading.enumerate() if each.name.startswith("coord-react-")]
        for thread in running:
            thread.join(JOIN_S)
        if not follower(runner).busy:
            return
    raise AssertionError("it never ends")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    Scripted.done, Scripted.failing, Scripted.gated = [], {}, set()
    Scripted.gate = threading.Event()
    with closing(open_store("memory:")) as database:
        yield Place(StoreHarness(database), tmp_path / "home")
        Scripted.gate.set()


def ids(name: str = "a") -> list[str]:
    return [identity.removesuffix(f".{name}") for each, identity in Scripted.done if each == name]


def test_reactions_begin_at_the_present(place: Place) -> None:
    """Not with the first entry of the log, but with what happened since a person confirmed them."""
    place.work(3)
    place.harness.pass_seconds(5)
    place.configure("a")
    since = place.work()
    runner = place.runner()
    finish(runner)
    assert ids() == since
    place.configure("a", "b")
    place.harness.pass_seconds(PRESENT_MS / 1000 + 1)
    later = place.work()
    finish(runner)
    assert ids() == since + later
    assert ids("b") == later, "and at most a minute ago"


def test_killed_at_any_point_nothing_is_lost_and_order_is_kept(place: Place) -> None:
    """Each event is delivered, in order; a repetition has the same id."""
    dice = random.Random(11)
    place.configure("a", "b")
    current = place.runner()
    finish(current)
    expected: list[str] = []
    for number in range(40):
        expected += place.work(dice.randint(0, 3))
        match dice.randint(0, 3):
            case 0:
                current.step()
            case 1:
                finish(current)
            case 2:
                kill(place, current)
                current = place.runner(f"again-{number}")
            case _:
                place.harness.pass_seconds(1)
    place.harness.pass_seconds(40)
    current = place.runner("last")
    finish(current)
    for name in ("a", "b"):
        found = ids(name)
        assert list(dict.fromkeys(found)) == expected


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["step", "finish", "kill", "wait", "fail", "b off", "b on"]), st.integers(0, 2)
    ),
    max_size=10,
)


@settings(max_examples=1000 if SOAK else 25)
@given(STEPS)
def test_every_event_is_delivered_or_a_dead_letter(steps: list[tuple[str, int]]) -> None:
    """Against a naive list: whatever happens in between, a reaction gets all that it means, in order; what
    failed for the last time is listed, and a reaction that was away goes on where it was."""
    Scripted.done, Scripted.failing, Scripted.gated = [], {}, set()
    with closing(open_store("memory:")) as database, tempfile.TemporaryDirectory() as folder:
        place = Place(StoreHarness(database), Path(folder) / "home")
        place.configure("a", "b")
        current = place.runner()
        finish(current)
        expected: list[str] = []
        for number, (what, events) in enumerate(steps):
            expected += place.work(events)
            if what == "step":
                current.step()
            elif what == "finish":
                finish(current)
            elif what == "kill":
                kill(place, current)
                current = place.runner(f"again-{number}")
            elif what == "wait":
                place.harness.pass_seconds(1)
            elif what == "fail":
                Scripted.failing = {"a": 1}
            else:
                place.harness.pass_seconds(1)
                place.configure("a", *(["b"] if what == "b on" else []))
        kill(place, current)
        place.configure("a", "b")
        current = place.runner("last")
        finish(current)
        dead = {each.removesuffix(".a") for each in follower(current).dead}
        current.close()
    assert list(dict.fromkeys(ids("b"))) == expected
    assert set(ids("a")) | dead == set(expected)
    if not any(
        what == "fail" for what, _ in steps
    ):  # a failure that a kill made forgotten is tried again later
        assert list(dict.fromkeys(ids("a"))) == expected


def test_a_slow_reaction_delays_no_other_and_not_the_runner(place: Place) -> None:
    """EVT-4, EVT-8, EVT-9: each has its own thread, and what is under way is not done."""
    place.configure("slow", "a")
    runner = place.runner()
    finish(runner)
    Scripted.gated = {"slow"}
    expected = place.work(5)
    runner.step()
    for thread in threading.enumerate():
        if thread.name == "coord-react-a":
            thread.join(JOIN_S)
    assert ids() == expected
    assert ids("slow") == []
    runner.step()
    saved = place.saved().next
    assert f"{saved['slow'][0]}.{saved['slow'][1]}" == expected[0], "what is under way is not done"
    assert saved["a"] > saved["slow"]
    Scripted.gate.set()
    finish(runner)
    assert ids("slow") == expected


def test_a_killed_runner_leaves_what_was_under_way(place: Place) -> None:
    place.configure("slow", "a")
    first = place.runner()
    finish(first)
    Scripted.gated = {"slow"}
    expected = place.work(3)
    first.step()
    first.step()
    kill(place, first)
    second = place.runner("second")
    finish(second)
    assert ids("slow") == expected


def test_too_many_events_drop_the_oldest_with_a_warning(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EVT-7: the bound is 10,000 for each reaction; the warning is an event."""
    assert queue.WAITING_MAX == 10_000
    monkeypatch.setattr(queue, "WAITING_MAX", 4)
    place.configure("slow", "a")
    runner = place.runner()
    finish(runner)
    Scripted.gated = {"slow"}
    expected = place.work(1)
    runner.step()
    expected += place.work(9)
    runner.step()
    Scripted.gate.set()
    finish(runner)
    assert ids("slow") == [expected[0], *expected[-4:]]
    (dropped,) = [each for each in place.harness.events("reaction.dropped") if each["reaction"] == "slow"]
    assert (dropped["count"], dropped["first"], dropped["last"]) == (5, expected[1], expected[5])


def test_a_failed_delivery_is_kept_until_a_person_decides(place: Place) -> None:
    place.configure("a")
    runner = place.runner()
    finish(runner)
    Scripted.failing = {"a": 2}
    first, second = place.work(2)
    finish(runner)
    assert [each.id for each in place.saved().dead] == [f"{first}.a", f"{second}.a"]
    failed = place.harness.events("reaction.failed")
    assert [(each["id"], each["error"], each["hops"]) for each in failed] == [
        (f"{first}.a", "no answer", 1),
        (f"{second}.a", "no answer", 1),
    ]
    kim = Caller("kim-1")
    place.harness.local.call(DecideReaction(kim, id=f"{first}.a", retry=True))
    place.harness.local.call(DecideReaction(kim, id=f"{second}.a", retry=False))
    finish(runner)
    assert ids() == [first]
    assert place.saved().dead == []
    place.harness.local.call(DecideReaction(kim, id=f"{first}.a", retry=True))
    finish(runner)
    assert ids() == [first], "what is done is not repeated"


def test_a_retry_survives_a_kill(place: Place) -> None:
    place.configure("a")
    first = place.runner()
    finish(first)
    Scripted.failing = {"a": 1}
    (event,) = place.work()
    finish(first)
    Scripted.gated = {"a"}
    place.harness.local.call(DecideReaction(Caller("kim-1"), id=f"{event}.a", retry=True))
    first.step()
    first.step()
    assert [each.retry for each in place.saved().dead] == [True]
    kill(place, first)
    second = place.runner("second")
    finish(second)
    assert ids() == [event]
    assert place.saved().dead == []


def test_loops_are_cut_after_three_hops(place: Place) -> None:
    """An event that reactions caused one after another starts a fourth one never; that is said once."""
    place.configure("a", event="reaction.*")
    runner = place.runner()
    finish(runner)
    for hops in range(HOPS_MAX + 2):
        place.harness.local.call(NoteReactions((ReactionRan("1.0.x", "x", "lock.acquired", hops=hops),)))
    finish(runner)
    assert len(ids()) == HOPS_MAX
    assert place.harness.events("reaction.refused") == [], "an event about reactions is refused in silence"
    place.configure("b", event="*")
    finish(runner)
    place.harness.actor("bob-1").register()
    place.actor.register()
    finish(runner)
    done = len(ids("b"))
    for hops in (HOPS_MAX - 1, HOPS_MAX, 9):
        message = SendMessage(Caller("ada-1"), to="bob-1", kind="info", subject="x")
        place.harness.local.call(message, origin=Origin(hops=hops).as_field())
    finish(runner)
    assert len(ids("b")) == done + 1
    (refused,) = place.harness.events("reaction.refused")
    assert (refused["reaction"], refused["hops"], refused["count"]) == ("b", 10, 2)


def test_a_reaction_that_is_configured_again_goes_on(place: Place) -> None:
    """Between an edit of the file and its new consent nothing is lost."""
    place.configure("a")
    runner = place.runner()
    finish(runner)
    first = place.work()
    finish(runner)
    place.harness.pass_seconds(1)
    place.configure("other")
    finish(runner)
    between = place.work()
    finish(runner)
    assert (ids(), ids("other")) == (first, between)
    place.configure("a", "other")
    finish(runner)
    assert (ids(), ids("other")) == (first + between, between)


def test_what_is_not_done_is_neither_trimmed_nor_forgotten(place: Place) -> None:
    place.configure("slow")
    runner = place.runner()
    finish(runner)
    Scripted.gated = {"slow"}
    (event, *_) = place.work(3)
    runner.step()
    place.harness.pass_seconds(11)
    runner.step()
    (saved,) = place.harness.local.call(ListFollowers())
    assert saved.offset == int(event.partition(".")[0]) - 1
    Scripted.gate.set()
    finish(runner)
    (saved,) = place.harness.local.call(ListFollowers())
    assert saved.offset >= int(event.partition(".")[0])


def test_only_the_tenant_of_the_person_is_followed(place: Place) -> None:
    source = place.runner()._source
    assert not Reactions.wanted(source), "nothing is configured"
    place.configure("a")
    assert Reactions.wanted(source)
    assert not Reactions.wanted(source._replace(environ={**place.environ, "COORD_TENANT": "acme"}))


def test_many_failures_fit_into_the_record(place: Place) -> None:
    """The newest hundred are kept, whatever their events contain."""
    place.configure("a", event="message.sent")
    runner = place.runner()
    finish(runner)
    place.harness.actor("bob-1").register()
    Scripted.failing = {"a": 1000}
    for number in range(115):
        place.actor.send("bob-1", "info", f"{number}" + "\u202e" * 300)
    finish(runner)
    Scripted.failing = {}
    first = next(iter(follower(runner).dead))
    place.harness.local.call(DecideReaction(Caller("kim-1"), id=first, retry=True))
    finish(runner)
    assert [f"{each}.a" for each in ids()] == [first], "its event is read from the log again"
    dead = [each.id for each in place.saved().dead]
    assert 50 <= len(dead) <= 100
    assert dead == list(follower(runner).dead)
