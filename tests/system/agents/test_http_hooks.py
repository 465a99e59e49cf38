"""A real Claude Code whose hooks go to the hub by HTTP: whatever is wrong with the hub stops its edits."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.agents.drive import running_agent
from tests.support.agents.prepared import client_of, environ_of, locks
from tests.support.agents.programs import command_of
from tests.support.agents.script import Edit, Pause, Read, Script, SubAgent
from tests.support.agents.sessions import Place, make_place
from tests.support.hub.process import serving

MEET_S = 90
LIMIT = {"COORD_HOOK_DEADLINE": "2"}


def run(place: Place, environ: Mapping[str, str], *words: str) -> str:
    command = [sys.executable, "-m", "coord", *words]
    done = subprocess.run(
        command, cwd=place.repository, env=dict(environ), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_claude(folder: Path) -> Place:
    """Return a place where the real Claude Code is on the PATH, which `coord init` asks for its version."""
    program = command_of("claude")
    if program is None:
        pytest.skip("the coding agents are not installed (tools/setup agents)")
    place = make_place(folder)
    place.home.mkdir()
    (folder / "bin").mkdir()
    (folder / "bin/claude").symlink_to(program[0])
    return place


def test_only_a_hub_that_answers_lets_claude_write(tmp_path: Path) -> None:
    """SVC-2, INT-5: a held file, a frozen hub, a revoked token and a hub that is gone refuse."""
    place = with_claude(tmp_path)
    frozen, thawed, revoked, down = Pause(), Pause(), Pause(), Pause()
    script: Script = (
        Read("old.txt"),
        Edit("free.txt", "new\n"),
        Edit("held.txt", "stolen\n"),
        SubAgent((Edit("child.txt", "child\n"),)),
        frozen,
        Edit("frozen.txt", "x\n"),
        thawed,
        Edit("thawed.txt", "thawed\n"),
        revoked,
        Edit("revoked.txt", "x\n"),
        down,
        Edit("down.txt", "x\n"),
    )
    with tempfile.TemporaryDirectory(prefix="ch-") as runtime:
        path = f"{tmp_path}/bin:{os.environ['PATH']}"
        environ = {**environ_of(place), **LIMIT, "XDG_RUNTIME_DIR": runtime, "PATH": path}
        run(place, environ, "init", "--yes", "--tools", "claude")
        with serving(place.repository, environ) as hub, client_of(place, "bob") as bob:
            bob.acquire("held.txt", reason="rework", ttl_s=3600)
            run(place, environ, "init", "--hub=http", "--yes", "--tools", "claude")
            (place.home / ".local/state/coord/hub.start").unlink()  # no hook starts another hub
            exported = run(place, environ, "token", "export")
            variable, _, token = exported.removeprefix("export ").strip().partition("=")
            settings = (place.repository / ".claude/settings.local.json").read_text()
            assert token not in settings
            assert json.loads(settings)["hooks"]["PreToolUse"][0]["hooks"][0]["url"].startswith(hub.url)
            needs = {**LIMIT, "XDG_RUNTIME_DIR": runtime, variable: token}
            with running_agent("claude", script, place.repository, place.home, environment=needs) as agent:
                assert frozen.reached.wait(MEET_S), (place.home / "err").read_text()
                owner = locks(place)["file:free.txt"].owner
                with client_of(place, "eve") as eve:
                    assert eve.show(owner).pid == agent.process.pid
                activity = json.loads(run(place, environ, "--json", "log", "activity", "--type", "file_read"))
                read = [(each["agent_id"], each["summary"]) for each in activity["activity"]]
                assert read == [(owner, "Read old.txt")], "AUD-5"
                os.kill(hub.process.pid, signal.SIGSTOP)
                frozen.go.set()
                assert thawed.reached.wait(MEET_S)
                os.kill(hub.process.pid, signal.SIGCONT)
                thawed.go.set()
                assert revoked.reached.wait(MEET_S)
                assert "file:frozen.txt" not in locks(place), "the hub woke up too late for it"
                (known,) = json.loads(run(place, environ, "--json", "token", "list"))["tokens"]
                run(place, environ, "token", "revoke", known["id"])
                revoked.go.set()
                assert down.reached.wait(MEET_S)
                hub.kill()
                down.go.set()
                agent.wait()
        results = agent.model.results()
    names = ("free", "child", "thawed", "held", "frozen", "revoked", "down")
    written = [name for name in names if place.read(f"{name}.txt") is not None]
    assert written == ["free", "child", "thawed"], results
    told = "\n".join(results)
    assert "held.txt is locked by session bob" in told
    assert "timed out; blocking" in told
    assert "HTTP 401" in told
    assert "ECONNREFUSED" in told
