"""A hub that starts when it is needed, because a person has said so once."""

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coord.host.runtime import start_hub
from coord.sdk.remote.address import HubState, read_state
from tests.support.git_folders import made_repository
from tests.support.hub.hooks import ONLY_THROUGH_HUB, edit, run_hook
from tests.support.hub.process import PATIENCE_S, private_home, serving

Environ = dict[str, str]


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[Environ]:
    with private_home(tmp_path / "private") as home:
        yield {**home, "COORD_HOOK_DEADLINE": "60"}
        if state := read_state(home):
            end(state)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


def end(state: HubState) -> None:
    process = os.pidfd_open(state.pid)
    try:
        os.kill(state.pid, 9)
        assert select.select([process], [], [], PATIENCE_S)[0]
    finally:
        os.close(process)


def coord(repository: Path, environ: Environ, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "coord", *words],
        cwd=repository,
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def started(environ: Environ) -> HubState:
    """Return the hub as soon as it serves; its folder has no other sign of it."""
    deadline = time.monotonic() + PATIENCE_S
    while (state := read_state(environ)) is None:
        assert time.monotonic() < deadline, log_of(environ)
        os.sched_yield()
    return state


def log_of(environ: Environ) -> str:
    path = Path(environ["XDG_STATE_HOME"]) / "coord/hub.log"
    return path.read_text() if path.exists() else ""


def attempted(environ: Environ) -> bool:
    return (Path(environ["XDG_RUNTIME_DIR"]) / "coord" / start_hub.ATTEMPT).exists()


def test_the_first_hook_starts_a_hub_and_the_next_one_uses_it(repository: Path, environ: Environ) -> None:
    """The hook itself answers at once; the hub belongs to no agent, and knows nothing of it."""
    assert coord(repository, environ, "init", "--hub").returncode == 0
    agent = {**environ, "CLAUDE_CODE_SESSION_ID": "ada", "ANTHROPIC_API_KEY": "secret-of-ada"}
    assert run_hook(agent, edit(repository, "ada")) == (0, "", "")
    hub = started(environ)
    held = run_hook(environ, edit(repository, "bob"), program=ONLY_THROUGH_HUB)
    assert "new.txt is locked by claude (session ada)" in held.out
    with open(f"/proc/{hub.pid}/environ", "rb") as file:
        assert not {name for name in file.read().split(b"\0") if b"ada" in name}
    assert os.getsid(hub.pid) != os.getsid(0)
    assert "secret-of-ada" not in log_of(environ)
    assert oct((Path(environ["XDG_STATE_HOME"]) / "coord/hub.log").stat().st_mode & 0o777) == "0o600"
    end(hub)
    stale = Path(environ["XDG_RUNTIME_DIR"]) / "coord/hub.sock"
    assert stale.exists()
    (stale.parent / start_hub.ATTEMPT).unlink()
    assert coord(repository, environ, "status").returncode == 0, "a person's command starts one, too"
    assert started(environ).pid != hub.pid


def test_only_one_hub_starts(repository: Path, environ: Environ) -> None:
    assert coord(repository, environ, "init", "--hub").returncode == 0
    for number in range(3):
        assert run_hook(environ, edit(repository, f"s{number}", f"{number}.txt")) == (0, "", "")
    hub = started(environ)
    assert not start_hub.start_hub(environ, str(repository)), "one runs"
    assert read_state(environ) == hub


@pytest.mark.parametrize("how", ["never", "off", "COORD_HUB", "agent", "sandbox"])
def test_nobody_starts_a_hub_that_nobody_wants(repository: Path, environ: Environ, how: str) -> None:
    """Without `coord init --hub`, after `--hub=off`, and from an agent's command, which may be confined."""
    words = {"never": [""], "off": ["--hub", "--hub=off"]}.get(how, ["--hub"])
    for each in words:
        assert coord(repository, {**environ, "COORD_HUB": "off"}, "init", *each.split()).returncode == 0
    extra = {
        "COORD_HUB": {"COORD_HUB": "off"},
        "agent": {"CLAUDE_CODE_SESSION_ID": "ada"},
        "sandbox": {"CODEX_SANDBOX": "seatbelt"},
    }.get(how, {})
    assert coord(repository, {**environ, **extra}, "status").returncode == 0
    if how != "agent":
        assert run_hook({**environ, **extra}, edit(repository, "ada")) == (0, "", "")
    assert not attempted(environ)


def test_an_agent_cannot_ask_for_it(repository: Path, environ: Environ) -> None:
    done = coord(repository, {**environ, "CLAUDE_CODE_SESSION_ID": "ada"}, "init", "--hub")
    assert (done.returncode, "only people decide" in done.stderr) == (1, True)
    assert not start_hub.is_wanted(environ)


def test_where_coord_is_not_in_use_no_hub_starts(repository: Path, environ: Environ, tmp_path: Path) -> None:
    """A hub creates the store of the folder in which it starts."""
    assert coord(repository, {**environ, "COORD_HUB": "off"}, "init", "--hub").returncode == 0
    made_repository(tmp_path / "other")
    assert run_hook(environ, edit(tmp_path / "other", "ada")) == (0, "", "")
    assert not attempted(environ)
    assert not (tmp_path / "other/.git/coord").exists()


def findings(repository: Path, environ: Environ) -> dict[str, tuple[str, str]]:
    """Return what doctor says about the hub and about Claude Code."""
    done = coord(repository, {**environ, "COORD_OUTPUT": "json"}, "doctor")
    rows = json.loads(done.stdout)["checks"]
    return {row["check"]: (row["state"], row["message"]) for row in rows if row["check"] in ("hub", "claude")}


def test_doctor_describes_the_hub(repository: Path, environ: Environ) -> None:
    """None, one that serves, what a killed one left behind, and one that is wanted."""
    off = {**environ, "COORD_HUB": "off"}
    assert coord(repository, off, "init", "--yes", "--tools", "claude").returncode == 0
    found = findings(repository, environ)
    assert "hub" not in found
    assert re.fullmatch(r"Claude Code: the hook answers in \d+ ms \(p50 of 3\)", found["claude"][1])
    with serving(repository, environ) as hub:
        found = findings(repository, environ)
        assert found["hub"][0] == "ok"
        assert f"(pid {hub.process.pid}, coord 0.1.0) answers in" in found["hub"][1]
        assert re.fullmatch(
            r"Claude Code: the hook answers through the hub in \d+ ms \(p50 of 3\)", found["claude"][1]
        )
        hub.kill()
    state, message = findings(repository, environ)["hub"]
    assert (state, message.endswith("hub.sock is left from a hub that was killed")) == ("warn", True)
    os.unlink(hub.socket)
    start_hub.want(environ, wanted=True)
    (Path(environ["XDG_RUNTIME_DIR"]) / "coord" / start_hub.ATTEMPT).touch()
    assert findings(repository, environ)["hub"] == ("ok", "no hub runs; the next hook or command starts one")


def test_doctor_names_a_hub_of_another_version(repository: Path, environ: Environ) -> None:
    assert coord(repository, {**environ, "COORD_HUB": "off"}, "init").returncode == 0
    code = (
        "import sys; from coord.sdk.remote import wire; wire.VERSION = '9.9.9'\n"
        "from coord.transports.cli.main import main; sys.argv = ['coord', 'serve', '--listen', '-']; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=repository, env=environ, stdout=subprocess.PIPE, text=True
    ) as hub:
        try:
            assert hub.stdout is not None
            assert '"ok":true' in hub.stdout.readline()
            state, message = findings(repository, environ)["hub"]
            assert state == "warn"
            assert "has version 9.9.9, this coord 0.1.0; nobody uses it" in message
        finally:
            hub.kill()
