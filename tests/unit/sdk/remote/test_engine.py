"""A client whose hub is lost in the middle of a command: the command runs once, wherever it ends."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from coord.core.errors import Denied, Invalid, NotFound, Unavailable, Unknown, Unreachable, Unsupported
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, ListLocks, LockReply, Outcome, ReleaseLocks
from coord.core.tasks.commands import ClaimTask
from coord.engine.engine import Engine
from coord.sdk.remote import wire
from coord.sdk.remote.channel import Broken, Channel, UnixChannel
from coord.sdk.remote.database import RemoteDatabase, decode_answer, say_hello
from coord.sdk.remote.direct import PROBE_S
from coord.stores.database import Database
from coord.stores.open import open_store
from tests.support.hub.in_process import PATIENCE_S, shared_hub

ADA, BOB = Caller("ada"), Caller("bob")
CLAIM = ClaimTask("local", "shop", "t1", "agent", "ada", 60_000)


class FaultyChannel:
    """Loses requests or answers as a test says: `before` it sends, or `after` the hub has answered."""

    def __init__(self, channel: Channel) -> None:
        self.where = channel.where
        self.faults: list[str] = []
        self.sent: list[str] = []
        self.thawed = threading.Event()
        self._channel = channel

    def post(self, path: str, body: bytes, timeout_s: float, *, waits: bool = False) -> tuple[int, bytes]:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "before":
            raise Unreachable("the hub is gone")
        if fault == "frozen":
            self.thawed.wait(PATIENCE_S)
            raise Broken("the hub is frozen")
        self.sent.append(path)
        answer = self._channel.post(path, body, timeout_s, waits=waits)
        if fault == "after":
            raise Broken("the answer is lost")
        return answer

    def close(self) -> None:
        self._channel.close()


class Setting:
    """A store that a hub serves, and a client with a faulty way to it."""

    def __init__(self, url: str, database: Database[Any], clients: Any) -> None:
        self.stored = database
        inner = clients._of("local")
        self.channel = FaultyChannel(inner._channel)
        self.opened: list[Database[Any]] = []
        root = inner.target("local").root
        self.with_store = RemoteDatabase(url, root, self.channel, inner.welcome, lambda: self._open(url))
        self.hub_only = RemoteDatabase(url, root, self.channel, inner.welcome, None)

    def _open(self, url: str) -> Database[Any]:
        self.opened.append(open_store(url))
        return self.opened[-1]

    def claims(self) -> list[int]:
        """Return the generations that were granted, as the log of the store has them."""
        events = [
            json.loads(event) for entry in self.stored.log("local").tail(0, 100) for event in entry.events
        ]
        return [event["generation"] for event in events if event["event"] == "task.claimed"]


@pytest.fixture
def setting(make_url: Callable[[str], str]) -> Iterator[Setting]:
    url = make_url("sqlite")
    with (
        closing(open_store(url)) as database,
        shared_hub().serving(database, "socket", Engine) as clients,
    ):
        made = Setting(url, database, clients)
        yield made
        made.with_store.close()


@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_command_whose_answer_is_lost_runs_once(setting: Setting, fault: str) -> None:
    """Issue 16: the hub dies in the middle of a command; the client goes on in the store."""
    setting.channel.faults = [fault]
    reply = setting.with_store.engine("local").call(CLAIM)
    assert (reply.success, reply.claim.generation.generation, setting.claims()) == (True, 1, [1])
    assert len(setting.opened) == 1
    again = setting.with_store.engine("local").call(ListLocks(ADA))
    assert (again, len(setting.channel.sent)) == ([], 0 if fault == "before" else 1), (
        "it stays with the store"
    )


@pytest.mark.parametrize("faults", [["after"], ["after", "after"], ["before", "after", "before"]])
def test_a_hub_that_returns_answers_once(setting: Setting, faults: list[str]) -> None:
    """A client that cannot open the store sends the command again, with the same id."""
    setting.channel.faults = list(faults)
    reply = setting.hub_only.engine("local").call(CLAIM)
    assert (reply.success, reply.claim.generation.generation, setting.claims()) == (True, 1, [1])


def test_an_outcome_that_stays_unknown_is_reported(setting: Setting) -> None:
    """Doubt is an error: after the timeout nobody claims to know."""
    setting.channel.faults = ["after"] * 1000
    with pytest.raises(Unknown, match="lost"):
        setting.hub_only.engine("local").call(CLAIM, timeout=0.5, command_id="mine")
    setting.channel.faults = []
    assert setting.hub_only.engine("local").call(CLAIM, command_id="mine").success
    assert setting.claims() == [1]


def test_a_hub_that_is_gone_is_unreachable(setting: Setting) -> None:
    """Nothing was sent, so nothing happened."""
    setting.channel.faults = ["before"] * 1000
    with pytest.raises(Unreachable):
        setting.hub_only.engine("local").call(CLAIM, timeout=0.5)
    assert setting.claims() == []


def test_the_same_id_with_other_content_is_refused(setting: Setting) -> None:
    """A replayed command id may not smuggle another command in."""
    engine = setting.hub_only.engine("local")
    engine.call(CLAIM, command_id="mine")
    with pytest.raises(Invalid, match="another command"):
        engine.call(ClaimTask("local", "shop", "t2", "agent", "ada", 60_000), command_id="mine")


def test_a_wait_goes_on_in_the_store(setting: Setting) -> None:
    """The log of a client changes sides with its engine."""
    log = setting.with_store.log("local")
    head = log.seen.offset
    setting.channel.faults = ["before"]
    heard: list[bool] = []
    waiting = threading.Thread(target=lambda: heard.append(log.wait(head, PATIENCE_S)))
    waiting.start()
    with closing(Engine(setting.stored, "local")) as engine:
        engine.call(CLAIM)
        waiting.join(PATIENCE_S)
        assert heard == [True]
        assert log.tail(head, 10)[0].offset == head + 1
        assert log.now() > 0


def test_many_commands_are_one_request(setting: Setting) -> None:
    """Refusals and grants come back in order, each as itself."""
    engine = setting.hub_only.engine("local")
    locks = [AcquireLocks(who, "r", ("file:a",), wait_id=who.session) for who in (ADA, BOB)]
    replies: list[LockReply] = engine.call_many(locks)
    assert [each.outcome for each in replies] == [Outcome.GRANTED, Outcome.HELD]
    assert setting.channel.sent == [wire.CALL]


def test_a_hub_of_another_version_is_not_used(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old client and a new hub do not guess what the other means."""
    monkeypatch.setattr("coord.transports.hub.calls.VERSION", "9.9.9")
    with pytest.raises(Unsupported, match=r"has version 9\.9\.9"):
        say_hello(setting.channel, setting.hub_only.target("local").root, "local", PATIENCE_S)


def test_what_answers_may_be_no_hub() -> None:
    """A web server at the same address is named, not decoded."""
    with pytest.raises(Exception, match="is no hub of coord: it answered 200"):
        decode_answer(200, b"<html>", wire.Welcome, "http://x")
    with pytest.raises(Broken):  # in the middle of a client's life, a proxy may say that the answer is lost
        decode_answer(504, b"<html>", wire.Answers, "http://x", begun=True)


def test_a_folder_that_is_no_repository(tmp_path: Any) -> None:
    """The hub serves only what is in use, and creates nothing."""
    with closing(UnixChannel(shared_hub().path)) as channel, pytest.raises((NotFound, Denied)):
        say_hello(channel, str(tmp_path), "local", PATIENCE_S)
    assert list(tmp_path.iterdir()) == []


# In doubt.


@pytest.mark.parametrize("faults", [["after", *["before"] * 1000], ["after", "before", *["after"] * 1000]])
def test_a_lost_answer_stays_in_doubt_until_there_is_one(setting: Setting, faults: list[str]) -> None:
    """The hub took the command and died: that it cannot be reached later does not undo it."""
    setting.channel.faults = faults
    with pytest.raises(Unknown):
        setting.hub_only.engine("local").call(CLAIM, timeout=0.5)
    assert setting.claims() == [1]


def test_a_lost_answer_and_a_lost_store_is_doubt(setting: Setting) -> None:
    """The fallback fails, too: "nothing was done" would be a lie."""

    def fail() -> Database[Any]:
        raise Unreachable("the server is down")

    setting.channel.faults = ["after"]
    setting.with_store._open_direct = fail
    with pytest.raises(Unknown):
        setting.with_store.engine("local").call(CLAIM)
    setting.channel.faults = ["before"]
    with pytest.raises(Unreachable, match="server is down"):
        setting.with_store.engine("local").call(CLAIM)


def test_without_the_hub_all_commands_run_before_an_error_is_raised(setting: Setting) -> None:
    """As with an engine: one refusal does not keep the others from running."""
    setting.channel.faults = ["before"]
    wrong = ReleaseLocks(ADA, "r", ("file:a",))
    with pytest.raises(NotFound, match="nobody holds"):
        setting.with_store.engine("local").call_many([wrong, CLAIM])
    assert setting.claims() == [1]


def test_each_tenant_has_its_own_head(setting: Setting) -> None:
    """One connection, two tenants: the head of one log says nothing about the other."""
    setting.hub_only.engine("local").call(CLAIM)
    root = setting.hub_only.target("local").root
    welcome = say_hello(setting.channel, root, "local", PATIENCE_S)
    fresh = RemoteDatabase("x", root, setting.channel, welcome, None)
    other = fresh.log("other")
    assert other.seen.offset < fresh.log("local").seen.offset
    assert not other.wait(other.seen.offset, 0.01)


@pytest.mark.parametrize("ask", ["load", "tail", "trim", "other tenant"])
def test_every_question_goes_on_without_the_hub(setting: Setting, ask: str) -> None:
    setting.hub_only.engine("local").call(CLAIM)
    log, engine = setting.with_store.log("local"), setting.with_store.engine("local")
    setting.channel.faults = ["after"]
    if ask == "load":
        log.load(["head"])
        assert log.seen.offset == setting.stored.log("local").seen.offset
    elif ask == "tail":
        assert len(log.tail(0, 10)) == 1
    elif ask == "trim":
        assert engine.trim() == 0
    else:
        assert setting.with_store.log("other").seen.offset < log.seen.offset
    assert len(setting.opened) == 1


def test_another_store_or_version_behind_the_socket_is_left(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub that was replaced in the middle of a client's life may have another store there."""
    monkeypatch.setattr(setting.hub_only, "store_id", "another")
    with pytest.raises(Unreachable, match="another store"):
        setting.hub_only.engine("local").call(CLAIM, timeout=0.1)
    assert setting.claims() == []
    monkeypatch.setattr("coord.transports.hub.calls.VERSION", "9.9.9")
    assert setting.with_store.engine("local").call(CLAIM).success
    assert len(setting.opened) == 1, "its own store has the same version"


@pytest.mark.parametrize("transport", ["socket", "http"])
def test_a_wait_ends_when_its_database_is_closed(
    make_url: Callable[[str], str], transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread closes the client; nobody waits on for an entry."""
    monkeypatch.setattr("coord.sdk.remote.database.WAIT_S", PATIENCE_S)
    with (
        closing(open_store(make_url("sqlite"))) as stored,
        shared_hub().serving(stored, transport, Engine) as clients,
    ):
        database = clients._of("local")
        log = database.log("local")
        ended: list[Any] = []

        def wait() -> None:
            try:
                ended.append(log.wait(log.seen.offset, PATIENCE_S))
            except Unavailable as error:
                ended.append(error.message)

        waiting = threading.Thread(target=wait)
        waiting.start()
        channel: Any = database._channel
        while not channel._waiting:
            assert waiting.is_alive()
        database.close()
        waiting.join(PATIENCE_S / 4)
        assert ended == ["the database is closed"]


def probe(database: RemoteDatabase) -> None:
    """Let a client look for its hub, as its next use does when it is time to."""
    probing = database._probing
    assert probing is not None
    probing._due_s = 0
    database.log("local").now()
    assert probing.thread is not None
    probing.thread.join(PATIENCE_S)


def test_a_client_uses_its_hub_again_when_that_is_back(setting: Setting) -> None:
    """A worker that runs for days opens the store only while the hub is gone."""
    engine, log = setting.with_store.engine("local"), setting.with_store.log("local")
    setting.channel.faults = ["before", "before"]
    assert engine.call(CLAIM).success
    probe(setting.with_store)
    assert [each.closed for each in setting.opened] == [False], "the hub is still gone"
    engine.call(ClaimTask("local", "shop", "t2", "agent", "ada", 60_000))
    seen, sent = log.seen.offset, len(setting.channel.sent)
    probe(setting.with_store)
    assert [each.closed for each in setting.opened] == [True]
    assert log.seen.offset >= seen, "what it has seen stays seen"
    engine.call(CLAIM)
    assert setting.channel.sent[sent:] == [wire.HELLO, wire.CALL]
    setting.channel.faults = ["after"]
    engine.call(ClaimTask("local", "shop", "t3", "agent", "ada", 60_000))
    assert (len(setting.opened), setting.claims()) == (2, [1, 1, 1]), "it may be lost again"


def test_what_has_begun_in_the_store_ends_there(setting: Setting) -> None:
    """The store is not closed below a command of another thread when the hub is back."""
    setting.channel.faults = ["before"]
    engine = setting.with_store.engine("local")
    engine.call(CLAIM)
    with setting.with_store.directly() as direct:
        assert direct is not None
        assert setting.with_store.return_to_hub()
        with setting.with_store.directly() as later:
            assert later is None
        assert direct.engine("local").call(ListLocks(ADA)) == []
    assert setting.opened[0].closed


def test_a_frozen_hub_keeps_nobody_waiting(setting: Setting) -> None:
    setting.channel.faults = ["before", "frozen"]
    engine = setting.with_store.engine("local")
    engine.call(CLAIM)
    probing = setting.with_store._probing
    assert probing is not None
    for _ in range(3):
        probing._due_s = 0
        assert engine.call(ListLocks(ADA)) == []
    assert probing.thread is not None
    assert probing.thread.is_alive()
    assert setting.channel.faults == [], "one look at a time"
    setting.channel.thawed.set()
    probing.thread.join(PATIENCE_S)
    assert probing._interval_s == 2 * PROBE_S, "each failure doubles the time until the next look"


def test_a_hub_with_another_store_is_not_used_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting.channel.faults = ["before"]
    engine = setting.with_store.engine("local")
    engine.call(CLAIM)
    monkeypatch.setattr(setting.opened[0], "store_id", "another")
    assert not setting.with_store.return_to_hub()
    sent = len(setting.channel.sent)
    assert engine.call(ListLocks(ADA)) == []
    assert len(setting.channel.sent) == sent
