"""Who acts, with real tools, hooks, terminals and commands: killed tools, resumed sessions, one terminal.

The scripts run in a terminal session of their own (`setsid`), as a person's terminal does.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import join
from typing import Any

import msgspec
import pytest

from coord.core.lifecycle.commands import Register
from coord.host.processes import describe
from coord.integrations.hooks import main as hook_main
from coord.sdk.client.client import connect
from tests.support.git_folders import git, made_repository
from tests.support.programs import tool_with_hook
from tests.support.servers.server import poll_until

COORD = (sys.executable, "-m", "coord.transports.cli.main")
HOOK = (sys.executable, "-I", "-S", hook_main.__file__)
TOOL = """
import json, os, subprocess, sys
for told in json.loads(sys.argv[1]):
    done = subprocess.run(sys.argv[2:], input=json.dumps(told), capture_output=True, text=True)
    answer = json.loads(done.stdout or "{}").get("hookSpecificOutput", {})
    denied = answer.get("permissionDecisionReason", done.stderr.strip())
    print(told["hook_event_name"], denied or "allowed", flush=True)
os.kill(os.getpid(), 9)
"""
"""An agent tool that sends events to its hook, prints the answers, and is killed."""
ADOPTS = (
    "import ctypes, subprocess, sys\n"
    "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"  # PR_SET_CHILD_SUBREAPER
    "subprocess.run(sys.argv[1:])\n"
    "sys.stdin.read()\n"
)


class Place:
    """A repository with coord, and terminals in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "shop"
        made_repository(self.root)
        self.environ = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(folder),
            "USER": "pat",
        }
        assert self.coord("init", "--yes", "--tools", "claude").returncode == 0

    def coord(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        env = {**self.environ, **environ}
        return subprocess.run(
            [*COORD, *words], env=env, cwd=self.root, capture_output=True, text=True, check=False
        )

    def terminal(self, *lines: str) -> str:
        """Run the lines of a script in a new terminal; return all that it showed."""
        script = f'coord() {{ {" ".join(COORD)} "$@"; }}\n' + "\n".join(lines)
        done = subprocess.run(
            ["setsid", "--wait", "bash", "-c", script],
            env=self.environ,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    def told(self, session: str, name: str, path: str = "") -> dict[str, Any]:
        """An event of a session: its start, or an edit of a file."""
        told = {"session_id": session, "cwd": str(self.root), "hook_event_name": name}
        if path:
            given = {"file_path": str(self.root / path), "content": "x"}
            told |= {"tool_name": "Write", "tool_input": given, "tool_use_id": "call"}  # type: ignore[dict-item]
        return told

    def tool(self, *events: dict[str, Any]) -> str:
        """The words that run a tool with these events."""
        return f"env CLAUDECODE=1 {join([sys.executable, '-c', TOOL, json.dumps(events), *HOOK, 'claude'])}"

    def sessions(self) -> dict[str, int]:
        """The sessions that have not ended, with their pids."""
        done = self.coord("peers", "--json", COORD_SESSION_ID="onlooker")
        return {each["session_id"]: each["pid"] for each in json.loads(done.stdout)["peers"]}


def owners_in(shown: str) -> dict[str, str]:
    """The locks and their owners, as the last `coord locks` of a terminal showed them."""
    answers = [line for line in shown.splitlines() if line.startswith('{"ok":true,"locks"')]
    return {lock["resource"]: lock["owner"] for lock in json.loads(answers[-1])["locks"]}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("adopts", [False, True], ids=["adopted by pid 1", "adopted by another"])
@pytest.mark.parametrize("name", ["SessionStart", "PreToolUse"])
def test_a_tool_killed_while_its_hook_starts_leaves_nothing(place: Place, name: str, adopts: bool) -> None:
    """Issue 15, attack 1: the orphaned hook registers nothing, and people commit as themselves."""
    told = place.told("doomed", name, "src/app.py" if name == "PreToolUse" else "")
    log = place.root.parent / "answer"
    command = ["sh", "-c", f"{' '.join(HOOK)} claude; echo ended > {log}"]
    options = {"result": "-", "command": command, "payload": json.dumps(told)}
    before = (sys.executable, "-c", ADOPTS) if adopts else ()
    with subprocess.Popen(
        [*before, sys.executable, tool_with_hook.__file__, "tool", json.dumps(options)],
        env=place.environ,
        cwd=place.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as tool:
        assert tool.stdout is not None
        assert tool.stdout.readline() == "ready\n"
        children = Path(f"/proc/{tool.pid}/task/{tool.pid}/children").read_text().split()
        os.kill(int(children[0]) if adopts else tool.pid, 9)
        poll_until(log.exists, 30, "the orphaned hook does not end")
    assert "doomed" not in place.sessions()
    shown = place.terminal(
        "coord lock README.md; echo text > README.md; git add README.md; git commit -q -m more; coord status"
    )
    assert "doomed" not in shown
    assert "Coord-Session" not in git(place.root, "log", "-1", "--format=%B")


def test_a_resumed_session_gets_its_identity_back(place: Place) -> None:
    """Issue 15: the tool's session id wins over the person who used the same terminal since."""
    start, edit = place.told("s1", "SessionStart"), place.told("s1", "PreToolUse", "README.md")
    shown = place.terminal(
        place.tool(start, edit),
        "coord unlock README.md --session s1; coord lock README.md; coord unlock README.md",
        place.tool({**start, "source": "resume"}, edit),
        "coord locks --json",
    )
    assert shown.count("PreToolUse allowed") == 2, shown
    assert '"owner":"s1"' in shown.replace(" ", "")


def test_a_terminal_acts_as_a_named_session_again(place: Place) -> None:
    """Issue 15: register as ada, act as the person of the terminal, and act as ada again."""
    shown = place.terminal(
        "set -e",
        "export COORD_SESSION_ID=ada; coord register; coord lock a.py",
        "unset COORD_SESSION_ID; coord lock b.py",
        "export COORD_SESSION_ID=ada; coord lock c.py; coord unlock a.py",
        "coord locks --json",
    )
    owners = owners_in(shown)
    assert owners["file:c.py"] == "ada", shown
    assert owners["file:b.py"].startswith("pat@"), "the person's lock stays the person's"
    assert "file:a.py" not in owners


def test_an_agent_acts_for_no_other_and_for_no_person(place: Place) -> None:
    """The protection stays: whatever variables a command of an agent drops or sets, it acts as its agent."""
    agent = (
        "import json, os, subprocess, sys\n"
        "hook, coord = json.loads(sys.argv[1])\n"
        "told = json.dumps({'session_id': 'agent', 'hook_event_name': 'SessionStart', 'cwd': os.getcwd()})\n"
        "subprocess.run(hook, input=told, capture_output=True, text=True, check=True)\n"
        "for name in ('', 'victim', 'other'):\n"
        "    env = {**os.environ, 'COORD_SESSION_ID': name}\n"
        "    words = [*coord, 'lock', f'{name or 0}.py']\n"
        "    done = subprocess.run(words, env=env, capture_output=True, text=True)\n"
        "    print(done.returncode, done.stderr.strip())\n"
    )
    place.coord("register", COORD_SESSION_ID="victim")
    (place.root / "agent.py").write_text(agent)
    words = json.dumps([[*HOOK, "claude"], list(COORD)])
    shown = place.terminal(f"coord lock z.py; {sys.executable} agent.py '{words}'; coord locks --json")
    assert "this terminal already acts as agent" in shown
    owners = owners_in(shown)
    assert owners["file:0.py"] == "agent", "a command without variables is the agent's, not a person's"
    assert "file:victim.py" not in owners
    assert owners["file:other.py"] == "other", "a new name is a further session"


def bind_to_init(place: Place) -> None:
    """Bind a session to pid 1, as earlier versions of coord did, and let it hold two locks."""
    process = describe(1)
    assert process is not None
    environ = {**place.environ, "COORD_SESSION_ID": "doomed"}
    with connect(cwd=str(place.root), environ=environ) as client:
        caller = msgspec.structs.replace(client.caller, process=process, process_ancestors=(process,))
        client.call(Register(caller=caller))
    assert place.coord("lock", "src/app.py", "name:release", COORD_SESSION_ID="doomed").returncode == 0


def dereg(place: Place) -> None:
    assert place.coord("dereg", "doomed").returncode == 0


def fix(place: Place) -> None:
    found = place.coord("doctor", "--json")
    (check,) = [each for each in json.loads(found.stdout)["checks"] if each["check"] == "processes"]
    assert check["state"] == "bad"
    assert "doomed names pid 1" in check["message"]
    assert check["hint"] == "coord doctor --fix"
    place.coord("doctor", "--fix")


def steal(place: Place) -> None:
    assert place.coord("steal", "name:release", "--dead-owner").returncode == 0


@pytest.mark.parametrize("way_out", [dereg, fix, steal])
def test_a_session_bound_to_init_locks_nobody_out(place: Place, way_out: Callable[[Place], None]) -> None:
    """A session that an earlier version bound to pid 1 stands above nobody, and anybody can end it."""
    bind_to_init(place)
    assert place.sessions()["doomed"] == 1
    for environ in ({}, {"COORD_SESSION_ID": "ada"}):
        assert place.coord("lock", "new.py", **environ).returncode == 0
        assert place.coord("unlock", "new.py", **environ).returncode == 0
    way_out(place)
    assert "doomed" not in place.sessions()
