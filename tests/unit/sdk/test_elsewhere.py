"""Messages between repositories of one machine."""

from collections.abc import Callable
from pathlib import Path

import pytest

import coord
from coord import Client, CoordError, NotFound
from tests.support.git_folders import made_repository
from tests.support.hook_harness import HookHarness

Connect = Callable[..., Client]


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    """Return a function that connects a session in one of the repositories `shop` and `api`."""
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), "USER": "somebody"}
    for name in ("shop", "api"):
        made_repository(tmp_path / name)
    (tmp_path / "nowhere").mkdir()

    def connect_in(folder: str, session: str, agent: str = "") -> Client:
        cwd = str(tmp_path / folder)
        return coord.connect(session=session, agent=agent, cwd=cwd, environ=environ)

    return connect_in


def test_whoever_is_a_peer_can_be_written_to(connect: Connect, tmp_path: Path) -> None:
    """MSG-6, MSG-10: a peer of another repository reads it in its own inbox, and can reply."""
    with connect("shop", "s-ann", "ann") as ann, connect("api", "s-bob", "bob") as bob:
        bob.register()
        assert [peer.session_id for peer in ann.peers_elsewhere()] == ["s-bob"]
        for address in ("s-bob", "bob", "s-b"):
            sent = ann.send(address, "request", f"to {address}", blob={"n": 1}, priority=2)
            assert sent.recipients == {"s-bob": "live"}
        first, *_ = received = bob.recv(drain=True).messages
        assert [message.subject for message in received] == ["to s-bob", "to bob", "to s-b"]
        assert (first.from_session_id, first.from_repository) == ("s-ann", str(tmp_path / "shop"))
        assert (first.blob, first.priority) == ({"n": 1}, 2)
        assert bob.peers_elsewhere()[0].session_id == "s-ann", "who wrote can be answered"
        bob.send("ann", "reply", "yes", reply_to=first.id)
        (reply,) = ann.recv().messages
        assert (reply.subject, reply.hops, reply.from_repository) == ("yes", 1, str(tmp_path / "api"))


def test_this_repository_comes_first(connect: Connect) -> None:
    """MSG-10: a name that somebody has here means nobody elsewhere."""
    with (
        connect("shop", "ann") as ann,
        connect("shop", "s-1", "otto") as here,
        connect("api", "s-2", "otto") as there,
    ):
        here.register()
        there.register()
        assert list(ann.send("otto", "status", "x").recipients) == ["s-1"]
        assert list(ann.send("s-2", "status", "x").recipients) == ["s-2"]
        here.dereg()
        assert list(ann.send("otto", "status", "x").recipients) == ["s-2"]


def test_outside_of_repositories(connect: Connect, tmp_path: Path) -> None:
    """MSG-10: a session without a repository lives in the user's store, and is reached there."""
    with connect("nowhere", "out") as out, connect("shop", "ann") as ann, connect("nowhere", "too") as too:
        for client in (out, ann, too):
            client.register()
        ann.send("out", "status", "from inside")
        out.send("ann", "status", "from outside")
        too.send("out", "status", "from beside")
        (inside, beside) = out.recv().messages
        assert (inside.subject, inside.from_repository) == ("from inside", str(tmp_path / "shop"))
        assert (beside.subject, beside.from_repository) == ("from beside", "")
        (outside,) = ann.recv().messages
        assert (outside.subject, outside.from_repository) == ("from outside", str(tmp_path / "nowhere"))


def test_nobody_is_nobody_anywhere(connect: Connect) -> None:
    """CLI-19: an unknown name stays an error; who has left the other repository is gone."""
    with connect("shop", "ann") as ann, connect("api", "bob") as bob:
        with pytest.raises(NotFound, match="no session or agent bob"):
            ann.send("bob", "status", "x")
        bob.register()
        with pytest.raises(NotFound):
            ann.send("role:bob", "status", "x")
        bob.dereg()
        with pytest.raises(CoordError):
            ann.send("bob", "status", "x")


def test_hooks_show_it(tmp_path: Path) -> None:
    """MSG-13, MSG-3: an emergency from another repository stops a call; no other store is opened."""
    scene = HookHarness(tmp_path / "one")
    other = HookHarness(tmp_path / "two")
    other.environ = scene.environ
    scene.tell("SessionStart", source="startup")
    with other.client("bob") as bob:
        bob.send("ada", "status", "hello")
        bob.send("ada", "emergency", "stop")
    root = other.root
    shown = scene.tell("UserPromptSubmit", prompt="go").note
    assert f'from bob in {root} (emergency): "stop"' in shown
    assert f'from bob in {root} (status): "hello"' in shown
    assert f'from bob in {root} (emergency): "stop"' in scene.write("new.txt").deny
