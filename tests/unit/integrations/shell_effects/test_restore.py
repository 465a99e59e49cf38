"""Restoring keeps every byte of both sides, whatever kind of file it is and whatever was done to it."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from coord.integrations.git.run import Git, GitFailed
from coord.integrations.git.salvage.salvage import list_salvages
from coord.integrations.shell_effects import restore
from coord.integrations.shell_effects.saved_content import BYTES_MAX
from tests.support.git_folders import PLAIN, git
from tests.unit.integrations.shell_effects.test_observe import APP, EffectsHarness


@pytest.fixture
def harness(tmp_path: Path) -> EffectsHarness:
    return EffectsHarness(tmp_path)


def ada_writes(harness: EffectsHarness, path: str, content: bytes, mode: int = 0o644) -> None:
    """Ada edits a file by a tool that leaves exactly these bytes."""
    call = harness.edit(path, "ada")
    assert harness.before(call).deny == ""
    (harness.root / path).parent.mkdir(parents=True, exist_ok=True)
    (harness.root / path).write_bytes(content)
    (harness.root / path).chmod(mode)
    harness.after(call)


def bob_does(harness: EffectsHarness, line: str) -> str:
    """Bob runs a program that no parser understands."""
    (harness.root.parent / "program").write_text(line)
    return harness.run("sh ../program")


def kept(harness: EffectsHarness, notes: str) -> bytes:
    """What bob is told to run to see the content that was written."""
    line = notes.partition("What was written: `")[2].partition("`")[0]
    assert line, notes
    done = subprocess.run(["sh", "-c", line], cwd=harness.root, env=PLAIN, check=True, capture_output=True)
    return done.stdout


BYTES = {
    "binary": (bytes(range(256)) * 40, b"\0\xff" * 100),
    "CRLF": (b"one\r\ntwo\r\n", b"one\r\nthree\nfour\r\n"),
    "no newline at the end": (b"one", b"two"),
    "empty": (b"", b"bob\n"),
    "emptied": (b"ada\n", b""),
    "not UTF-8": (b"caf\xe9\n", b"\xfe\xff\n"),
}
ATTRIBUTES = ("", "* text=auto eol=crlf\n", "* text eol=lf\n", "* filter=upper\n", "* filter=lfs -text\n")


@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_both_sides_keep_every_byte(harness: EffectsHarness, attributes: str) -> None:
    """No line end is converted and no filter is run, neither on what comes back nor on what is salvaged."""
    if attributes:
        git(harness.root, "config", "filter.upper.clean", "tr a-z A-Z")
        git(harness.root, "config", "filter.upper.smudge", "tr A-Z a-z")
        git(harness.root, "config", "filter.lfs.clean", "sha256sum")
        git(harness.root, "config", "filter.lfs.smudge", "cat")
        (harness.root / ".gitattributes").write_text(attributes)
        harness.commit(".gitattributes")
    for kind, (ours, theirs) in BYTES.items():
        name = f"{kind.replace(' ', '-')}.bin"
        ada_writes(harness, name, ours, 0o755)
        (harness.root.parent / "theirs").write_bytes(theirs)
        notes = bob_does(harness, f"cat ../theirs > {name}")
        assert (harness.root / name).read_bytes() == ours, kind
        assert stat.S_IMODE((harness.root / name).stat().st_mode) == 0o755, kind
        assert kept(harness, notes) == theirs, kind


WAYS = {
    "deleted": f"rm {APP}",
    "truncated": f"truncate -s 1 {APP}",
    "moved away": f"mv {APP} moved.py",
    "replaced by another": f"echo bob > new; mv new {APP}",
    "turned into a link": f"ln -sf /etc/hosts {APP}",
    "turned into a folder": f"rm {APP}; mkdir {APP}; echo bob > {APP}/inside",
    "turned into a pipe": f"rm {APP}; mkfifo {APP}",
    "made a hard link": f"echo bob > other; ln -f other {APP}",
    "its mode": f"chmod 751 {APP}",
    "the folder deleted": "rm -rf src",
    "the folder moved": "mv src lib",
    "the folder turned into a file": "rm -rf src; echo bob > src",
    "the folder turned into a link": "mv src lib; ln -s lib src; echo bob > lib/app.py",
    "checked out": f"git checkout -q -- {APP}",
    "checked out by force": "git checkout -q -f",
    "stashed": "git -c user.name=b -c user.email=b@b stash -q --include-untracked",
    "reset": "git reset -q --hard",
    "removed by git": f"git rm -q -f {APP}",
    "written twice": f"echo one > {APP}; echo two > {APP}",
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_was_done_the_holder_has_its_file(harness: EffectsHarness, way: str) -> None:
    """Every way to overwrite, delete, move, replace or re-link a held file is undone."""
    ada_writes(harness, APP, b"ada\r\n", 0o640)
    notes = bob_does(harness, WAYS[way])
    assert "coord restored the file" in notes
    found = (harness.root / APP).lstat()
    assert (stat.S_ISREG(found.st_mode), stat.S_IMODE(found.st_mode)) == (True, 0o640)
    assert (harness.root / APP).read_bytes() == b"ada\r\n"
    assert [message.blob["restored"] for message in harness.inbox("ada") if message.blob["path"] == APP] == [
        True
    ]
    assert git(harness.root, "ls-files", APP) == APP, "git knows the file again"
    assert harness.run("true") == "", "nothing is left to find"


def test_a_folder_in_place_of_a_file_is_kept(harness: EffectsHarness) -> None:
    """Its files are salvaged; the folder itself, with what git ignores, is moved where the note says."""
    (harness.root / ".gitignore").write_text("*.log\n")
    harness.commit(".gitignore")
    ada_writes(harness, APP, b"ada\n")
    notes = bob_does(harness, f"rm {APP}; mkdir {APP}; echo bob > {APP}/inside; echo log > {APP}/x.log")
    moved = Path(notes.partition("`ls -ld ")[2].partition("`")[0])
    assert (moved / "x.log").read_text() == "log\n"
    assert git(harness.root, "show", f"refs/coord/salvage/bob/1:{APP}/inside") == "bob"


def test_files_without_a_commit_come_back(harness: EffectsHarness) -> None:
    """A file that HEAD does not know, an ignored one that is watched, and one with an odd name."""
    (harness.root / ".gitignore").write_text(".env\n")
    harness.commit(".gitignore")
    names = ("new.txt", ".env", "-rf", "a b/ü [x]{y}.py", "'\"$(x)`")
    for name in names:
        ada_writes(harness, name, f"ada {name}".encode())
    bob_does(
        harness, "rm -rf -- new.txt .env -rf 'a b'; find . -maxdepth 1 -name '*x*' -delete; git clean -fdxq"
    )
    assert [(harness.root / name).read_text() for name in names] == [f"ada {name}" for name in names]
    notes = bob_does(harness, 'for each in *.txt .env ./-rf a*/* ./*x*; do echo bob > "$each"; done')
    assert [(harness.root / name).read_text() for name in names] == [f"ada {name}" for name in names]
    assert notes.count("What was written") == len(names)


def test_a_name_that_cannot_be_locked_is_covered_by_its_folder(harness: EffectsHarness) -> None:
    """A lock on a folder covers names with control characters, too."""
    (harness.root / "src/new\nline").write_bytes(b"ada\n")
    git(harness.root, "add", "src")
    git(harness.root, "commit", "-q", "-m", "odd")
    harness.write("other.txt", "ada")
    with harness.client("ada") as ada:
        ada.acquire("src")
    bob_does(harness, 'for each in src/*; do echo bob > "$each"; done')
    assert (harness.root / "src/new\nline").read_bytes() == b"ada\n"
    assert harness.text() == "app\n"


def test_a_clean_file_comes_back_as_git_checks_it_out(harness: EffectsHarness) -> None:
    """Before its holder's first write a file has the content of the index, with its line ends and links."""
    (harness.root / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (harness.root / "lines.txt").write_bytes(b"one\r\ntwo\r\n")
    (harness.root / "link").symlink_to("src/app.py")
    (harness.root / "tool").write_text("#!/bin/sh\n")
    (harness.root / "tool").chmod(0o755)
    git(harness.root, "add", "--all")
    git(harness.root, "commit", "-q", "-m", "all")
    harness.write("other.txt", "ada")
    with harness.client("ada") as ada:
        for name in ("lines.txt", "link", "tool"):
            ada.acquire(name)
    bob_does(harness, "echo bob > lines.txt; rm link; echo bob > link; chmod -x tool")
    assert (harness.root / "lines.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert os.readlink(harness.root / "link") == "src/app.py"
    assert os.access(harness.root / "tool", os.X_OK)


def test_large_files(harness: EffectsHarness) -> None:
    """What is written over a file may be large; a large content of the holder is kept only if it is clean."""
    (harness.root / "clean.bin").write_bytes(b"ada\0" * (BYTES_MAX // 4 + 1))
    harness.commit("clean.bin")
    ada_writes(harness, APP, b"ada\n")
    ada_writes(harness, "dirty.bin", b"ada\0" * (BYTES_MAX // 4 + 1))
    with harness.client("ada") as ada:
        ada.acquire("clean.bin")
    notes = bob_does(
        harness, f"head -c {BYTES_MAX + 5} /dev/zero > {APP}; echo bob > clean.bin; echo bob > dirty.bin"
    )
    assert harness.text() == "ada\n"
    assert (harness.root / "clean.bin").stat().st_size == BYTES_MAX + 4
    assert len(kept(harness, notes[notes.index(f"changed {APP}") :])) == BYTES_MAX + 5
    assert f"the former content is lost: it had {BYTES_MAX + 4} bytes" in notes
    assert harness.text("dirty.bin") == "bob\n"


def test_staged_content_is_staged_again(harness: EffectsHarness) -> None:
    """A reset in a program drops what the holder has staged; a commit of it still finds it there."""
    ada_writes(harness, APP, b"staged\n")
    git(harness.root, "add", APP)
    ada_writes(harness, APP, b"ada\n")
    bob_does(harness, "git reset -q --hard")
    assert harness.text() == "ada\n"
    assert git(harness.root, "show", f":{APP}") == "staged"


def test_a_file_that_git_brings_is_left(harness: EffectsHarness) -> None:
    """A checkout of another commit is no overwrite of work; the holder hears of it."""
    git(harness.root, "branch", "side")
    (harness.root / APP).write_text("main\n")
    harness.commit(APP)
    harness.write("other.txt", "ada")
    with harness.client("ada") as ada:
        ada.acquire(APP)
    notes = bob_does(harness, "git checkout -q side")
    assert "git has checked out the content of another commit" in notes
    assert harness.text() == "app\n"
    assert harness.inbox("ada")[0].kind == "warn"


def test_a_full_disk_loses_neither_side(harness: EffectsHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """If what was written cannot be salvaged, it stays; the holder's content is in git already."""
    ada_writes(harness, APP, b"ada\n")

    def full(*_: object, **__: object) -> str:
        raise GitFailed(("hash-object",), 128, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(restore, "save_blobs", full)
        notes = bob_does(harness, f"echo bob > {APP}")
    assert "coord did not restore it" in notes
    assert harness.text() == "bob\n"
    (message,) = harness.inbox("ada")
    line = message.body.partition("The content before: ")[2]
    done = subprocess.run(["sh", "-c", line], cwd=harness.root, env=PLAIN, check=True, capture_output=True)
    assert done.stdout == b"ada\n"

    def no_room(*_: object) -> str:
        raise OSError(28, "No space left on device")

    harness.write(APP, "ada", "ada\n")
    monkeypatch.setattr(restore, "_write_beside", no_room)
    assert "coord did not restore it" in bob_does(harness, f"echo bob > {APP}")
    assert harness.text() == "bob\n"
    assert os.listdir(harness.root / "src") == ["app.py"]


def test_what_the_holder_writes_after_the_command_stays(
    harness: EffectsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the restoring the holder may save its file again."""
    ada_writes(harness, APP, b"ada\n")
    really = restore.Restorer._clear_above

    def late(self: restore.Restorer, path: str, moved: dict[str, str]) -> str:
        (harness.root / APP).write_text("newer\n")
        return really(self, path, moved)

    monkeypatch.setattr(restore.Restorer, "_clear_above", late)
    bob_does(harness, f"echo bob > {APP}")
    assert harness.text() == "newer\n"


def test_a_background_process_is_reported_with_the_next_call(harness: EffectsHarness) -> None:
    """It wrote when no call ran: nobody is blamed, nothing is touched, and its holder hears of it once."""
    ada_writes(harness, APP, b"ada\n")
    harness.run("true")
    (harness.root / APP).write_text("late\n")
    assert harness.run("true") == ""
    assert harness.run("true") == ""
    (message,) = harness.inbox("ada")
    assert "after your last call ended" in message.body
    line = message.body.partition("Your last content: ")[2]
    done = subprocess.run(["sh", "-c", line], cwd=harness.root, env=PLAIN, check=True, capture_output=True)
    assert done.stdout == b"ada\n"
    assert harness.text() == "late\n"
    assert "coord restored the file" in bob_does(harness, f"echo bob > {APP}")
    assert harness.text() == "late\n", "the content before the command"


def test_no_temporary_file_is_left(harness: EffectsHarness) -> None:
    """Neither in the worktree nor beside the private files."""
    ada_writes(harness, APP, b"ada\n")
    bob_does(harness, f"echo bob > {APP}")
    (folder,) = (harness.root / ".git/coord/effects").iterdir()
    assert {name.partition("-")[0] for name in os.listdir(folder)} == {
        *("lock", "calls", "saved", "enforcement", "content")
    }
    assert os.listdir(harness.root / "src") == ["app.py"]
    assert len(list_salvages(Git(str(harness.root)), "bob")) == 1
