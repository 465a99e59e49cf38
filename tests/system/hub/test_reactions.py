"""Reactions of a real hub: webhooks arrive, kill -9 loses nothing, and a loop of commands ends."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from coord.followers.reactions.performer import HUB, NEXT
from tests.support.consent import write_configuration
from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, private_home, serving
from tests.support.servers.server import poll_until

Environ = Mapping[str, str]


class Receiver:
    """A server that takes deliveries; it fails as often as it is told."""

    def __init__(self) -> None:
        self.arrived: queue.Queue[dict[str, Any]] = queue.Queue()
        self.failing = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                failing = receiver.failing > 0
                receiver.failing -= failing
                self.send_response(500 if failing else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()
                if not failing:
                    receiver.arrived.put({**body, "signature": self.headers.get("Webhook-Signature")})

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self) -> dict[str, Any]:
        return self.arrived.get(timeout=PATIENCE_S)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with private_home(tmp_path / "private") as home:
        yield {**home, "CHAT_SECRET": "s3cret"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


def coord(shop: Path, environ: Environ, *words: str, session: str = "ada") -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "coord", *words],
        cwd=shop,
        env={**environ, "COORD_SESSION_ID": session, "COORD_AGENT": session},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def configure(shop: Path, environ: Environ, receiver: Receiver, more: str = "") -> None:
    url = f"http://127.0.0.1:{receiver.server.server_port}/"
    table = f'[[on]]\nname = "chat"\nevent = "lock.acquired"\nwebhook = "{url}"\nallow_private = true\n'
    write_configuration(shop, f'{table}secret = {{ env = "CHAT_SECRET" }}\n{more}', environ)


def performer(shop: Path, environ: Environ) -> tuple[str, int]:
    listed = coord(shop, environ, "reactions", "list")
    return listed["performed_by"], listed["waiting"]


def test_a_killed_hub_loses_nothing(shop: Path, environ: Environ, receiver: Receiver) -> None:
    """EVT-1: what was under way, and what happened while no hub ran, arrives after the next start."""
    coord(shop, environ, "register")
    receiver.failing = 1000
    with serving(shop, environ) as hub:
        configure(shop, environ, receiver)
        coord(shop, environ, "lock", "a.py")
        while receiver.failing == 1000:
            assert hub.process.poll() is None
        coord(shop, environ, "lock", "b.py")
        hub.kill()
    receiver.failing = 0
    coord(shop, {**environ, "COORD_HUB": "off"}, "lock", "c.py")
    with serving(shop, environ) as hub:
        found: dict[str, dict[str, Any]] = {}
        while len(found) < 3:
            delivery = receiver.next()
            found.setdefault(delivery["id"], delivery)
        assert sorted(each["data"]["resource"] for each in found.values()) == [
            "file:a.py",
            "file:b.py",
            "file:c.py",
        ]
        assert all(each["signature"].startswith("v1,") for each in found.values())
        hub.stop()


def test_commands_that_cause_themselves_end(shop: Path, environ: Environ, receiver: Receiver) -> None:
    """The command of a reaction sends a message through the hub, which causes the reaction again."""
    arguments = json.dumps([sys.executable, "-m", "coord", "send", "bob", "info", "again"])
    loop = f'[[on]]\nname = "loop"\nevent = "message.sent"\nrun = {arguments}\nenv = ["PYTHONPATH"]\n'
    refused = '[[on]]\nname = "cut"\nevent = "lock.denied"\nrun = ["true"]\n'
    coord(shop, environ, "register", session="bob")
    with serving(shop, environ) as hub:
        configure(shop, environ, receiver, loop + refused)
        coord(shop, environ, "send", "bob", "info", "first")
        while True:
            coord(shop, environ, "lock", "a.py")
            coord(shop, environ, "unlock", "a.py")
            receiver.next()
            events = coord(shop, environ, "log", "tail", "--since", "1h")["events"]
            if any(each["event"] == "reaction.refused" for each in events):
                break
        senders = [each["session"] for each in events if each["event"] == "message.sent"]
        assert senders == ["ada", *["reaction-loop"] * 3]
        hops = [each.get("origin", {}).get("hops", 0) for each in events if each["event"] == "message.sent"]
        assert hops == [0, 1, 2, 3]
        assert hub.stop() == 0


def test_without_a_hub_a_process_follows(shop: Path, environ: Environ, receiver: Receiver) -> None:
    """`coord follow reactions` performs them; a delivery that failed is tried again when somebody says so."""
    alone = {**environ, "COORD_HUB": "off"}
    coord(shop, alone, "register")
    configure(shop, environ, receiver, "attempts = 1\n")
    assert performer(shop, alone) == ("", 0)
    receiver.failing = 1
    coord(shop, alone, "lock", "a.py")
    coord(shop, alone, "follow", "reactions", "--once")
    (dead,) = coord(shop, alone, "reactions", "dead")["dead"]
    assert dead["error"].startswith("127.0.0.1 answered 500")
    coord(shop, alone, "reactions", "dead", "--retry", dead["id"])
    coord(shop, alone, "follow", "reactions", "--once")
    assert receiver.next()["id"] == dead["id"]
    assert coord(shop, alone, "reactions", "dead")["dead"] == []
    coord(shop, alone, "reactions", "test", "chat", "--event", '{"event":"lock.acquired","resource":"x"}')
    assert receiver.next()["id"] == "0.0.chat"


def test_nobody_performs_reactions_in_silence(shop: Path, environ: Environ, receiver: Receiver) -> None:
    """A command that ends performs none, so every place says that nobody does, until a hub does."""
    alone = {**environ, "COORD_HUB": "off"}
    coord(shop, alone, "register")
    configure(shop, environ, receiver)
    coord(shop, alone, "follow", "reactions", "--once")
    coord(shop, alone, "lock", "a.py")
    coord(shop, alone, "lock", "b.py")
    coord(shop, alone, "unlock", "b.py")
    assert performer(shop, alone) == ("", 2)
    (need,) = coord(shop, alone, "needs")["needs"]
    assert need["text"] == "nobody performs the reactions (2 events wait)"
    checks = [each for each in coord(shop, alone, "doctor")["checks"] if each["check"] == "reactions"]
    assert [(each["state"], each["hint"]) for each in checks] == [("warn", NEXT)]
    rows = {row["name"]: row for row in coord(shop, alone, "follow", "list")["followers"]}
    assert rows["reactions"]["error"].startswith("nobody runs it")
    with serving(shop, environ):
        assert {receiver.next()["data"]["resource"] for _ in range(2)} == {"file:a.py", "file:b.py"}
        poll_until(lambda: performer(shop, environ) == (HUB, 0), PATIENCE_S, "the hub does not say it")
        assert coord(shop, environ, "needs")["needs"] == []
        rows = {row["name"]: row for row in coord(shop, environ, "follow", "list")["followers"]}
        assert (rows["reactions"]["state"], rows["reactions"]["error"]) == ("running", "")
