"""Real agents whose hook cannot answer or is missing refuse writes; without hooks they do not."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from coord.integrations.setup.tools import BY_NAME
from tests.support.agents.drive import TOOLS, run_agent, running_agent
from tests.support.agents.prepared import ADAS, ada_edits, client_of, coord, prepared, wrong_here
from tests.support.agents.script import Edit, Pause, Script, Shell
from tests.system.agents.test_hooked_agents import OVERWRITES

DEADLINE = {"COORD_HOOK_DEADLINE": "2"}
MEET_S = 90


@pytest.mark.parametrize("tool", TOOLS)
def test_a_stuck_store_is_no_permission(tool: str, tmp_path: Path) -> None:
    """The hook answers before the timeout of its tool: it refuses writes, and the model reads why."""
    place = prepared(tmp_path, tool)
    before, after = Pause(), Pause()
    script: Script = (before, Edit("new.txt", "new\n"), after)
    with (
        closing(
            sqlite3.connect(place.repository / ".git/coord/store/coord.db", isolation_level=None)
        ) as other,
        running_agent(tool, script, place.repository, place.home, environment=DEADLINE) as agent,
    ):
        assert before.reached.wait(MEET_S)
        other.execute("BEGIN EXCLUSIVE")
        before.go.set()
        assert after.reached.wait(MEET_S)
        agent.kill()
        after.go.set()
    assert place.read("new.txt") is None
    assert "the store did not answer within 2.0 s; writes are blocked until" in agent.model.results()[0]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_missing_hook_program_is_no_permission(tool: str, tmp_path: Path) -> None:
    """Without its virtual environment the hook refuses writes, and the doctor names the problem."""
    place = prepared(tmp_path, tool)
    settings = place.repository / BY_NAME[tool].local
    settings.write_text(settings.read_text().replace(sys.executable, f"{tmp_path}/gone/python"))
    outcome = run_agent(tool, (Edit("new.txt", "new\n"),), place.repository, place.home)
    assert place.read("new.txt") is None
    # Gemini does not even send the prompt.
    told = outcome.model.was_told() if tool != "gemini" else outcome.printed + outcome.errors
    assert "gone/python" in told
    assert "hooks" in wrong_here(place)


@pytest.mark.parametrize("tool", TOOLS)
def test_without_hooks_the_same_writes_land(tool: str, tmp_path: Path) -> None:
    """The witness: without the hooks nothing refuses the same calls."""
    place = prepared(tmp_path, tool)
    ada_edits(place)
    with client_of(place, "bob") as bob:
        bob.register()
        bob.acquire("held.txt", ttl_s=3600)
        coord(place, "uninstall")
        kept = [Shell(f"{line}; cat {ADAS} >> seen.txt; echo ada > {ADAS}") for line in OVERWRITES]
        outcome = run_agent(tool, (Edit("held.txt", "stolen\n"), *kept), place.repository, place.home)
    assert place.read("held.txt") == "stolen\n"
    assert (place.read("seen.txt") or "").split() == ["stolen", "stolen", "stolen"]
    assert "coord" not in "".join(outcome.model.results())
