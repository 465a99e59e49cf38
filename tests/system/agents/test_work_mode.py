"""A person stops all agents while real ones are in the middle of their turn, and lets them go on."""

from pathlib import Path

import pytest

from tests.support.agents.drive import TOOLS, running_agent
from tests.support.agents.prepared import coord, locks, prepared
from tests.support.agents.script import Edit, Pause, Read, Say, Script, Shell

MEET_S = 90
WHY = "a key has leaked"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_stop_reaches_an_agent_in_its_turn_and_a_pause_does_not(tool: str, tmp_path: Path) -> None:
    """A pause lets an agent finish what it does; a stop refuses its next edit and command and says why."""
    place = prepared(tmp_path, tool)
    paused, stopped, resumed = Pause(), Pause(), Pause()
    script: Script = (
        Edit("before.txt", "new\n"),
        paused,
        Edit("paused.txt", "new\n"),
        Shell("echo new > paused-shell.txt"),
        stopped,
        Edit("stopped.txt", "new\n"),
        Shell("echo new > stopped-shell.txt"),
        Read("before.txt"),
        resumed,
        Edit("after.txt", "new\n"),
        Shell("echo new > after-shell.txt"),
        Say("done"),
    )
    with running_agent(tool, script, place.repository, place.home) as agent:
        for pause, words in (
            (paused, ("pause", "--reason", "lunch")),
            (stopped, ("stop", "--reason", WHY)),
            (resumed, ("resume", "--reason", "it is replaced")),
        ):
            assert pause.reached.wait(MEET_S), (place.home / "err").read_text()
            if pause is resumed:
                assert "file:paused.txt" in locks(place), "what it has stays"
                assert "file:stopped.txt" not in locks(place)
            coord(place, *words)
            pause.go.set()
        outcome = agent.wait()
    assert outcome.exit_code == 0, outcome.errors
    landed = ("before.txt", "paused.txt", "paused-shell.txt", "after.txt", "after-shell.txt")
    assert {name: place.read(name) for name in landed} == dict.fromkeys(landed, "new\n")
    assert place.read("stopped.txt") is None
    assert place.read("stopped-shell.txt") is None
    told = [WHY in result and "has stopped all agents" in result for result in outcome.model.results()]
    reads_by_shell = tool == "codex"
    assert told == [False, False, False, True, True, reads_by_shell, False, False]
