"""Real agents with the hooks of `coord init`: none writes a file that another one holds."""

from pathlib import Path

import pytest

from coord.integrations.setup.tools import BY_NAME
from coord.integrations.shell_effects.enforcement_files import incidents_of
from tests.support.agents import stand_in_hook
from tests.support.agents.drive import TOOLS, RunningAgent, running_agent
from tests.support.agents.prepared import ADA_S, ADAS, ada_edits, client_of, locks, prepared, wrong_here
from tests.support.agents.script import Edit, Patch, Pause, Read, Script, Shell, SubAgent
from tests.support.agents.sessions import Place

MEET_S = 90
PUSH = "git push origin main"
PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: held.txt\n+patched\n*** End Patch\nEOF"
MOVE = "*** Begin Patch\n*** Update File: old.txt\n*** Move to: held.txt\n@@\n-one\n+two\n*** End Patch\n"
SWITCH = """echo '{"disableAllHooks": true}' > .claude/settings.local.json"""
OVERWRITES = (
    f"echo stolen > {ADAS}",
    f"sed -i s/ada/stolen/ {ADAS}",
    f"python3 -c \"open('{ADAS}', 'w').write('stolen')\"",
)


def hidden_switch(settings: str) -> str:
    """A command that disables hooks without naming the setting."""
    off = "json.dumps({'disable' + 'AllHooks': True})"
    return f"python3 -c \"import json; open('{settings[:3]}' + '{settings[3:]}', 'w').write({off})\""


def meet(pause: Pause, place: Place) -> None:
    assert pause.reached.wait(MEET_S), (place.home / "err").read_text()


@pytest.mark.parametrize("tool", TOOLS)
def test_an_agent_cannot_write_where_another_is_at_work(tool: str, tmp_path: Path) -> None:
    """The hook refuses held files, globs and actions, and no others; a dead agent frees its locks.

    LCK-74, INT-12, SES-21, PRB-2, INT-6.
    """
    place, settings = prepared(tmp_path, tool), BY_NAME[tool].local
    inside, think, switched, end = Pause(), Pause(), Pause(), Pause()
    script: Script = (
        Edit("free.txt", "new\n"),
        Edit("held.txt", "stolen\n"),
        Edit("glob/deep.txt", "stolen\n"),
        Shell(PUSH),
        Shell(PATCH),
        Shell(SWITCH),
        Edit(settings, "{}\n"),
        *((Patch(MOVE),) if tool == "codex" else ()),
        *(Shell(line) for line in OVERWRITES),
        SubAgent((Edit("part.txt", "part\n"), inside, Edit("more.txt", "more\n"))),
        think,
        Edit("next.txt", "next\n"),
        Shell(hidden_switch(settings)),
        switched,
        Edit("held.txt", "stolen\n"),
        end,
        Edit("late.txt", "late\n"),
    )
    with client_of(place, "bob") as bob:
        bob.register()
        bob.acquire("held.txt", reason="rework", ttl_s=3600)
        bob.acquire("**/deep.txt", ttl_s=3600)
        bob.acquire("name:main-push", ttl_s=3600)
        ada_edits(place)
        hooks = stand_in_hook.hooks_for(tool, place.hook_command(tool), ("ConfigChange",))
        watch = hooks if tool == "claude" else None
        with running_agent(tool, script, place.repository, place.home, hooks=watch) as agent:
            meet(inside, place)
            session = check_locks(tool, place)
            inside.go.set()
            meet(think, place)
            bob.send(session, "request", "mind the gap")
            think.go.set()
            meet(switched, place)
            check_switched_off(tool, place, settings)
            switched.go.set()
            meet(end, place)
            agent.kill()
            end.go.set()
        check_files(place, agent.model.was_told())
        check_told(tool, agent.model.was_told(), agent.model.results())
        check_holder(place)
        assert bob.acquire("free.txt").ok, "a killed session holds nothing"


def check_locks(tool: str, place: Place) -> str:
    """An agent holds the files that it edited, and a sub-agent those that the sub-agent edited."""
    found = locks(place)
    session, part = found["file:free.txt"].owner, found["file:part.txt"].owner
    assert found["file:free.txt"].agent == tool
    with client_of(place, "watcher") as watcher:
        parents = {shown.session_id: shown.parent for shown in watcher.peers()}
    assert parents[session] == ""
    if tool == "gemini":  # it does not report which agent acts
        assert part == session
    else:
        assert part.startswith(f"{session}.")
        assert parents[part] == session
    return session


def check_switched_off(tool: str, place: Place, settings: str) -> None:
    """Hooks that were removed from the settings are there again, and the doctor reports who did it."""
    found = place.read(settings) or ""
    assert ("disableAllHooks" in found, "hooks" in found) == (False, True), tool
    assert tool not in wrong_here(place)
    (incident,) = incidents_of(str(place.repository / ".git/coord"))
    assert (incident.path, incident.restored) == (str(place.repository / settings), True)


def check_files(place: Place, told: str) -> None:
    landed = ("free.txt", "part.txt", "more.txt", "next.txt")
    assert [place.read(name) for name in landed] == ["new\n", "part\n", "more\n", "next\n"]
    assert (place.read("old.txt"), place.read(ADAS)) == ("one\n", "ada\n"), told
    assert (place.read("held.txt"), place.read("glob/deep.txt"), place.read("late.txt")) == (None, None, None)


def check_told(tool: str, told: str, results: list[str]) -> None:
    """The model reads the other sessions, the holder, the reason and the next step."""
    assert "there are 2 other sessions working here" in told
    assert "session bob (live)" in told
    free, held, glob, push, patch, switch = results[:6]
    assert "locked" not in free
    assert "held.txt is locked by session bob until" in held
    assert 'for: "rework"' in held
    assert "lock held.txt` waits for it, then read the file again and repeat the edit" in held
    assert "as part of file:**/deep.txt by session bob" in glob
    assert "name:main-push is locked by session bob" in push
    assert tool != "codex" or "held.txt is locked by session bob" in patch
    assert "which configures hooks, and agents may not do that" in switch
    assert f"{BY_NAME[tool].local} configures hooks, and agents may not change it" in told
    changed = f"this command changed {ADAS}, which claude (session {ADA_S}) holds"
    assert told.count(f"{ADAS} is locked by claude (session {ADA_S})") >= 2, "their text shows the write"
    assert (told.count(changed), told.count("coord restored the file")) == (1, 1)
    assert 'from bob (request): "mind the gap"' in told
    assert told.count("held.txt is locked by session bob") >= 2, "the hooks held on"


def check_holder(place: Place) -> None:
    """The holder of the file got a message about the overwrite that no text showed."""
    with client_of(place, ADA_S) as ada:
        found = [message.subject for message in ada.recv(drain=True).messages]
    assert found.count(f"{ADAS} was overwritten") == 1
    assert "changed" in found[-1], "everybody hears of an agent that switches its hooks off"


@pytest.mark.parametrize("tools", [("claude", "codex"), ("gemini", "claude")], ids="-".join)
def test_of_two_agents_that_race_for_a_file_one_gets_it_first(tools: tuple[str, str], tmp_path: Path) -> None:
    """LCK-74: one of two simultaneous tools wins; the other is refused, and gets the file later."""
    place = prepared(tmp_path, *tools)
    starts, thens = [Pause(), Pause()], [Pause(), Pause()]
    scripts: list[Script] = [
        (start, Edit("race.txt", f"{tool}\n"), then, Read("race.txt"), Edit("race.txt", f"{tool} again\n"))
        for tool, start, then in zip(tools, starts, thens, strict=True)
    ]
    homes = [place.home / tool for tool in tools]
    with (
        running_agent(tools[0], scripts[0], place.repository, homes[0]) as one,
        running_agent(tools[1], scripts[1], place.repository, homes[1]) as other,
    ):
        agents = [one, other]
        for pause in starts:
            assert pause.reached.wait(MEET_S)
        for pause in starts:
            pause.go.set()
        for pause in thens:
            assert pause.reached.wait(MEET_S)
        holder = locks(place)["file:race.txt"].agent
        assert place.read("race.txt") == f"{holder}\n"
        winner = tools.index(holder)
        check_race(agents[winner], agents[1 - winner], holder)
        thens[winner].go.set()
        told = agents[winner].wait().model.was_told()
        assert "still holds file:race.txt" in told, "the stop is put off once, to say what is held"
        assert place.read("race.txt") == f"{holder} again\n"
        assert locks(place) == {}, "its end frees what it held"
        thens[1 - winner].go.set()
        agents[1 - winner].wait()
    assert place.read("race.txt") == f"{tools[1 - winner]} again\n"


def check_race(winner: RunningAgent, loser: RunningAgent, holder: str) -> None:
    """Exactly one was refused, and read the name of the holder."""
    assert "is locked" not in winner.model.was_told()
    assert f"race.txt is locked by {holder} (session" in loser.model.results()[0]
