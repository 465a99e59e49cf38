"""What shell commands change is caught by its effect: locked, told, and given back only with proof."""

import os
import subprocess
from pathlib import Path

import pytest

from coord.core.replies import MessageShown
from coord.integrations.git.run import Git
from coord.integrations.git.salvage import swap as exchange
from coord.integrations.git.salvage.salvage import kept
from coord.integrations.shell_effects.saved_content import give_back
from tests.support.git_folders import PLAIN, added_worktree, git, made_repository
from tests.support.hook_harness import Json, Scene

APP = "src/app.py"


class Stage(Scene):
    """A scene in which shell commands really run."""

    def do(self, line: str) -> None:
        subprocess.run(["sh", "-c", line], cwd=self.root, env=PLAIN, check=True, capture_output=True)

    def run(self, line: str, session: str = "bob") -> str:
        """A shell command as a tool runs it; what its agent is told."""
        call = self.shell(line, session)
        assert self.before(call).deny == ""
        self.do(line)
        return self.after(call).say

    def begin(self, line: str, session: str = "bob") -> Json:
        call = self.shell(line, session)
        self.before(call)
        return call

    def inbox(self, session: str) -> list[MessageShown]:
        with self.client(session) as client:
            return client.recv(drain=True).messages

    def text(self, path: str = APP) -> str:
        return (self.root / path).read_text()

    def restoring(self) -> "Stage":
        (self.root / "coord.toml").write_text("[hooks]\nrestore_stomps = true\n")
        git(self.root, "add", "coord.toml")
        git(self.root, "commit", "-q", "-m", "settings")
        return self


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


LINES = (
    f"echo more >> {APP}",
    f"sed -i s/app/other/ {APP}",
    f"python3 -c \"open('{APP}', 'w').write('x')\"",
    f"rm {APP}",
    f"chmod +x {APP}",
    f"ln -sf elsewhere {APP}",
)


@pytest.mark.parametrize("line", LINES)
def test_a_free_file_is_locked_after_the_fact(stage: Stage, line: str) -> None:
    """PRB-16: Whatever a command line does to a file, the session holds it then, and others are refused."""
    assert stage.run(line) == ""
    assert stage.held() == {f"file:{APP}": "bob"}
    assert "locked by claude (session bob)" in stage.write(APP).deny


def test_beside_a_held_glob_what_was_changed_is_locked(stage: Stage) -> None:
    """LCK-76: of what a command changed, its session gets what no glob matches; of the rest is told."""
    stage.tell("SessionStart", "person", source="startup")
    with stage.client("person") as person:
        person.acquire("**/*.py")
    (stage.root / "old.txt").write_text("old\n")
    stage.commit("old.txt")
    said = stage.run(f"echo 1 > fresh.txt; echo 2 > {APP}; rm old.txt")
    assert stage.held() == {"file:**/*.py": "person", "file:fresh.txt": "bob", "file:old.txt": "bob"}
    assert APP in said
    assert "fresh" not in said
    assert [message.subject for message in stage.inbox("person")] == [f"{APP} was changed, author unknown"]


def test_new_moved_and_ignored_files_are_locked(stage: Stage) -> None:
    """Both names of a renamed file are locked, a new one too, and an ignored one if it is watched."""
    (stage.root / ".gitignore").write_text("*.log\n.env\n")
    stage.commit(".gitignore")
    stage.run(f"mv {APP} src/new.py; echo 1 > fresh.txt; echo 2 > .env; echo 3 > x.log")
    assert set(stage.held()) == {f"file:{APP}", "file:src/new.py", "file:fresh.txt", "file:.env"}


def test_ignored_files_are_kept_out_of_the_repository(stage: Stage) -> None:
    """They may be secrets: what is written over one is told, but no copy of it is made."""
    (stage.restoring().root / ".gitignore").write_text(".env\n")
    stage.write(".env", "ada", "key=1\n")
    assert "Author unknown" in stage.run("echo key=2 > .env")
    assert stage.text(".env") == "key=2\n"
    objects = git(stage.root, "cat-file", "--batch-check", "--batch-all-objects").split("\n")
    contents = [git(stage.root, "cat-file", "-p", each.split()[0]) for each in objects if " blob " in each]
    assert contents
    assert not any("key=" in content for content in contents)


def test_what_is_clean_needs_no_lock(stage: Stage) -> None:
    """A checkout that rewrites files, a touch and a commit leave nothing that differs from HEAD."""
    git(stage.root, "checkout", "-q", "-b", "side")
    (stage.root / APP).write_text("side\n")
    stage.commit(APP)
    assert stage.run("git checkout -q main && touch src/app.py") == ""
    assert stage.text() == "app\n"
    assert stage.held() == {}
    stage.run(f"echo more >> {APP}")
    assert stage.held() == {f"file:{APP}": "bob"}
    stage.run(f"git -c user.name=a -c user.email=a@b commit -qm more -- {APP}")
    assert stage.held() == {}


def test_a_stomp_is_told_to_both(stage: Stage) -> None:
    """The holder has its last content by name; nothing is restored unless that is set."""
    stage.write(APP, "ada", "ada\n")
    said = stage.run(f"echo bob > {APP}")
    assert f"this command changed {APP}, which claude (session ada) holds" in said
    (message,) = stage.inbox("ada")
    assert (message.kind, message.from_session_id) == ("stomp", "bob")
    assert message.subject == f"{APP} was stomped"
    blob = message.body.rpartition(" ")[2]
    assert git(stage.root, "cat-file", "blob", blob) == "ada"
    assert stage.text() == "bob\n"
    assert stage.held() == {f"file:{APP}": "ada"}


STOMPS = (LINES[0], *LINES[3:], f"mv {APP} gone", f"git checkout -q -- {APP}")


@pytest.mark.parametrize("line", STOMPS)
def test_a_stomp_is_undone_where_that_is_set(stage: Stage, line: str) -> None:
    """The holder's file is as the holder left it, and what was written over it is kept in a ref."""
    stage.restoring().write(APP, "ada", "app by ada\n")
    said = stage.run(line)
    assert "The file is again as it was" in said
    assert stage.text() == "app by ada\n"
    assert not (stage.root / APP).is_symlink()
    assert not os.access(stage.root / APP, os.X_OK)
    assert stage.inbox("ada")[0].blob["restored"] is True
    assert stage.run("true") == "", "nothing is left to find"


def test_what_was_written_over_is_kept(stage: Stage) -> None:
    """Nothing is lost by restoring: the ref that is named has the other content."""
    stage.restoring().write(APP, "ada", "ada\n")
    said = stage.run(f"echo bob > {APP}")
    (salvage,) = kept(Git(str(stage.root)), "bob")
    assert salvage.ref in said
    assert git(stage.root, "show", f"{salvage.ref}:{APP}") == "bob"
    assert stage.run(f"echo again > {APP}") != "", "a second stomp is proven as the first one was"
    assert stage.text() == "ada\n"


def test_a_file_that_its_holder_has_not_touched_yet_is_given_back(stage: Stage) -> None:
    """Before the holder's first write the content is that of the index."""
    call = stage.restoring().edit(APP, "ada")
    stage.tell("SessionStart", "ada", source="startup")
    stage.write("other.txt", "ada")
    with stage.client("ada") as ada:
        assert ada.acquire(APP).ok
    assert "again as it was" in stage.run(f"echo bob > {APP}")
    assert stage.text() == "app\n"
    assert stage.before(call).deny == ""


def test_the_holders_own_content_is_no_stomp(stage: Stage) -> None:
    """A holder that writes while another's command runs has done nothing wrong, and neither has the other."""
    stage.write(APP, "ada", "one\n")
    call = stage.begin("make")
    stage.write(APP, "ada", "two\n")
    assert stage.after(call).say == ""
    assert stage.inbox("ada") == []
    stage.run(f"touch {APP}")
    assert stage.inbox("ada") == [], "the same content is no other content"


def author_unknown(stage: Stage, said: str) -> None:
    assert "Author unknown" in said
    assert "Nothing was restored" in said
    assert stage.text() == "bob\n"


def test_a_holder_at_work_leaves_the_author_unknown(stage: Stage) -> None:
    """A tool of the holder was under way at some time of the command: it may have been the author."""
    stage.restoring().write(APP, "ada", "ada\n")
    call = stage.begin("make")
    own = stage.begin("generate", "ada")
    stage.do(f"echo bob > {APP}")
    author_unknown(stage, stage.after(call).say)
    stage.after(own)
    call = stage.begin("make")
    stage.write("other.txt", "ada")
    stage.do(f"echo more > {APP}; echo bob > {APP}")
    assert stage.after(call).say.count("the holder's own tools were at work") == 1


def test_two_shells_leave_the_author_unknown(stage: Stage) -> None:
    """Two commands of strangers overlap: each may have written; even one that began and ended in between."""
    stage.restoring().write(APP, "ada", "ada\n")
    bob, eve = stage.begin("make"), stage.begin("make", "eve")
    stage.do(f"echo bob > {APP}")
    author_unknown(stage, stage.after(eve).say)
    author_unknown(stage, stage.after(bob).say)
    (first, second) = stage.inbox("ada")
    assert first.kind == second.kind == "warn"
    assert "another shell command ran at the same time" in first.body


def test_a_holder_that_hooks_do_not_see_leaves_the_author_unknown(stage: Stage) -> None:
    """A person with an editor may write at any time."""
    stage.tell("SessionStart", "person", source="startup")
    with stage.restoring().client("person") as person:
        person.acquire(APP)
    author_unknown(stage, stage.run(f"echo bob > {APP}"))
    assert stage.inbox("person")[0].subject == f"{APP} was changed, author unknown"


def test_one_shell_after_another_is_blamed_alone(stage: Stage) -> None:
    """Commands that did not overlap are told apart."""
    stage.write(APP, "ada", "ada\n")
    assert stage.run("true", "eve") == ""
    assert "this command changed" in stage.run(f"echo bob > {APP}")
    assert stage.run("true", "eve") == ""


def test_a_content_that_is_not_the_blamed_one_any_more_is_left(stage: Stage) -> None:
    """What somebody has written since is never overwritten."""
    (stage.root / APP).write_text("newer\n")
    assert not give_back(Git(str(stage.root)), APP, 0o100644, b"ada\n", b"bob\n")
    assert not give_back(Git(str(stage.root)), APP, 0o100644, b"ada\n", None)
    assert stage.text() == "newer\n"
    assert os.listdir(stage.root / "src") == ["app.py"]


def test_a_content_that_comes_at_the_worst_moment_is_left(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written after the last look comes back; what is written while it does, stays beside it."""
    really = exchange.take_place
    calls: list[str] = []

    def late(folder: int, name: str, new: str, taken: str) -> bool:
        calls.append(name)
        (stage.root / APP).write_text(f"newer {len(calls)}\n")
        return really(folder, name, new, taken)

    (stage.root / APP).write_text("bob\n")
    monkeypatch.setattr("coord.integrations.shell_effects.saved_content.take_place", late)
    assert not give_back(Git(str(stage.root)), APP, 0o100644, b"ada\n", b"bob\n")
    assert stage.text() == "newer 1\n"
    (spare,) = (name for name in os.listdir(stage.root / "src") if name != "app.py")
    assert (stage.root / "src" / spare).read_text() == "newer 2\n"


def test_a_file_that_the_holder_was_about_to_make_is_told_not_removed(stage: Stage) -> None:
    """There is no former content, and nothing that somebody wrote is thrown away."""
    stage.restoring().write("other.txt", "ada")
    with stage.client("ada") as ada:
        ada.acquire("new.txt")
    assert "It was not restored" in stage.run("echo bob > new.txt")
    assert stage.text("new.txt") == "bob\n"
    assert stage.inbox("ada")[0].kind == "stomp"


def test_another_worktree_is_not_looked_at(stage: Stage, tmp_path: Path) -> None:
    """A lock counts everywhere, but a write elsewhere has not touched the holder's file."""
    added_worktree(stage.root, tmp_path / "tree")
    stage.write(APP, "ada", "ada\n")
    call = stage.shell("make", "bob", cwd=str(tmp_path / "tree"))
    stage.before(call)
    (tmp_path / "tree" / APP).write_text("bob\n")
    assert "not seen by hooks" in stage.after(call).say
    assert stage.text() == "ada\n"


def test_files_of_submodules_and_nested_repositories_are_theirs(stage: Stage, tmp_path: Path) -> None:
    """A path in there belongs to the other repository, and has no lock here."""
    made_repository(tmp_path / "lib")
    git(stage.root, "submodule", "add", "-q", str(tmp_path / "lib"), "lib")
    git(stage.root, "commit", "-q", "-m", "lib")
    made_repository(stage.root / "nested")
    assert stage.run("echo x >> lib/src/app.py; echo y >> nested/src/app.py; echo z > nested/new") == ""
    assert stage.held() == {}


def test_names_that_cannot_be_locked_are_told(stage: Stage) -> None:
    """Hostile names break nothing."""
    said = stage.run("printf x > 'new\nline'; printf y > \"$(printf 'bad\\377')\"; printf z > -rf")
    assert "2 more files were changed by this command and are not locked" in said
    assert stage.held() == {"file:-rf": "bob"}


def test_a_killed_command_blocks_nobody_and_blames_nobody(stage: Stage) -> None:
    """Its end is never told: as long as it may run, nobody is blamed."""
    stage.write(APP, "ada", "ada\n")
    stage.begin("sleep 1000", "eve")
    assert "Author unknown" in stage.run(f"echo bob > {APP}")


def test_damaged_files_of_ours_stop_nothing(stage: Stage) -> None:
    """What is kept between two hooks may be lost or damaged: then nothing is known, and nobody is blamed."""
    stage.write(APP, "ada", "ada\n")
    (folder,) = (stage.root / ".git/coord/effects").iterdir()
    (folder / "calls").write_bytes(b"\xc1junk")
    assert "Author unknown" in stage.run(f"echo bob > {APP}")
    call = stage.begin("make")
    for file in folder.iterdir():
        file.write_bytes(b"\xc1junk")
    assert stage.after(call).say == ""
    assert [file.name for file in folder.iterdir() if file.name.startswith(("before-", "index-"))] == []


def test_the_index_is_never_locked_or_written(stage: Stage) -> None:
    """GIT_OPTIONAL_LOCKS=0: a git that is at work is not disturbed, and its lock does not disturb us."""
    stage.run(f"touch {APP}")
    index = (stage.root / ".git/index").stat()
    (stage.root / ".git/index.lock").touch()
    assert stage.run(f"touch {APP}; echo x > new.txt") == ""
    now = (stage.root / ".git/index").stat()
    assert (now.st_mtime_ns, now.st_ino) == (index.st_mtime_ns, index.st_ino)
    assert stage.held() == {"file:new.txt": "bob"}


def test_a_stomp_that_git_cannot_keep_is_told_all_the_same(stage: Stage) -> None:
    """A file behind a link is not restored; its holder hears of it, and so do the holders of other files."""
    stage.restoring().write(APP, "ada", "ada\n")
    stage.write("other.txt", "ada", "ada\n")
    said = stage.run("mv src moved; ln -s moved src; echo bob > moved/app.py; echo bob > other.txt")
    assert f"changed {APP}" in said
    assert {message.blob["path"]: message.blob["restored"] for message in stage.inbox("ada")} == {
        "src": False,
        APP: False,
        "other.txt": True,
    }
    assert (stage.text(), stage.text("other.txt")) == ("bob\n", "ada\n")
