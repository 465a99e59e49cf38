"""What shell commands change is caught by its effect: locked, told, and given back only with proof."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from types import ModuleType

import pytest

from coord.core.messages.commands import MessageInfo
from coord.followers.direct import log_source
from coord.followers.metrics.gauges import metrics
from coord.integrations.git.run import Git
from coord.integrations.git.salvage import swap
from coord.integrations.git.salvage.salvage import list_salvages
from coord.integrations.hooks.tools import claude, codex, gemini
from coord.integrations.shell_effects.restore import restore_content
from coord.sdk.reports.activity import EventFilter, newest_events
from tests.support.consent import write_configuration
from tests.support.git_folders import PLAIN, added_worktree, git, made_repository
from tests.support.hook_harness import HOOK_WAYS, HookHarness, Json, answered_by

APP = "src/app.py"


class EffectsHarness(HookHarness):
    """A scene in which shell commands really run."""

    def do(self, line: str) -> None:
        subprocess.run(["sh", "-c", line], cwd=self.root, env=PLAIN, check=True, capture_output=True)

    def run(self, line: str, session: str = "bob") -> str:
        """A shell command that shows nobody what it writes, as a tool runs it; what its agent is told."""
        call = self.shell(f"python3 run.py {quote(line)}", session)
        assert self.before(call).deny == ""
        self.do(line)
        return self.after(call).note

    def begin(self, line: str, session: str = "bob") -> Json:
        call = self.shell(line, session)
        self.before(call)
        return call

    def inbox(self, session: str) -> list[MessageInfo]:
        with self.client(session) as client:
            return client.recv(drain=True).messages

    def text(self, path: str = APP) -> str:
        return (self.root / path).read_text()

    def not_restoring(self) -> "EffectsHarness":
        write_configuration(self.root, "[hooks]\nrestore = false\n", self.environ)
        git(self.root, "add", "coord.toml")
        git(self.root, "commit", "-q", "-m", "settings")
        return self


@pytest.fixture(params=HOOK_WAYS)
def harness(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EffectsHarness]:
    with answered_by(request.param, EffectsHarness(tmp_path)) as made:
        yield made


LINES = (
    f"echo more >> {APP}",
    f"sed -i s/app/other/ {APP}",
    f"python3 -c \"open('{APP}', 'w').write('x')\"",
    f"rm {APP}",
    f"chmod +x {APP}",
    f"ln -sf elsewhere {APP}",
)


@pytest.mark.parametrize("line", LINES)
def test_a_free_file_is_locked_after_the_fact(harness: EffectsHarness, line: str) -> None:
    """PRB-16: Whatever a command line does to a file, the session holds it then, and others are refused."""
    assert harness.run(line) == ""
    assert harness.held() == {f"file:{APP}": "bob"}
    assert "locked by claude (session bob)" in harness.write(APP).deny


def test_beside_a_held_glob_what_was_changed_is_locked(harness: EffectsHarness) -> None:
    """LCK-76: of what a command changed, its session gets what no glob matches; of the rest is told."""
    harness.tell("SessionStart", "person", source="startup")
    with harness.client("person") as person:
        person.acquire("**/*.py")
    (harness.root / "old.txt").write_text("old\n")
    harness.commit("old.txt")
    notes = harness.run(f"echo 1 > fresh.txt; cat fresh.txt > {APP}; rm old.txt")
    assert harness.held() == {"file:**/*.py": "person", "file:fresh.txt": "bob", "file:old.txt": "bob"}
    assert APP in notes
    assert "fresh" not in notes
    assert [message.subject for message in harness.inbox("person")] == [f"{APP} was overwritten"]


def test_new_moved_and_ignored_files_are_locked(harness: EffectsHarness) -> None:
    """Both names of a renamed file are locked, a new one too, and an ignored one if it is watched."""
    (harness.root / ".gitignore").write_text("*.log\n.env\n")
    harness.commit(".gitignore")
    harness.run(f"mv {APP} src/new.py; echo 1 > fresh.txt; echo 2 > .env; echo 3 > x.log")
    assert set(harness.held()) == {f"file:{APP}", "file:src/new.py", "file:fresh.txt", "file:.env"}


def test_ignored_files_are_kept_out_of_the_repository(harness: EffectsHarness) -> None:
    """They may be secrets: both contents are kept, but in files that only the user can read."""
    (harness.root / ".gitignore").write_text(".env\n")
    harness.write(".env", "ada", "key=1\n")
    notes = harness.run("echo key=2 > .env")
    assert "coord restored the file" in notes
    assert harness.text(".env") == "key=1\n"
    kept = Path(notes.partition("`cat ")[2].partition("`")[0])
    assert kept.read_text() == "key=2\n"
    assert kept.parent.stat().st_mode & 0o077 == 0
    objects = git(harness.root, "cat-file", "--batch-check", "--batch-all-objects").split("\n")
    contents = [git(harness.root, "cat-file", "-p", each.split()[0]) for each in objects if " blob " in each]
    assert contents
    assert not any("key=" in content for content in contents)


def test_what_is_clean_needs_no_lock(harness: EffectsHarness) -> None:
    """A checkout that rewrites files, a touch and a commit leave nothing that differs from HEAD."""
    git(harness.root, "checkout", "-q", "-b", "side")
    (harness.root / APP).write_text("side\n")
    harness.commit(APP)
    assert harness.run("git checkout -q main && touch src/app.py") == ""
    assert harness.text() == "app\n"
    assert harness.held() == {}
    harness.run(f"echo more >> {APP}")
    assert harness.held() == {f"file:{APP}": "bob"}
    harness.run(f"git -c user.name=a -c user.email=a@b commit -qm more -- {APP}")
    assert harness.held() == {}


@pytest.mark.parametrize("answer", ["printf 'token\\0'", "exit 1", "kill -9 $PPID"])
def test_a_file_monitor_of_the_repository_hides_no_overwrite(harness: EffectsHarness, answer: str) -> None:
    """`core.fsmonitor` names a program that could tell git that no file changed, or stop it."""
    with harness.client("ada") as ada:
        ada.acquire(APP)
    monitor = harness.root.parent / "monitor"
    monitor.write_text("#!/bin/sh\nprintf 'token\\0'\n")
    monitor.chmod(0o755)
    git(harness.root, "config", "core.fsmonitor", str(monitor))
    git(harness.root, "status")
    git(harness.root, "update-index", "--fsmonitor")
    git(harness.root, "status")
    monitor.write_text(f"#!/bin/sh\n{answer}\n")
    assert f"changed {APP}, which session ada holds" in harness.run(f"echo bob > {APP}")
    assert harness.text() == "app\n"


def test_both_sides_hear_of_an_overwrite(harness: EffectsHarness) -> None:
    """The holder has its last content by name; nothing is restored if the repository opts out."""
    harness.not_restoring().write(APP, "ada", "ada\n")
    notes = harness.run(f"echo bob > {APP}")
    assert f"this command changed {APP}, which claude (session ada) holds" in notes
    (message,) = harness.inbox("ada")
    assert (message.kind, message.from_session_id) == ("overwrite", "bob")
    assert message.subject == f"{APP} was overwritten"
    blob = message.body.rpartition(" ")[2]
    assert git(harness.root, "cat-file", "blob", blob) == "ada"
    assert harness.text() == "bob\n"
    assert harness.held() == {f"file:{APP}": "ada"}


OVERWRITES = (LINES[0], *LINES[3:], f"mv {APP} gone", f"git checkout -q -- {APP}")


@pytest.mark.parametrize("line", OVERWRITES)
def test_an_overwrite_is_restored(harness: EffectsHarness, line: str) -> None:
    """The holder's file is as the holder left it, and what was written over it is kept in a ref."""
    harness.write(APP, "ada", "app by ada\n")
    notes = harness.run(line)
    assert "coord restored the file" in notes
    assert harness.text() == "app by ada\n"
    assert not (harness.root / APP).is_symlink()
    assert not os.access(harness.root / APP, os.X_OK)
    assert harness.inbox("ada")[0].blob["restored"] is True
    assert harness.run("true") == "", "nothing is left to find"


def test_overwrites_are_counted_where_they_were_stopped(harness: EffectsHarness) -> None:
    """OBS-5: a restored file is one event, a refused edit another; a usual call commits no event."""
    harness.write(APP, "ada", "ada\n")
    assert harness.write(APP, "cid").deny
    harness.run(f"echo bob > {APP}")
    harness.run("true")
    with harness.client("watcher") as client:
        text = metrics(log_source(client), client.caller)
        (restored,) = newest_events(client, EventFilter("file.restored")).events
    assert restored.details["files"] == [APP]
    assert (restored.details["session"], restored.details["holders"]) == ("bob", ["ada"])
    assert "coord_overwrites_undone_total 1\n" in text
    assert 'coord_overwrites_prevented_total{where="hook"} 1\n' in text


def test_what_was_written_over_is_kept(harness: EffectsHarness) -> None:
    """Nothing is lost by restoring: the ref that is named has the other content."""
    harness.write(APP, "ada", "ada\n")
    notes = harness.run(f"echo bob > {APP}")
    (salvage,) = list_salvages(Git(str(harness.root)), "bob")
    assert salvage.ref in notes
    assert git(harness.root, "show", f"{salvage.ref}:{APP}") == "bob"
    assert harness.run(f"echo again > {APP}") != "", "a second overwrite is proven as the first one was"
    assert harness.text() == "ada\n"


def test_a_file_that_its_holder_has_not_touched_yet_is_given_back(harness: EffectsHarness) -> None:
    """Before the holder's first write the content is that of the index."""
    call = harness.edit(APP, "ada")
    harness.tell("SessionStart", "ada", source="startup")
    harness.write("other.txt", "ada")
    with harness.client("ada") as ada:
        assert ada.acquire(APP).ok
    assert "coord restored the file" in harness.run(f"echo bob > {APP}")
    assert harness.text() == "app\n"
    assert harness.before(call).deny == ""


def test_the_holders_own_content_is_no_overwrite(harness: EffectsHarness) -> None:
    """A holder that writes while another's command runs has done nothing wrong, and neither has the other."""
    harness.write(APP, "ada", "one\n")
    call = harness.begin("make")
    harness.write(APP, "ada", "two\n")
    assert harness.after(call).note == ""
    assert harness.inbox("ada") == []
    harness.run(f"touch {APP}")
    assert harness.inbox("ada") == [], "the same content is no other content"


def author_unknown(harness: EffectsHarness, notes: str) -> None:
    assert "Author unknown" in notes
    assert "Nothing was restored" in notes
    assert harness.text() == "bob\n"


def test_a_holder_at_work_leaves_the_author_unknown(harness: EffectsHarness) -> None:
    """A shell of the holder was under way at some time of the command: it may have been the author."""
    harness.write(APP, "ada", "ada\n")
    call = harness.begin("make")
    own = harness.begin("generate", "ada")
    harness.do(f"echo bob > {APP}")
    notes = harness.after(call).note
    author_unknown(harness, notes)
    assert shown(harness, notes) == "ada", "the content before is kept"
    harness.after(own)
    harness.write(APP, "ada", "ada again\n")
    call = harness.begin("make")
    own = harness.begin("generate", "ada")
    harness.after(own)
    harness.do(f"echo more > {APP}; echo bob > {APP}")
    assert harness.after(call).note.count("the holder's own tools ran at the same time") == 1


def test_an_editor_of_the_holder_is_no_author_of_other_files(harness: EffectsHarness) -> None:
    """The holder edits one file while its other file is overwritten; or it edited that one before."""
    harness.write(APP, "ada", "ada\n")
    call = harness.begin("make")
    own = harness.edit("other.txt", "ada")
    harness.before(own)
    harness.do(f"echo bob > {APP}")
    assert "coord restored the file" in harness.after(call).note
    assert harness.text() == "ada\n"
    call = harness.begin("make")
    harness.write(APP, "ada", "ada again\n")
    harness.do(f"echo bob > {APP}")
    assert "coord restored the file" in harness.after(call).note
    assert harness.text() == "ada again\n", "what the holder wrote during the command is its last content"
    call = harness.begin("make")
    harness.before(harness.edit(APP, "ada"))
    harness.do(f"echo bob > {APP}")
    assert "the holder's own tools ran at the same time" in harness.after(call).note


def test_of_two_shells_neither_is_the_holder(harness: EffectsHarness) -> None:
    """Two commands of strangers overlap: either may have written, but the holder has not."""
    harness.write(APP, "ada", "ada\n")
    bob, eve = harness.begin("make"), harness.begin("make", "eve")
    harness.do(f"echo bob > {APP}")
    assert "this command, or one that ran at the same time, changed" in harness.after(eve).note
    assert harness.text() == "ada\n"
    assert harness.after(bob).note == ""
    (message,) = harness.inbox("ada")
    assert "session eve, or one of bob, changed it without a lock. coord restored it" in message.body


def person_holds(harness: EffectsHarness) -> None:
    harness.tell("SessionStart", "person", source="startup")
    with harness.client("person") as person:
        person.acquire(APP)


def test_a_holder_that_hooks_do_not_see_leaves_the_author_unknown(harness: EffectsHarness) -> None:
    """A person with an editor may write at any time; a command that reads the file proves nothing."""
    person_holds(harness)
    (harness.root / APP).write_text("person\n")
    call = harness.begin(f"python3 {APP} && wc {APP}")
    (harness.root / APP).write_text("bob\n")
    notes = harness.after(call).note
    author_unknown(harness, notes)
    assert shown(harness, notes) == "person", "the content before is kept"
    (message,) = harness.inbox("person")
    assert message.subject == f"{APP} was changed, author unknown"
    assert shown(harness, f"`{message.body.partition('before: ')[2]}`") == "person"


def shown(harness: EffectsHarness, notes: str) -> str:
    """The output of the command that a text names."""
    line = notes.partition("`")[2].partition("`")[0]
    return subprocess.run(
        ["sh", "-c", line], cwd=harness.root, env=PLAIN, check=True, capture_output=True, text=True
    ).stdout.rstrip("\n")


def write_script(harness: EffectsHarness, name: str, text: str) -> None:
    (harness.root / name).write_text(text)
    harness.commit(name)


def test_what_the_call_contains_is_evidence(harness: EffectsHarness) -> None:
    """The holder has no hooks, but nobody else types the lines of the command or of its script."""
    person_holds(harness)
    (harness.root / APP).write_text("person\n")
    write_script(harness, "gen.py", f"open('{APP}', 'w').write('from a script')\n")
    write_script(harness, "Makefile", f"wipe:\n\trm -rf src\nempty:\n\t: > {APP}\n")
    for line in (
        f"python3 -c \"open('{APP}', 'w').write('bob')\"",
        "python3 gen.py",
        f"python3 -c \"import os; os.remove('{APP}')\"",
        "make wipe",
        "make empty",
    ):
        assert "coord restored the file" in harness.run(line), line
        assert harness.text() == "person\n"


UNKNOWN = (
    (claude, "PreToolUse", "PostToolUse", "mcp__idea__run_configuration"),
    (claude, "PreToolUse", "PostToolUseFailure", "REPL"),
    (codex, "PreToolUse", "PostToolUse", "js_repl"),
    (gemini, "BeforeTool", "AfterTool", "mcp_idea_run_configuration"),
    (gemini, "BeforeTool", "AfterTool", "save_memory"),
)


@pytest.mark.parametrize(("form", "before", "after", "tool"), UNKNOWN)
def test_unknown_tools_are_checked_by_their_effects(
    harness: EffectsHarness, form: ModuleType, before: str, after: str, tool: str
) -> None:
    """Field names are a help, not the wall: a tool that names no file is caught by what it wrote."""
    harness.write(APP, "ada", "ada\n")
    payload = {
        "session_id": "bob",
        "cwd": str(harness.root),
        "hook_event_name": before,
        "tool_name": tool,
        "tool_input": {"what": "ever"},
        "tool_use_id": "call-x",
    }
    assert harness.answer(form.parse(payload), payload).deny == ""
    (harness.root / APP).write_text("bob\n")
    (harness.root / "free.txt").write_text("bob\n")
    answer = harness.answer(form.parse({**payload, "hook_event_name": after}), payload)
    assert "coord restored the file" in answer.note
    assert harness.text() == "ada\n"
    assert harness.held()["file:free.txt"] == "bob"


def test_a_tool_that_reads_is_not_looked_at(harness: EffectsHarness) -> None:
    """Its end is a heartbeat and nothing more."""
    call = {"session": "bob", "tool_name": "Read", "tool_input": {"file_path": APP}, "tool_use_id": "r"}
    assert harness.before(call).deny == ""
    assert harness.after(call).note == ""
    assert not (harness.root / ".git/coord/effects").exists()


def test_one_shell_after_another_is_blamed_alone(harness: EffectsHarness) -> None:
    """Commands that did not overlap are told apart."""
    harness.write(APP, "ada", "ada\n")
    assert harness.run("true", "eve") == ""
    assert "this command changed" in harness.run(f"echo bob > {APP}")
    assert harness.run("true", "eve") == ""


def test_a_content_that_is_not_the_blamed_one_any_more_is_left(harness: EffectsHarness) -> None:
    """What somebody has written since is never overwritten."""
    (harness.root / APP).write_text("newer\n")
    assert not restore_content(Git(str(harness.root)), APP, 0o100644, b"ada\n", b"bob\n")
    assert not restore_content(Git(str(harness.root)), APP, 0o100644, b"ada\n", None)
    assert harness.text() == "newer\n"
    assert os.listdir(harness.root / "src") == ["app.py"]


def test_a_content_that_comes_at_the_worst_moment_is_left(
    harness: EffectsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written after the last look comes back; what is written while it does, stays beside it."""
    really = swap.swap_file
    calls: list[str] = []

    def late(folder: int, name: str, new: str, taken: str) -> bool:
        calls.append(name)
        (harness.root / APP).write_text(f"newer {len(calls)}\n")
        return really(folder, name, new, taken)

    (harness.root / APP).write_text("bob\n")
    monkeypatch.setattr("coord.integrations.shell_effects.restore.swap_file", late)
    assert not restore_content(Git(str(harness.root)), APP, 0o100644, b"ada\n", b"bob\n")
    assert harness.text() == "newer 1\n"
    (spare,) = (name for name in os.listdir(harness.root / "src") if name != "app.py")
    assert (harness.root / "src" / spare).read_text() == "newer 2\n"


def test_a_file_that_the_holder_was_about_to_make_is_salvaged(harness: EffectsHarness) -> None:
    """The name is free for its holder again, and nothing that somebody wrote is thrown away."""
    harness.write("other.txt", "ada")
    with harness.client("ada") as ada:
        ada.acquire("new.txt")
    notes = harness.run("echo bob > new.txt")
    assert "coord removed the new file" in notes
    assert not (harness.root / "new.txt").exists()
    assert git(harness.root, "show", "refs/coord/salvage/bob/1:new.txt") == "bob"
    assert harness.inbox("ada")[0].kind == "overwrite"


def test_a_holder_in_another_worktree_is_no_author(harness: EffectsHarness, tmp_path: Path) -> None:
    """A lock counts everywhere; but what git checks out there is no overwrite."""
    added_worktree(harness.root, tmp_path / "tree")
    harness.write(APP, "ada", "ada\n")
    call = harness.shell("make", "bob", cwd=str(tmp_path / "tree"))
    harness.before(call)
    (tmp_path / "tree" / APP).write_text("bob\n")
    assert "coord restored the file" in harness.after(call).note
    assert (tmp_path / "tree" / APP).read_text() == "app\n"
    assert harness.text() == "ada\n"
    git(harness.root, "branch", "side")
    call = harness.shell("make", "bob", cwd=str(tmp_path / "tree"))
    harness.before(call)
    git(tmp_path / "tree", "rm", "-q", APP)
    git(tmp_path / "tree", "commit", "-q", "-m", "gone")
    assert harness.after(call).note == ""
    assert not (tmp_path / "tree" / APP).exists()


def test_files_of_submodules_and_nested_repositories_are_theirs(
    harness: EffectsHarness, tmp_path: Path
) -> None:
    """A path in there belongs to the other repository, and has no lock here."""
    made_repository(tmp_path / "lib")
    git(harness.root, "submodule", "add", "-q", str(tmp_path / "lib"), "lib")
    git(harness.root, "commit", "-q", "-m", "lib")
    made_repository(harness.root / "nested")
    assert harness.run("echo x >> lib/src/app.py; echo y >> nested/src/app.py; echo z > nested/new") == ""
    assert harness.held() == {}


def test_names_that_cannot_be_locked_are_told(harness: EffectsHarness) -> None:
    """Hostile names break nothing."""
    notes = harness.run("printf x > 'new\nline'; printf y > \"$(printf 'bad\\377')\"; printf z > -rf")
    assert "this command changed 2 more files, which are not locked" in notes
    assert harness.held() == {"file:-rf": "bob"}


def test_a_killed_command_blocks_nobody_and_blames_nobody(harness: EffectsHarness) -> None:
    """Its end is never told: as long as it may run, it may be the author, and so may its holder's."""
    harness.write(APP, "ada", "ada\n")
    harness.begin("sleep 1000", "eve")
    assert "or one that ran at the same time" in harness.run(f"echo bob > {APP}")
    harness.begin("sleep 1000", "ada")
    assert "Author unknown" in harness.run(f"date > {APP}")


def test_damaged_files_of_ours_stop_nothing(harness: EffectsHarness) -> None:
    """What is kept between two hooks may be lost or damaged: then nothing is known, and nobody is blamed."""
    harness.write(APP, "ada", "ada\n")
    (folder,) = (harness.root / ".git/coord/effects").iterdir()
    (folder / "calls").write_bytes(b"\xc1junk")
    assert "Author unknown" in harness.run(f"echo bob > {APP}")
    call = harness.begin("make")
    for file in folder.iterdir():
        file.write_bytes(b"\xc1junk")
    assert "could not be checked" in harness.after(call).note
    assert [file.name for file in folder.iterdir() if file.name.startswith(("before-", "index-"))] == []


def test_the_index_is_never_locked_or_written(harness: EffectsHarness) -> None:
    """GIT_OPTIONAL_LOCKS=0: a git that is at work is not disturbed, and its lock does not disturb us."""
    harness.run(f"touch {APP}")
    index = (harness.root / ".git/index").stat()
    (harness.root / ".git/index.lock").touch()
    assert harness.run(f"touch {APP}; echo x > new.txt") == ""
    now = (harness.root / ".git/index").stat()
    assert (now.st_mtime_ns, now.st_ino) == (index.st_mtime_ns, index.st_ino)
    assert harness.held() == {"file:new.txt": "bob"}


def test_a_link_in_place_of_a_folder_is_moved_away(harness: EffectsHarness) -> None:
    """A file behind a link is restored in a folder of its name; what the command made is kept."""
    harness.write(APP, "ada", "ada\n")
    harness.write("other.txt", "ada", "ada\n")
    notes = harness.run("mv src moved; ln -s moved src; echo bob > moved/app.py; echo bob > other.txt")
    assert f"changed {APP}" in notes
    told = {message.blob["path"]: message.blob["restored"] for message in harness.inbox("ada")}
    assert told == {"src": True, APP: True, "other.txt": True}
    assert (harness.text(), harness.text("other.txt")) == ("ada\n", "ada\n")
    assert not (harness.root / "src").is_symlink()
    assert harness.text("moved/app.py") == "bob\n"
