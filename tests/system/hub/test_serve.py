"""`coord serve` as a process: it announces itself, serves, stops, and leaves nothing behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from coord.core.identity import Caller
from coord.core.locks.commands import ListLocks
from coord.engine.engine import Engine
from coord.sdk.remote.channel import UnixChannel
from coord.stores.open import open_store
from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, RunningHub, private_home, serving

Environ = Mapping[str, str]


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with private_home(tmp_path / "private") as home:
        yield {**home, "COORD_SESSION_ID": "ada"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


def coord(repository: Path, environ: Environ, *words: str) -> tuple[int, dict, str]:
    done = subprocess.run(
        [sys.executable, "-m", "coord", *words],
        cwd=repository,
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def requests_of(hub: RunningHub) -> int:
    """Return how many connections the hub's socket has accepted, as far as its answers show."""
    with urllib.request.urlopen(f"{hub.url}/healthz", timeout=PATIENCE_S) as answer:
        return int(answer.status)


def test_a_hub_announces_itself_and_ends(repository: Path, environ: dict[str, str]) -> None:
    with serving(repository, environ) as hub:
        assert hub.ready["ok"] is True
        assert oct(os.stat(hub.socket).st_mode & 0o777) == "0o600"
        assert requests_of(hub) == 200
        code, state, _ = coord(repository, environ, "serve", "--status")
        assert (code, state["pid"], state["listen"]) == (0, hub.process.pid, hub.url)
        code, _, text = coord(repository, environ, "serve")
        assert (code, "a hub runs already" in text) == (1, True)
        assert coord(repository, environ, "serve", "--stop")[0] == 0
        assert hub.process.wait(PATIENCE_S) == 0
    assert not os.path.exists(hub.socket)
    assert coord(repository, environ, "serve", "--status")[0] == 4


def test_a_lock_through_the_hub_is_that_of_the_store(repository: Path, environ: dict[str, str]) -> None:
    """Both ways lead to one store: what one grants, the other refuses."""
    other = {**environ, "COORD_SESSION_ID": "bob"}
    with serving(repository, environ):
        code, answer, _ = coord(repository, environ, "lock", "a.py")
        assert (code, answer["locks"][0]["fence"] > 0) == (0, True)
        assert coord(repository, other, "lock", "a.py", "--no-wait")[0] == 1
        assert coord(repository, {**other, "COORD_HUB": "off"}, "lock", "a.py", "--no-wait")[0] == 1
        assert coord(repository, {**environ, "COORD_HUB": "off"}, "unlock", "a.py")[0] == 0
        assert coord(repository, other, "lock", "a.py", "--no-wait")[0] == 0


def test_without_its_hub_a_client_uses_the_store(repository: Path, environ: dict[str, str]) -> None:
    """A hub that was killed leaves its socket behind; nobody stops for that."""
    with serving(repository, environ) as hub:
        assert coord(repository, environ, "lock", "a.py")[0] == 0
        hub.kill()
        assert os.path.exists(hub.socket)
        assert coord(repository, environ, "locks")[1]["locks"][0]["owner"] == "ada"
        with serving(repository, environ) as second:
            assert second.ready["store"] == hub.ready["store"]


def test_a_waiting_client_survives_its_hub(repository: Path, environ: dict[str, str]) -> None:
    """A wait that begins through the hub goes on in the store, and is granted there."""
    other = {**environ, "COORD_SESSION_ID": "bob"}
    with serving(repository, environ) as hub:
        coord(repository, environ, "lock", "a.py")
        waiting = subprocess.Popen(
            [sys.executable, "-m", "coord", "lock", "a.py", "--wait", "60"],
            cwd=repository,
            env=other,
            stdout=subprocess.PIPE,
            text=True,
        )
        while not coord(repository, environ, "waits")[1].get("waits"):
            assert waiting.poll() is None
        hub.kill()
        assert coord(repository, environ, "unlock", "a.py")[0] == 0
        out, _ = waiting.communicate(timeout=PATIENCE_S)
    assert (waiting.returncode, json.loads(out)["locks"][0]["owner"]) == (0, "bob")


@pytest.mark.parametrize("by", ["flag", "environment"])
def test_outside_of_repositories_a_url_names_the_store(
    environ: dict[str, str], tmp_path: Path, by: str
) -> None:
    """The hub serves that store, and neither creates nor pins the store of the user."""
    url = f"sqlite://{tmp_path}/team.db"
    words = ["--url", url] if by == "flag" else []
    named = environ if words else {**environ, "COORD_URL": url}
    with serving(tmp_path, named, *words) as hub:
        with closing(open_store(url)) as database:
            assert hub.ready["store"] == database.store_id
        hub.process.send_signal(signal.SIGHUP)
        with closing(UnixChannel(hub.socket)) as channel:
            body = b'{"session": "ada", "resources": ["name:release"]}'
            status, _ = channel.post("/v1/locks", body, PATIENCE_S, "Content-Type: application/json\r\n")
        assert status == 201
        with closing(open_store(url)) as database, closing(Engine(database, "local")) as engine:
            assert [each.resource for each in engine.call(ListLocks(Caller("bob")))] == ["name:release"]
    assert not os.path.exists(f"{environ['XDG_STATE_HOME']}/coord/coord.id")


@pytest.mark.parametrize(
    ("url", "inside"), [("memory:", False), ("http://127.0.0.1:9", False), ("https://hub.example", True)]
)
def test_what_a_hub_cannot_serve_is_refused(
    repository: Path, environ: dict[str, str], tmp_path: Path, url: str, inside: bool
) -> None:
    code, _, text = coord(repository if inside else tmp_path, environ, "serve", "--url", url)
    assert (code, "a hub serves no other hub" in text or "memory: forgets" in text) == (2, True)


def test_a_pin_decides_what_a_hub_serves(repository: Path, environ: dict[str, str], tmp_path: Path) -> None:
    """Decision 0062: two stores for one repository would grant one lock twice."""
    assert coord(repository, environ, "lock", "a.py")[0] == 0
    code, _, text = coord(repository, environ, "serve", "--url", f"sqlite://{tmp_path}/team.db")
    assert (code, "two stores for one repository" in text) == (2, True)


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_path_that_is_no_socket_of_ours_is_refused(
    repository: Path, environ: dict[str, str], tmp_path: Path, kind: str
) -> None:
    """A client that followed a link would send its commands to somebody else."""
    path = tmp_path / "s"
    if kind == "file":
        path.write_text("x")
    else:
        with socket.socket(socket.AF_UNIX) as real:
            real.bind(str(tmp_path / "real"))
        path.symlink_to(tmp_path / "real")
    assert coord(repository, {**environ, "COORD_HUB": str(path)}, "locks")[0] in (0, 2)
    coord(repository, environ, "lock", "a.py")
    code, _, text = coord(repository, {**environ, "COORD_HUB": str(path)}, "locks")
    assert (code, "no socket of yours" in text) == (2, True)
    code, _, text = coord(repository, environ, "serve", "--socket", str(path), "--listen", "-")
    assert (code, "no socket of yours" in text) == (1, True)


def test_a_folder_that_cannot_be_written_is_an_error(repository: Path, environ: dict[str, str]) -> None:
    """Also for root, who may write everywhere: a folder lies in the place of the lock."""
    folder = Path(environ["XDG_RUNTIME_DIR"], "run")
    (folder / "hub.lock").mkdir(mode=0o700, parents=True)
    folder.chmod(0o700)
    code, _, text = coord(repository, environ, "serve", "--listen", "-", "--socket", str(folder / "s"))
    assert (code, "cannot be written" in text, "--socket PATH" in text) == (69, True, True), text


def test_an_address_that_others_reach_needs_tls(repository: Path, environ: dict[str, str]) -> None:
    code, _, text = coord(repository, environ, "serve", "--listen", "0.0.0.0:0")
    assert (code, "clear text" in text) == (2, True)


def test_a_token_opens_the_store_over_http(repository: Path, environ: dict[str, str], tmp_path: Path) -> None:
    """`COORD_URL=http://…` and a token: the same locks, from a folder that is no repository."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with serving(repository, environ) as hub:
        person = {name: value for name, value in environ.items() if name != "COORD_SESSION_ID"}
        code, made, _ = coord(repository, person, "token", "create", "--role", "operate")
        assert (code, made["token"].startswith("coord_")) == (0, True)
        remote = {**environ, "COORD_SESSION_ID": "bob", "COORD_HUB": "off", "COORD_TOKEN": made["token"]}
        code, answer, text = coord(elsewhere, remote, "--url", hub.url, "lock", "name:release", "--no-wait")
        assert (code, text) == (0, text), text
        assert answer["locks"][0]["owner"] == "bob"
        assert coord(repository, environ, "lock", "name:release", "--no-wait")[0] == 1
        named = {**remote, "COORD_URL": hub.url}
        assert coord(elsewhere, named, "locks")[1]["locks"][0]["owner"] == "bob", "the variable does as well"
        wrong = {**remote, "COORD_TOKEN": made["token"][:-3] + "xyz"}
        code, _, text = coord(elsewhere, wrong, "--url", hub.url, "locks")
        assert (code, "token" in text) == (1, True), text
