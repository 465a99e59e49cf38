"""The table "Ways of writing a file" of docs/guarantees.md: each row is a real call between two real hooks.

Ada holds a file and has edited it by a tool. Bob's hook runs before and after what the row says.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import coord
from coord.integrations.git.run import Git
from coord.integrations.git.salvage.salvage import list_salvages
from tests.support.git_folders import PLAIN, added_worktree, git
from tests.support.hook_harness import HookHarness

PAGE = Path(__file__).parents[3] / "docs/guarantees.md"
PROGRAM = Path(coord.__file__).parent / "integrations/hooks/main.py"
OUTCOMES = ("not seen", "reported", "undone", "prevented")
APP, ADAS, BOBS = "src/app.py", "by ada\n", "by bob\n"


class Place(HookHarness):
    """A repository with ada's file, in which bob acts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.where = self.root
        (self.root / "theirs").write_text(BOBS)
        (self.root / "write.py").write_text(f"open({APP!r}, 'w').write({BOBS!r})\n")
        (self.root / "Makefile").write_text(f"all:\n\tcat theirs > {APP}\n")
        (self.root / "change.diff").write_text(f"--- a/{APP}\n+++ b/{APP}\n@@ -1 +1 @@\n-{ADAS}+{BOBS}")
        self.commit("theirs", "write.py", "Makefile", "change.diff")
        self.write(APP, "ada", ADAS)

    def hook(self, event: str, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """Run the real hook program for bob, and return its answer."""
        payload = {
            "session_id": "bob",
            "cwd": str(self.where),
            "hook_event_name": event,
            "tool_name": tool,
            "tool_input": given,
            "tool_use_id": "call-bob",
        }
        done = subprocess.run(
            [sys.executable, "-I", str(PROGRAM), "claude"],
            input=json.dumps(payload).encode(),
            cwd=self.where,
            env={**self.environ, "COORD_HOOK_DEADLINE": "60"},
            capture_output=True,
            check=True,
        )
        answer: dict[str, Any] = json.loads(done.stdout or b"{}").get("hookSpecificOutput", {})
        return answer

    def do(self, line: str) -> None:
        subprocess.run(["sh", "-c", line], cwd=self.where, env=PLAIN, check=False, capture_output=True)

    def call(self, tool: str, given: dict[str, Any], line: str) -> bool:
        """Run a line between the hooks of a call; return whether the call was allowed."""
        if self.hook("PreToolUse", tool, given).get("permissionDecision") == "deny":
            return False
        self.do(line)
        self.hook("PostToolUse", tool, given)
        return True

    def outcome(self, *, allowed: bool) -> str:
        """What became of ada's file."""
        kept = (self.where / APP).exists() and (self.where / APP).read_text() == self.expected
        if not allowed:
            assert kept, "a refused call changes nothing"
            return "prevented"
        with self.client("ada") as ada:
            heard = [each for each in ada.recv(drain=True).messages if each.blob.get("path") == APP]
        if kept and heard:
            return "undone"
        return "reported" if heard else "not seen"

    @property
    def expected(self) -> str:
        return ADAS if self.where == self.root else "app\n"


class Way(NamedTuple):
    """What a row does; a shell line is given to the shell tool as it is."""

    line: str
    tool: str = "Bash"
    given: dict[str, Any] | None = None


def tool(name: str, **given: Any) -> Way:
    return Way(f"cat theirs > {APP}", name, given)


CALLS = {
    "edit tool": tool("Write", file_path=APP, content=BOBS),
    "MCP tool with a field for the file": tool("mcp__idea__reformat_file", pathInProject=APP),
    "MCP tool that does not name the file": tool("mcp__idea__run", configuration="all"),
    "unknown tool": tool("NextYearsTool", anything=1),
    "`echo text > file`": Way(f"echo by bob > {APP}"),
    "`echo text >> file`": Way(f"echo by bob >> {APP}"),
    "`tee file`": Way(f"cat theirs | tee {APP}"),
    "`sed -i`": Way(f"sed -i s/ada/bob/ {APP}"),
    "`cp other file`": Way(f"cp theirs {APP}"),
    "`mv other file`": Way(f"mv theirs {APP}"),
    "`mv file other`": Way(f"mv {APP} elsewhere"),
    "`rm file`": Way(f"rm {APP}"),
    "`rm -rf folder`": Way("rm -rf src"),
    "`ln -sf other file`": Way(f"ln -sf ../theirs {APP}"),
    "`truncate file`": Way(f"truncate -s 0 {APP}"),
    "`dd of=file`": Way(f"dd if=theirs of={APP}"),
    "`chmod +x file`": Way(f"chmod +x {APP}"),
    "`patch`": Way("patch -p1 < change.diff"),
    "`git apply`": Way("git apply change.diff"),
    "`git checkout -- file`": Way(f"git checkout -- {APP}"),
    "`git restore file`": Way(f"git restore {APP}"),
    "`git stash`": Way("git -c user.name=b -c user.email=b@b stash"),
    "`git reset --hard`": Way("git reset --hard"),
    "`git rm -f file`": Way(f"git rm -f {APP}"),
    "`git mv file other`": Way(f"git mv {APP} moved.py"),
    "`python3 -c …`": Way("python3 -c \"open('src/' + 'app.py', 'w').write('by bob')\""),
    "script": Way("python3 write.py"),
    "`make`": Way("make all"),
    "`find … -exec`": Way("find . -name 'app.p*' -exec cp theirs {} ';'"),
}


def in_background(place: Place) -> bool:
    """A process that bob has started writes after the call."""
    place.call("Bash", {"command": "true"}, "true")
    place.do(f"cat theirs > {APP}")
    return place.call("Bash", {"command": "true"}, "true")


def by_editor(place: Place) -> bool:
    """An editor without hooks writes while nobody else does anything; then bob runs a command."""
    (place.root / APP).write_text(BOBS)
    return place.call("Bash", {"command": "true"}, "true")


def in_another_worktree(place: Place) -> bool:
    """Bob works in a worktree of his own."""
    place.where = place.root.parent / "tree"
    added_worktree(place.root, place.where)
    (place.where / "theirs").write_text(BOBS)
    return place.call("Bash", {"command": "make"}, f"cat theirs > {APP}")


def in_another_clone(place: Place) -> bool:
    """A clone has its own store, or none."""
    git(place.root.parent, "clone", "-q", str(place.root), "clone")
    (place.root.parent / "clone" / APP).write_text(BOBS)
    return place.call("Bash", {"command": "true"}, "true")


SCENES: dict[str, Callable[[Place], bool]] = {
    "background process, after its call": in_background,
    "editor or git GUI without hooks": by_editor,
    "another worktree": in_another_worktree,
    "another clone": in_another_clone,
}


def rows() -> dict[str, str]:
    """The table of the page: the way, and its outcome."""
    text = PAGE.read_text().partition("## Ways of writing a file\n")[2].partition("\n## ")[0]
    cells = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {way.strip(): outcome.strip() for way, outcome, *_ in cells[1:]}


def test_the_table_has_every_way() -> None:
    """No row is without a test, and no test without a row."""
    assert set(rows()) == {*CALLS, *SCENES}
    assert set(rows().values()) <= set(OUTCOMES)


@pytest.mark.parametrize("way", [*CALLS, *SCENES])
def test_a_way_of_writing_has_its_outcome(way: str, tmp_path: Path) -> None:
    """The file of the holder is as the page says; what was written over it is kept."""
    place = Place(tmp_path)
    if way in SCENES:
        allowed = SCENES[way](place)
    else:
        step = CALLS[way]
        given = {"command": step.line} if step.given is None else step.given
        allowed = place.call(step.tool, given, step.line)
    outcome = place.outcome(allowed=allowed)
    assert outcome == rows()[way]
    if outcome == "undone" and (way in SCENES or "theirs >" in CALLS[way].line):
        (salvage,) = list_salvages(Git(str(place.root)), "bob")
        assert git(place.root, "show", f"{salvage.ref}:{APP}") == BOBS.strip()
