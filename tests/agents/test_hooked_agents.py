"""The real Claude Code, Codex and Gemini CLI under the hooks: they cannot write where another is at work."""

import sys
from pathlib import Path

import pytest

from coord.agents.hooks import client as program
from coord.core.replies import LockShown
from coord.sdk.client import Client, connect
from coord.sdk.opening import initialise
from tests.agents import stand_in_hook
from tests.agents.drive import TOOLS, running_agent
from tests.agents.script import Edit, Pause, Script, Shell, SubAgent
from tests.agents.sessions import Place, make_place

PUSH = "git push origin main"
PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: held.txt\n+patched\n*** End Patch\nEOF"
SWITCH = """echo '{"disableAllHooks": true}' > .claude/settings.local.json"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = make_place(tmp_path)
    initialise(str(place.repository), environ_of(place))
    return place


def environ_of(place: Place) -> dict[str, str]:
    return {"HOME": str(place.home), "USER": "somebody"}


def client_of(place: Place, session: str) -> Client:
    return connect(session=session, cwd=str(place.repository), environ=environ_of(place))


def hooks(tool: str) -> dict[str, object]:
    command = f"exec {sys.executable} -I {program.__file__} {tool}"
    found: dict[str, object] = stand_in_hook.hooks_for(tool, command)
    return found


def locks(place: Place) -> dict[str, LockShown]:
    with client_of(place, "watcher") as watcher:
        return {lock.resource: lock for lock in watcher.locks()}


@pytest.mark.parametrize("tool", TOOLS)
def test_an_agent_cannot_write_where_another_is_at_work(tool: str, place: Place) -> None:
    """LCK-74, INT-12, SES-21: held files, globs and actions are refused; the rest goes on; death frees."""
    end = Pause()
    script: Script = (
        Edit("free.txt", "new\n"),
        Edit("held.txt", "stolen\n"),
        Edit("glob/deep.txt", "stolen\n"),
        Shell(PUSH),
        Shell(PATCH),
        Shell(SWITCH),
        SubAgent((Edit("part.txt", "part\n"),)),
        end,
        Edit("late.txt", "late\n"),
    )
    with client_of(place, "bob") as bob:
        bob.register()
        bob.acquire("held.txt", reason="rework", ttl_s=3600)
        bob.acquire("glob", ttl_s=3600)
        bob.acquire("name:main-push", ttl_s=3600)
        with running_agent(tool, script, place.repository, place.home, hooks=hooks(tool)) as agent:
            assert end.reached.wait(90), (place.home / "err").read_text()
            session = check_locks(tool, place)
            bob.send(session, "request", "mind the gap")
            agent.kill()
            end.go.set()
        check_files(place)
        results = agent.model.results()
        check_told(tool, agent.model.was_told(), results)
        assert bob.acquire("free.txt").ok, "a killed session holds nothing"


def check_locks(tool: str, place: Place) -> str:
    """What the agent edited is locked in its name, what its sub-agent edited too; return the session."""
    found = locks(place)
    session = found["file:free.txt"].owner
    assert found["file:free.txt"].agent == tool
    # A sub-agent that ended left its edits to the session.
    assert found["file:part.txt"].owner.partition(".")[0] == session
    with client_of(place, "watcher") as watcher:
        parents = {shown.session_id: shown.parent for shown in watcher.peers()}
    assert parents[session] == ""
    return session


def check_files(place: Place) -> None:
    assert (place.read("free.txt"), place.read("part.txt")) == ("new\n", "part\n")
    assert (place.read("held.txt"), place.read("glob/deep.txt"), place.read("late.txt")) == (None, None, None)
    assert place.read(".claude/settings.local.json") is None


def check_told(tool: str, told: str, results: list[str]) -> None:
    """The model reads who is there, who is in the way, why, and what to do."""
    assert "there is 1 other session at work here: session bob (live)" in told
    free, held, glob, push, patch, switch = results[:6]
    assert "locked" not in free
    assert "held.txt is locked by session bob until" in held
    assert "for: rework" in held
    assert "lock held.txt" in held
    assert "as part of file:glob by session bob" in glob
    assert "name:main-push is locked by session bob" in push
    assert tool != "codex" or "held.txt is locked by session bob" in patch
    assert "configuration of hooks" in switch


def test_a_message_comes_into_the_next_turn(place: Place) -> None:
    """MSG: what another session sends is read at the next boundary of a tool."""
    think = Pause()
    script: Script = (Edit("one.txt", "1\n"), think, Edit("two.txt", "2\n"))
    with running_agent("claude", script, place.repository, place.home, hooks=hooks("claude")) as agent:
        assert think.reached.wait(90), (place.home / "err").read_text()
        with client_of(place, "bob") as bob:
            bob.send(locks(place)["file:one.txt"].owner, "request", "mind the gap")
        think.go.set()
        outcome = agent.wait()
    assert "from bob (request): mind the gap" in outcome.model.was_told()
    assert "still holds" in outcome.model.was_told(), "the stop is put off once, to say what is held"
    assert locks(place) == {}, "its end frees what it held"
