"""Real agents read what others do: with their next tool call, once, and again after a compaction."""

from pathlib import Path

import pytest

from coord.sdk.log_reader import LoggedEvent, logged_events, pages
from tests.support.agents.drive import TOOLS, running_agent
from tests.support.agents.prepared import client_of, environ_of, prepared
from tests.support.agents.script import MAIN, Pause, Read, Script, Shell
from tests.support.agents.sessions import Place
from tests.support.consent import write_configuration

MEET_S = 90
AT_ONCE = "[brief]\nevery_s = 0.001\n"
COMPACTING = {
    "claude": ("--continue",),
    "codex": ("resume", "--last", "-c", "model_auto_compact_token_limit=1"),
}
"""How a compaction is provoked; Gemini CLI compacts only a context that is really long."""
LOCKED, RELEASED = "bob: Acquired lock on src/app.py", "bob: Released lock on src/app.py"


def events(place: Place, *names: str) -> list[LoggedEvent]:
    with client_of(place, "watcher") as watcher:
        found = [each for page in pages(watcher.log, 0) for each in logged_events(page)]
    return [each for each in found if each.event in names]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_lock_of_another_reaches_an_agent_once_and_again_after_compaction(
    tool: str, tmp_path: Path
) -> None:
    """CTX-1, CTX-14, CTX-15, CTX-17: the model is shown it after its next tool call."""
    place = prepared(tmp_path, tool)
    write_configuration(place.repository, AT_ONCE, environ_of(place))
    locked, released = Pause(), Pause()
    script: Script = (
        Read("old.txt"),
        locked,
        Shell("true"),
        Read("old.txt"),
        released,
        Shell("true"),
        Read("old.txt"),
    )
    with client_of(place, "bob") as bob:
        bob.register(role="developer")
        with running_agent(tool, script, place.repository, place.home) as agent:
            assert locked.reached.wait(MEET_S)
            assert LOCKED not in agent.model.was_told()
            bob.acquire("src/app.py", ttl_s=3600)
            locked.go.set()
            assert released.reached.wait(MEET_S)
            told = agent.model.was_told()
            assert told.count(LOCKED) == 1
            assert told.count("- Agent bob (Developer) — idle, No task, Locked: src/app.py") == 1
            bob.unlock("src/app.py")
            released.go.set()
            told = agent.wait().model.was_told()
        assert (told.count(LOCKED), told.count(RELEASED)) == (1, 1)
        check_reads(place)
        if tool in COMPACTING:
            check_compaction(tool, place)


def check_reads(place: Place) -> None:
    """AUD-5: the agent read a file three times within a minute, so its name is in the ledger once."""
    (read,) = events(place, "file.read")
    registered = {each.details["session"] for each in events(place, "session.registered")} - {"bob"}
    assert read.details["resource"] == "file:old.txt"
    assert read.details["session"] in registered


def check_compaction(tool: str, place: Place) -> None:
    """A compacted agent is told the whole crew and the rules, in the epoch that began with it."""
    prompt = "/compact" if tool == "claude" else f"Go on. ({MAIN})"
    place.run(tool, (), hooks=None, arguments=COMPACTING[tool], prompt=prompt)
    (compacted, *_) = events(place, "session.compacted")
    briefs = [each for each in events(place, "brief.delivered") if each.offset > compacted.offset]
    assert compacted.details["epoch"] in [each.details.get("epoch") for each in briefs]
