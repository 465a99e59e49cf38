"""The ledger of hooks: which files the tools of a session read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coord.integrations.hooks.tools import codex, gemini
from coord.sdk.log_reader import logged_events
from tests.support.consent import write_configuration
from tests.support.git_folders import git
from tests.support.hook_harness import HOOK_WAYS, HookHarness, answered_by


class ReadingHarness(HookHarness):
    """Sessions that read files."""

    def read(self, path: str, session: str = "ada", **fields: Any) -> None:
        """A call of Claude Code that only reads: its hook runs afterwards only."""
        call = {"tool_name": "Read", "tool_input": {"file_path": str(self.root / path)}, "tool_use_id": "r"}
        self.after({"session": session, **call, **fields})

    def tool(self, name: str, session: str = "ada", **given: Any) -> None:
        self.after({"session": session, "tool_name": name, "tool_input": given, "tool_use_id": "t"})

    def run(self, line: str, session: str = "ada") -> None:
        call = self.shell(line, session)
        self.before(call)
        self.after(call)

    def reads(self) -> list[tuple[str, str]]:
        with self.client("watcher") as client:
            events = list(logged_events(client.log.tail(0, 10_000)))
        return [
            (each.details["session"], each.details["resource"])
            for each in events
            if each.event == "file.read"
        ]

    def head(self) -> int:
        with self.client("watcher") as client:
            return client.log.load([]).read_point.offset

    def waiting(self) -> list[Path]:
        folder = Path(self.environ["HOME"]) / ".local/state/coord/reads"
        return sorted(folder.iterdir()) if folder.is_dir() else []


@pytest.fixture
def direct(tmp_path: Path) -> ReadingHarness:
    """A scene without a hub, for tables of tools: a hub parses events with the same code."""
    return ReadingHarness(tmp_path)


@pytest.fixture(params=HOOK_WAYS)
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ReadingHarness]:
    with answered_by(request.param, ReadingHarness(tmp_path)) as found:
        found.run("true")
        yield found


def test_a_read_is_in_the_ledger_with_the_next_commit(scene: ReadingHarness) -> None:
    """AUD-5: file_read; no commit is made for it."""
    before = scene.head()
    scene.read("src/app.py")
    scene.read("src/app.py")
    scene.read("new.txt")
    assert scene.head() == before
    assert scene.reads() == []
    (waiting,) = scene.waiting()
    assert waiting.read_text() == "file:src/app.py\n"
    scene.write("other.txt")
    assert scene.reads() == [("ada", "file:src/app.py")]
    assert scene.waiting() == []
    scene.read("src/app.py")
    scene.write("other.txt")
    assert len(scene.reads()) == 1


def test_another_session_takes_nothing_along(scene: ReadingHarness) -> None:
    scene.read("src/app.py")
    scene.write("other.txt", "bob")
    assert scene.reads() == []
    scene.tell("SessionEnd", "bob", reason="other")
    assert scene.reads() == []
    scene.tell("SessionEnd", reason="other")
    assert scene.reads() == [("ada", "file:src/app.py")]
    assert scene.waiting() == []


def test_a_sub_agent_reads_for_itself(scene: ReadingHarness) -> None:
    sub: dict[str, Any] = {"agent_id": "a1", "agent_type": "explore"}
    scene.tell("SubagentStart", **sub)
    scene.tell("UserPromptSubmit")
    scene.read("src/app.py", **sub)
    scene.tell("SubagentStop", **sub)
    scene.write("other.txt")
    assert scene.reads() == [("ada.a1", "file:src/app.py")]


def test_the_end_of_a_turn_logs_what_waits(scene: ReadingHarness) -> None:
    """Otherwise the ledger would name the time of the next prompt."""
    before = scene.head()
    scene.tell("Stop")
    assert scene.head() == before
    scene.read("src/app.py")
    scene.tell("Stop")
    assert scene.reads() == [("ada", "file:src/app.py")]
    assert (scene.head(), scene.waiting()) == (before + 1, [])


def test_a_failed_read_is_not_in_the_ledger(scene: ReadingHarness) -> None:
    given = {"file_path": str(scene.root / "src/app.py")}
    scene.tell("PostToolUseFailure", tool_name="Read", tool_input=given, tool_use_id="r", error="too large")
    assert scene.waiting() == []


def test_only_files_of_the_repository_are_read(direct: ReadingHarness) -> None:
    direct.run("true")
    with_line = direct.root / "a\nb"
    with_line.write_text("a name that no lock can have\n")
    for path in ("gone.txt", "src", ".", "/etc/hostname", ".git/config", "a\0b", "../x", "a\nb"):
        direct.read(path)
        assert direct.waiting() == [], path


def test_a_file_of_another_repository_is_not_logged(scene: ReadingHarness, tmp_path: Path) -> None:
    other = HookHarness(tmp_path / "other")
    scene.read(str(other.root / "src/app.py"))
    (scene.root / "link").symlink_to(other.root / "src/app.py")
    scene.read("link")
    assert scene.waiting() == []


def test_a_file_of_another_worktree_is_logged(scene: ReadingHarness, tmp_path: Path) -> None:
    git(scene.root, "worktree", "add", "-q", str(tmp_path / "tree"))
    scene.read(str(tmp_path / "tree/src/app.py"))
    (scene.root / "link").symlink_to("src/app.py")
    scene.read("link")
    scene.run("true")
    assert scene.reads() == [("ada", "file:src/app.py"), ("ada", "file:link")]


CALLS = [
    ("Grep", {"pattern": "x", "path": "{root}/src/app.py"}),
    ("Grep", {"pattern": "x", "path": "src/app.py"}),
    ("NotebookRead", {"notebook_path": "{root}/src/app.py"}),
    ("LSP", {"operation": "hover", "filePath": "{root}/src/app.py"}),
    ("mcp__files__read_text_file", {"path": "{root}/src/app.py"}),
    ("mcp__files__read_multiple_files", {"paths": ["{root}/src/app.py", "{root}/src"]}),
    ("mcp__idea__get_file_text", {"uri": "file://{root}/src/app.py"}),
]


def put_in(given: Any, root: Path) -> Any:
    if isinstance(given, dict):
        return {name: put_in(value, root) for name, value in given.items()}
    if isinstance(given, list):
        return [put_in(value, root) for value in given]
    return given.replace("{root}", str(root)) if isinstance(given, str) else given


def test_whatever_tool_read_the_file(direct: ReadingHarness) -> None:
    direct.run("true")
    for number, (name, given) in enumerate(CALLS):
        direct.tool(name, f"s{number}", **put_in(given, direct.root))
        direct.run("true", f"s{number}")
    assert direct.reads() == [(f"s{number}", "file:src/app.py") for number in range(len(CALLS))]


NO_READS = [
    ("Glob", {"pattern": "**/*.py", "path": "{root}/src"}),
    ("Grep", {"pattern": "src/app.py"}),
    ("Agent", {"prompt": "read src/app.py"}),
    ("Read", {"file_path": ["nested", {"a": 1}]}),
    ("Read", {"file_path": 7}),
    ("Read", {"paths": [*(["x"] * 1_000_000), "src/app.py"]}),
    ("mcp__github__get_file_contents", {"repo": "app", "path": "src/app.py"}),
    ("mcp__files__move_file", {"path": "{root}/src/app.py"}),
    ("mcp__files__sum", {"path": "{root}/src/app.py"}),
]


def test_what_no_tool_read(direct: ReadingHarness) -> None:
    for name, given in NO_READS:
        direct.tool(name, **put_in(given, direct.root))
    direct.tell("SessionEnd", reason="other")
    assert direct.reads() == []


LINES = [
    "cat src/app.py",
    "cd src && sed -n '1,200p' app.py | head -5",
    "grep -n x src/app.py missing.py; true",
    "bash -c 'tail -n 3 src/app.py'",
]
OTHER_LINES = ["echo src/app.py", "ls src/app.py", "cat src", "cat '", f"cat {'x ' * 5000}src/app.py"]


def test_a_shell_reads_the_files_that_it_prints(direct: ReadingHarness) -> None:
    """Codex has no other way to read; only what the line shows is known."""
    for number, line in enumerate(LINES):
        direct.run(line, f"s{number}")
    for line in OTHER_LINES:
        direct.run(line, "other")
    assert direct.reads() == [(f"s{number}", "file:src/app.py") for number in range(len(LINES))]


def test_a_shell_that_writes_a_file_does_not_count_as_reading_it(direct: ReadingHarness) -> None:
    direct.run("sed -i s/x/y/ src/app.py")
    assert direct.reads() == []


def test_gemini_and_codex_read_files(scene: ReadingHarness) -> None:
    (scene.root / "b.txt").write_text("b\n")
    (scene.root / "c.png").write_text("c\n")
    base = {"session_id": "ada", "cwd": str(scene.root)}
    many = {"include": ["src/*.py", "b.txt"]}
    for name, given in (("read_file", {"file_path": "src/app.py"}), ("read_many_files", many)):
        event = {**base, "hook_event_name": "AfterTool", "tool_name": name, "tool_input": given}
        scene.answer(gemini.parse(event), event)
    shown = {"hook_event_name": "PostToolUse", "tool_name": "view_image", "tool_use_id": "1"}
    event = {**base, **shown, "tool_input": {"path": "c.png"}}
    scene.answer(codex.parse(event), event)
    scene.run("true")
    assert scene.reads() == [("ada", "file:src/app.py"), ("ada", "file:b.txt"), ("ada", "file:c.png")]


def test_a_person_switches_reads_off(scene: ReadingHarness) -> None:
    write_configuration(scene.root, "[ledger]\nreads = false\n", scene.environ)
    scene.read("src/app.py")
    scene.tell("SessionEnd", reason="other")
    assert scene.waiting() == []
    assert scene.reads() == []


def test_a_store_without_a_state_folder_loses_reads_and_nothing_else(scene: ReadingHarness) -> None:
    state = Path(scene.environ["HOME"]) / ".local/state/coord/reads"
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text("no folder")
    scene.read("src/app.py")
    assert scene.write("other.txt").deny == ""
    assert scene.reads() == []
    scene.run("cat src/app.py")
    assert scene.reads() == [("ada", "file:src/app.py")], "what a commit takes along at once needs no file"
