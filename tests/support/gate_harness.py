"""A real repository with gates before it, sessions that work in it, and a person."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from coord.integrations.git.gate import main as gate_main
from coord.integrations.git.gate.stubs import LOCAL_HOOKS, stub_text
from coord.integrations.git.gate.upstream import note_trusted
from coord.sdk.client.client import Client, connect
from tests.support.git_folders import PLAIN

CLIENT = gate_main.__file__
SETTINGS = {
    "user.name": "a",
    "user.email": "a@b",
    "protocol.file.allow": "always",
    "init.defaultBranch": "main",
    "advice.detachedHead": "false",
}


class Ended(NamedTuple):
    """How git ended, and what it and its hooks said."""

    code: int
    out: str
    said: str


class GateHarness:
    """A worktree of a repository with gates; `git("ann", …)` runs git in the name of a session."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.home = home

    def environ(self, session: str = "") -> dict[str, str]:
        """Return what a session's commands see; a person's, without its name."""
        kept = {name: PLAIN[name] for name in ("PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")}
        found = {**kept, "HOME": str(self.home), "XDG_STATE_HOME": str(self.home), "USER": "pat"}
        found |= {"GIT_CONFIG_COUNT": str(len(SETTINGS)), "GIT_EDITOR": "true"}
        for number, (key, value) in enumerate(SETTINGS.items()):
            found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return found | ({"COORD_SESSION_ID": session} if session else {})

    def git(
        self, session: str, *arguments: str, more: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Ended:
        """Run git, in the name of a session or with '' of a person."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**self.environ(session), **(more or {})},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(done.returncode, done.stdout.strip(), done.stderr)

    def ok(self, session: str, *arguments: str, more: Mapping[str, str] | None = None) -> str:
        """Run git, which must succeed."""
        done = self.git(session, *arguments, more=more)
        assert done.code == 0, done
        return done.out

    def plain(self, *arguments: str) -> str:
        """Run git to prepare or to look at something: without gates, which cost time."""
        return self.ok("", "-c", "core.hooksPath=/dev/null", *arguments)

    def refused(self, session: str, *arguments: str, more: Mapping[str, str] | None = None) -> str:
        """Run git, which a gate must refuse; return what was said."""
        done = self.git(session, *arguments, more=more)
        assert done.code != 0, done
        assert "coord: refused" in done.said, done
        return done.said

    def client(self, session: str) -> Client:
        """Connect in the name of a session."""
        return connect(session=session, cwd=str(self.folder), environ=self.environ(session))

    def lock(self, session: str, *resources: str) -> int:
        """Take locks; return the fence of the first."""
        with self.client(session) as client:
            return client.acquire(resources).locks[0].fence

    def unlock(self, session: str) -> None:
        """Give all locks of a session back."""
        with self.client(session) as client:
            client.unlock()

    def steal(self, session: str, resource: str) -> None:
        """Take a lock by force."""
        with self.client(session) as client:
            client.steal(resource, force=True, reason="test")

    def claim(self, session: str, task: str, *, force: bool = False) -> int:
        """Claim a task; return the generation."""
        with self.client(session) as client:
            if force:
                client.reset_task(task, reason="test")
            reply = client.claim_task(task)
            assert reply.claim is not None, reply
            return reply.claim.generation.generation

    def write(self, path: str, text: str) -> None:
        """Write a file, and put it into the index."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        self.plain("add", "--", path)

    def commit(self, session: str, path: str, text: str, *options: str) -> str:
        """Commit one file, which must succeed; return the commit."""
        self.write(path, text)
        self.ok(session, "commit", "-qm", f"change {path}", *options)
        return self.tip()

    def tip(self, ref: str = "HEAD") -> str:
        """Return the commit at which a ref stands."""
        return self.plain("rev-parse", ref)

    def message(self, ref: str = "HEAD") -> str:
        """Return the message of a commit."""
        return self.plain("log", "-1", "--format=%B", ref)


def gate_program(folder: Path) -> str:
    """Write a program that runs the gate of the package under test, which `-I` would not find."""
    program = folder / "coord-gate.py"
    package = str(Path(CLIENT).parents[4])
    program.write_text(
        f"import runpy, sys\nsys.path.insert(0, {package!r})\n"
        f"runpy.run_path({CLIENT!r}, run_name='__main__')\n"
    )
    return str(program)


def put_stubs(
    folder: Path, hooks: Sequence[str] = LOCAL_HOOKS, *, python: str = sys.executable, client: str = ""
) -> None:
    """Write stubs into a folder of hooks."""
    folder.mkdir(exist_ok=True)
    client = client or gate_program(folder)
    for hook in hooks:
        (folder / hook).write_text(stub_text(hook, python, client, tenant="local"))
        (folder / hook).chmod(0o755)


def made_gated(folder: Path, *, commits: bool = True) -> GateHarness:
    """Make a repository with one commit, gates before it, and its store pinned."""
    folder.mkdir()
    gated = GateHarness(folder / "shop", folder)
    gated.folder.mkdir()
    gated.plain("init", "-q", "-b", "main")
    if commits:
        gated.write("app.py", "1\n2\n3\n")
        gated.write("lib.py", "1\n2\n3\n")
        gated.plain("commit", "-qm", "first")
    put_stubs(gated.folder / ".git/hooks")
    with gated.client("ann") as client:
        client.locks()  # opening it pins it
        assert client.location.repository is not None
        note_trusted(client.location.repository)
    return gated
