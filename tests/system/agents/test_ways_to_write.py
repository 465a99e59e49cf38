"""The 15 cases of three real agents, after a plain `coord init --yes`: no way of writing changes a held file.

Five ways (CASES) for each of the three programs, in each kind of folder (FOLDERS). One session of an agent
tries all five. `coord init` finds none of the programs on its PATH.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coord.integrations.hooks import main as program
from coord.sdk.client.client import connect
from coord.sdk.log_reader import logged_events, pages
from tests.support.agents import mcp_server
from tests.support.agents.drive import PATIENT, TOOLS, Outcome, run_agent
from tests.support.agents.script import Mcp, McpCall, Replace, Script, Shell, Step
from tests.support.agents.sessions import Place, make_place

OLD, WORK, STOLEN = "committed", "the work of bob", "stolen"
CASES: dict[str, Step] = {
    "edit.txt": Replace("edit.txt", WORK, STOLEN),
    "deep/glob.txt": Replace("deep/glob.txt", WORK, STOLEN),
    "redirected.txt": Shell(f"echo {STOLEN} > redirected.txt"),
    "sed.txt": Shell(f"sed -i 's/{WORK}/{STOLEN}/' sed.txt"),
    "checked-out.txt": Shell("git checkout -- checked-out.txt"),
}
GLOB, SEEN = "deep/*.txt", "checked-out.txt"
BY_MCP, READ_BY_MCP = "by-mcp.txt", "redirected.txt"
"""A sixth way: the tool of an MCP server, of which hooks know neither the name nor the fields."""
FILES = (*CASES, BY_MCP)
SERVER = (sys.executable, mcp_server.__file__)
FOLDERS = ("repository", "worktree of coord", "worktree of git")
COORD = f"{sys.executable} -m coord.transports.cli.main"
FINE = "fine.txt"
ATTACK = """
for name in ("hooks/pre-commit", "config", "coord/coord.id", "coord/setup.json"):
    try:
        open("{common}/" + name, "a").write("x")
        print("WROTE", name)
    except OSError as error:
        print(error)
"""
"""A program that hooks cannot read: only the sandbox stops it."""


def plain_path() -> str:
    """A PATH with git and a shell, and without any of the agents."""
    found = f"{Path(shutil.which('git') or '/usr/bin/git').parent}:{os.defpath}"
    assert not any(shutil.which(tool, path=found) for tool in TOOLS)
    return found


def environ_of(place: Place) -> dict[str, str]:
    return {"HOME": str(place.home), "USER": "somebody", "PATH": plain_path(), **PATIENT}


def call(place: Place, folder: Path, *words: str) -> None:
    subprocess.run(words, cwd=folder, env=environ_of(place), check=True, capture_output=True)


def prepared(folder: Path, kind: str) -> tuple[Place, Path]:
    """Set up a repository as a user does; return it, and the folder in which the agents work."""
    place = make_place(folder)
    place.home.mkdir()
    for name in FILES:
        (place.repository / name).parent.mkdir(exist_ok=True)
        (place.repository / name).write_text(f"{OLD}\n")
    call(place, place.repository, "git", "add", ".")
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    call(place, place.repository, "git", *identity, "commit", "-q", "-m", "files")
    call(place, place.repository, *COORD.split(), "init", "--yes")
    where = place.repository
    if kind == "worktree of coord":
        call(place, place.repository, *COORD.split(), "--session", "bob", "worktree", "add", "side")
        (line,) = [each for each in worktrees(place) if each != place.repository]
        where = line
    elif kind == "worktree of git":
        where = place.repository.parent / "side"
        call(place, place.repository, "git", "worktree", "add", "-q", str(where))
    return place, where


def worktrees(place: Place) -> list[Path]:
    listed = subprocess.run(
        ["git", "worktree", "list", "--porcelain"],
        cwd=place.repository,
        check=True,
        capture_output=True,
        text=True,
    )
    rows = [row for row in listed.stdout.splitlines() if row.startswith("worktree ")]
    return [Path(row.removeprefix("worktree ")) for row in rows]


def edit_with_hooks(place: Place, path: Path) -> None:
    """Let bob edit a file with a tool that tells the hook of it."""
    edit = {"tool_name": "Write", "tool_input": {"file_path": str(path)}, "tool_use_id": "call-1"}
    for event in ("PreToolUse", "PostToolUse"):
        told = {"session_id": "bob", "cwd": str(path.parent), "hook_event_name": event, **edit}
        command = [sys.executable, "-I", program.__file__, "claude"]
        subprocess.run(command, input=json.dumps(told).encode(), env=environ_of(place), check=True)
        path.write_text(f"{WORK}\n")


@contextmanager
def bob_works(place: Place, where: Path) -> Iterator[None]:
    """Bob holds every file, and has changed it without committing it; hooks saw only one of the changes."""
    for name in FILES:
        if name == SEEN:
            edit_with_hooks(place, where / name)
        else:
            (where / name).write_text(f"{WORK}\n")
    with connect(session="bob", cwd=str(where), environ=environ_of(place)) as bob:
        bob.register()
        names = [name for name in FILES if "glob" not in name]
        assert bob.acquire([*names, GLOB], ttl_s=3600, reason="rework").ok
        yield


def server_arguments(tool: str, home: Path) -> tuple[str, ...]:
    """Configure the MCP server as a user does; return what has to be said on the command line."""
    server = {"command": SERVER[0], "args": SERVER[1:]}
    if tool == "claude":
        return ("--mcp-config", json.dumps({"mcpServers": {"files": server}}), "--strict-mcp-config")
    if tool == "codex":
        return ("-c", f'mcp_servers.files={{command="{SERVER[0]}",args=["{SERVER[1]}"]}}')
    settings = home / ".gemini/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"mcpServers": {"files": {**server, "trust": True}}}))
    return ()


def check(outcome: Outcome, where: Path, files: Iterable[str]) -> None:
    """Every byte of bob is there, the agent read about each file, and a free file was written."""
    told = outcome.model.was_told()
    assert {name: (where / name).read_text() for name in FILES} == dict.fromkeys(FILES, f"{WORK}\n"), told
    for name in files:
        # Refused before the call, undone after it, or out of reach of git in a sandbox.
        signs = (
            f"{name} is locked",
            f"changed {name}",
            "index.lock" if name == SEEN else name + " is locked",
        )
        assert any(sign in told for sign in signs), (name, told)
    assert told.count("bob") >= len(CASES)
    assert (where / FINE).read_text() == "fine\n", told


@pytest.mark.parametrize("kind", FOLDERS)
@pytest.mark.parametrize("tool", TOOLS)
def test_no_way_changes_a_held_file(tool: str, kind: str, tmp_path: Path) -> None:
    """Issue 15: hooks are there from the first moment, whether or not a program is on the PATH."""
    place, where = prepared(tmp_path, kind)
    read = McpCall("files", mcp_server.READER, {"path": str(where / READ_BY_MCP)})
    script: Script = (*CASES.values(), Mcp(BY_MCP, STOLEN), read, Shell(f"echo fine > {FINE}"))
    arguments = server_arguments(tool, place.home)
    with bob_works(place, where):
        check(run_agent(tool, script, where, place.home, arguments=arguments), where, FILES)
    assert f"file:{READ_BY_MCP}" in reads(place), "AUD-5"


def reads(place: Place) -> list[str]:
    """Return the files that the ledger says were read, by agents and not by bob."""
    with connect(cwd=str(place.repository), environ=environ_of(place), session="eve") as eve:
        found = [each for page in pages(eve.log, 0) for each in logged_events(page)]
    return [each.details["resource"] for each in found if each.event == "file.read"]


@pytest.mark.parametrize("kind", FOLDERS)
def test_in_the_sandbox_of_codex(kind: str, tmp_path: Path) -> None:
    """The same, and the commands of the model use the store; they can change nothing else of git or coord."""
    place, where = prepared(tmp_path, kind)
    common = place.repository / ".git"
    script: Script = (
        *CASES.values(),
        Shell(f"echo fine > {FINE}"),
        Shell(f"{COORD} lock mine.txt"),
        Shell(f"{COORD} locks"),
        Shell(f"echo mine > mine.txt; {COORD} commit -m mine"),
        Shell(f"{sys.executable} attack.py"),
    )
    (where / "attack.py").write_text(ATTACK.format(common=common))
    before = {path: path.read_bytes() for path in (common / "hooks").iterdir()}
    with bob_works(place, where):
        outcome = run_agent("codex", script, where, place.home, sandboxed=True)
        check(outcome, where, CASES)
    lock, listed, commit, attack = outcome.model.results()[-4:]
    assert "Lock acquired ✓ file:mine.txt" in lock
    assert '"owner":"bob"' in listed
    assert "coord commit needs git, and" in commit
    assert "WROTE" not in attack
    assert attack.count("Read-only file system") == 4, attack
    assert {path: path.read_bytes() for path in (common / "hooks").iterdir()} == before
