"""Before a shell command: what its text shows it will write is refused or locked as an edit is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coord.sdk.client.open import initialise
from tests.support.git_folders import git, made_repository
from tests.support.hook_harness import HOOK_WAYS, HookHarness, answered_by

FORMS = [
    "echo x > held.py",
    "echo x >> held.py",
    "echo x >| held.py",
    "make &> held.py",
    "make 2> held.py",
    "echo x <> held.py",
    "echo x | tee -a held.py",
    "sed -i s/a/b/ held.py",
    "sed --in-place=.bak -e s/a/b/ other.py held.py",
    "perl -pi -e s/a/b/ held.py",
    "cp other.py held.py",
    "mv other.py held.py",
    "mv held.py other.py",
    "install other.py held.py",
    "rm held.py",
    "rm *.py",
    "unlink held.py",
    "shred held.py",
    "dd if=/dev/null of=held.py",
    "ln -sf other.py held.py",
    "truncate -s 0 held.py",
    "touch held.py",
    "chmod +x held.py",
    "patch held.py < x.patch",
    "patch -p1 <<'E'\n--- a/held.py\n+++ b/held.py\n@@ -1 +1 @@\n-x\n+y\nE",
    "git apply <<'E'\n--- a/held.py\n+++ b/held.py\n@@ -1 +1 @@\n-x\n+y\nE",
    "git rm -f held.py",
    "git mv held.py other.py",
    "git update-index --assume-unchanged held.py",
    "cd src && git update-index --skip-worktree -- ../held.py",
    "git checkout -- held.py",
    "git checkout .",
    "git restore held.py",
    "git stash",
    "git stash push -- held.py",
    "git reset --hard",
    "git checkout -f",
    "black held.py",
    "npx prettier --write held.py",
    "python3 -m isort held.py",
    "cd src && echo x > ../held.py",
    "cd src; cd ..; rm held.py",
    "(cd src; sed -i s/a/b/ ../held.py)",
    "bash -c 'echo x > held.py'",
    "sh -c \"sh -c 'rm held.py'\"",
    "env A=1 nohup timeout 5 rm held.py",
    "sudo tee held.py < other.py",
    "echo held.py | xargs rm",
    "for f in other.py held.py; do rm $f; done",
    "f=held.py; echo x > $f",
    "f() { rm $1; }; f held.py",
    "true && false || { rm held.py; }",
    "rm {held,other}.py",
    "! { rm held.py; }",
    "f() { ! { rm held.py; }; exit; }; f",
    "rm ./src/../held.py",
    "rm $PWD/held.py",
    "x=$(rm held.py)",
    "cat <<'E' | bash\nrm held.py\nE",
    "ln -s held.py l; echo x > l",
    "coord guard other -- rm held.py",
]
READS = [
    "git update-index --refresh",
    "git update-index --no-skip-worktree held.py",
    "cat held.py",
    "cat held.py > /dev/null 2>&1",
    "cp held.py copy.py",
    "grep -r x . | tee copy.py",
    "git diff held.py",
    "git add held.py",
    "ln -s held.py link.py",
    "echo 'rm held.py' > copy.py",
    "black --check held.py",
    "coord guard held.py -- rm held.py",
    "echo 'a > held.py'",
]


@pytest.fixture(params=HOOK_WAYS)
def harness(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[HookHarness]:
    made = HookHarness(tmp_path)
    for name in ("held.py", "other.py", "src/app.py"):
        (made.root / name).parent.mkdir(exist_ok=True)
        (made.root / name).write_text("old\n")
    (made.root / ".gitignore").write_text("build/\n*.log\n.env\n")
    made.commit("held.py", "other.py", "src/app.py", ".gitignore")
    with answered_by(request.param, made):
        yield made


def test_a_held_file_is_refused_however_the_shell_writes_it(harness: HookHarness) -> None:
    """The refusal of a command is that of an edit: the holder, and the command that waits."""
    assert not harness.write("held.py", "ada").deny
    edit = harness.before(harness.edit("held.py", "bob")).deny
    passed = []
    for line in FORMS:
        denied = harness.before(harness.shell(line, "bob")).deny
        if "locked by claude (session ada)" not in denied:
            passed.append((line, denied))
    assert not passed
    assert harness.before(harness.shell(FORMS[0], "bob")).deny.split("until")[0] == edit.split("until")[0]
    assert "lock held.py` waits for it" in edit
    assert set(harness.held().values()) == {"ada"}, "a refused call keeps no lock"


def test_reading_a_held_file_passes(harness: HookHarness) -> None:
    """Only writing needs the lock; so does the holder itself."""
    harness.write("held.py", "ada")
    for line in READS:
        call = harness.shell(line, "bob")
        assert not harness.before(call).deny, line
        harness.after(call)
    for line in ("rm held.py", "git checkout -- held.py", "rm -rf src held.py"):
        call = harness.shell(line, "ada")
        assert not harness.before(call).deny, line
        harness.after(call)


def test_a_free_file_is_locked_for_the_call(harness: HookHarness) -> None:
    """While a command runs, the files that it writes are held as an edit holds them."""
    call = harness.shell("sed -i s/a/b/ src/app.py && rm -rf src/sub other.py", "bob")
    assert not harness.before(call).deny
    assert {"file:src/app.py", "file:other.py"} <= set(harness.held())
    assert "locked by" in harness.before(harness.edit("src/app.py", "ada")).deny
    harness.after(call)
    assert "file:src/app.py" not in harness.held(), "the file is as in HEAD"


def test_a_folder_covers_what_is_below(harness: HookHarness) -> None:
    """`rm -rf src` writes everything in src, and nothing beside it."""
    harness.write("src/app.py", "ada")
    assert "src/app.py" in harness.before(harness.shell("rm -rf src", "bob")).deny
    assert "src/app.py" in harness.before(harness.shell("mv src lib", "bob")).deny
    assert not harness.before(harness.shell("rm -rf sr", "bob")).deny


def test_ignored_files_are_checked_and_not_locked(harness: HookHarness) -> None:
    """A build folder is nobody's work; a file that is observed is."""
    (harness.root / "build").mkdir()
    call = harness.shell("rm -rf build; echo x > a.log; echo y > .env; echo z > new.py", "bob")
    assert not harness.before(call).deny
    assert set(harness.held()) == {"file:.env", "file:new.py"}
    harness.after(call)
    with harness.client("ada") as client:
        client.acquire("file:build")
    assert "locked" in harness.before(harness.shell("rm -rf build", "bob")).deny


def test_many_files_are_checked(harness: HookHarness) -> None:
    """A command that writes more files than a request may name is checked against the locks of others."""
    for number in range(80):
        (harness.root / f"src/m{number}.py").write_text("x\n")
    call = harness.shell("sed -i s/x/y/ src/*.py", "bob")
    assert not harness.before(call).deny
    assert not harness.held()
    harness.after(call)
    harness.write("src/m79.py", "ada")
    assert "src/m79.py is locked" in harness.before(harness.shell("sed -i s/x/y/ src/*.py", "bob")).deny


def test_git_brings_committed_content_only_into_a_worktree_of_its_own(harness: HookHarness) -> None:
    """A checkout destroys edits in its worktree; those in another worktree are safe."""
    git(harness.root, "branch", "other")
    harness.write("held.py", "ada")
    harness.commit("held.py")
    harness.write("held.py", "ada", text="newer\n")
    linked = harness.root.parent / "linked"
    git(harness.root, "worktree", "add", "-q", str(linked), "other")
    (linked / "held.py").write_text("mine\n")
    for line in (
        "git checkout -- held.py",
        "git merge main",
        "git merge master",
        "git stash",
        "git reset --hard",
    ):
        assert not harness.before(harness.shell(line, "bob", cwd=str(linked))).deny, line
    assert "held.py is locked" in harness.before(harness.shell("git checkout other", "bob")).deny
    assert "held.py is locked" in harness.before(harness.shell("git reset --hard", "bob")).deny
    assert "locked" in harness.before(harness.shell("echo x > held.py", "bob", cwd=str(linked))).deny
    line = f"cd {linked} && git -C {harness.root} checkout -- held.py"
    assert "held.py is locked" in harness.before(harness.shell(line, "bob")).deny


def test_git_clean_spares_what_others_hold(harness: HookHarness) -> None:
    """Untracked files of another session are its work."""
    harness.write("new/file.py", "ada")
    assert "new/file.py" in harness.before(harness.shell("git clean -fd", "bob")).deny
    assert not harness.before(harness.shell("git clean -nd", "bob")).deny
    assert "new/file.py" in harness.before(harness.shell("git stash -u", "bob")).deny


@pytest.mark.parametrize(
    "line",
    [
        "echo x > ~/.claude/foo.json",
        "cp x ~/.claude/foo.json",
        'sed -i s/a/b/ "$HOME/.claude/foo.json"',
        "cd ~/.claude && rm foo.json",
        "rm -rf ~/.claude/agents",
    ],
)
def test_host_wide_files_are_locked_for_all_repositories(harness: HookHarness, line: str) -> None:
    """Two sessions never write ~/.claude at once, by an edit or by a command (LCK-64, PRB-11)."""
    home = Path(harness.environ["HOME"])
    (home / ".claude").mkdir(parents=True)
    first = harness.edit("x", "ada", tool_input={"file_path": str(home / ".claude/foo.json"), "content": "x"})
    second = harness.edit(
        "x", "bob", tool_input={"file_path": str(home / ".claude/foo.json"), "content": "y"}
    )
    assert not harness.before(first).deny
    assert "claude-config is locked by claude (session ada)" in harness.before(second).deny
    assert (
        "claude-config is locked by claude (session ada)" in harness.before(harness.shell(line, "bob")).deny
    )
    harness.after(first)
    call = harness.shell(line, "bob")
    assert not harness.before(call).deny
    assert "claude-config" in harness.before(first).deny
    harness.after(call)
    assert not harness.before(harness.shell("cat ~/.claude/foo.json; cp ~/.claude/foo.json .", "bob")).deny


def test_files_of_another_repository_are_locked_in_its_store(harness: HookHarness) -> None:
    """Wherever a command goes, the store of that repository decides."""
    there = harness.root.parent / "there"
    made_repository(there)
    (there / "held.py").write_text("old\n")
    git(there, "add", ".")
    git(there, "commit", "-q", "-m", "held")
    initialise(str(there), harness.environ)
    call = harness.edit("x", "ada", tool_input={"file_path": str(there / "held.py"), "content": "x"})
    assert not harness.before(call).deny
    (there / "held.py").write_text("ada\n")
    for line in (
        f"echo x > {there}/held.py",
        f"cd {there} && rm held.py",
        "cd ../there; sed -i s/a/b/ held.py",
        f"git -C {there} checkout -- held.py",
        f"git -C {there} stash",
        f"git --git-dir={there}/.git --work-tree={there} checkout -- held.py",
        f"env -C {there} rm held.py",
    ):
        assert "held.py is locked" in harness.before(harness.shell(line, "bob")).deny, line


def test_effects_are_seen_where_a_command_goes(harness: HookHarness) -> None:
    """A command that works in another worktree is compared there, too."""
    linked = harness.root.parent / "linked"
    git(harness.root, "worktree", "add", "-q", "-b", "linked", str(linked))
    call = harness.shell(f"make -C {linked}", "bob")
    assert not harness.before(call).deny
    (linked / "held.py").write_text("made\n")
    harness.after(call)
    assert harness.held() == {"file:held.py": "bob"}
