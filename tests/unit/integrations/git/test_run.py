"""Running git without what Python's own way to run programs has to import."""

from pathlib import Path

import pytest

from coord.core.errors import Unavailable
from coord.integrations.git.run import Git, GitFailed
from tests.support.git_folders import PLAIN, git, made_repository


def test_a_quick_git_is_told_and_heard(tmp_path: Path) -> None:
    """Standard input and output are those of `run`, in the folder of the repository."""
    made_repository(tmp_path / "shop")
    ours = Git(str(tmp_path / "shop"), environ=PLAIN)
    data = b"x\0" * 100_000
    assert (
        ours.quick("hash-object", "--stdin", stdin=data).text
        == ours.must("hash-object", "--stdin", stdin=data).text
    )
    assert ours.quick("rev-parse", "--show-toplevel").text == ours.folder


def test_a_quick_git_that_fails_is_told(tmp_path: Path) -> None:
    """An answer of a git that failed is none, even where it did not read what it was told."""
    made_repository(tmp_path / "shop")
    with pytest.raises(GitFailed, match="git no-such-command: exit code 1"):
        Git(str(tmp_path / "shop"), environ=PLAIN).quick("no-such-command", stdin=b"x" * 200_000)


def test_a_machine_without_git_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git nothing can be looked at."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="git cannot run here"):
        Git(str(tmp_path)).quick("version")


def test_a_git_that_takes_too_long_leaves_no_lock(tmp_path: Path) -> None:
    """A git that is given up, such as in a slow hook, takes its lock of the index away with it."""
    made_repository(tmp_path / "shop")
    hook = tmp_path / "shop/.git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntouch began\nexec sleep 5 >/dev/null 2>&1\n")
    hook.chmod(0o755)
    words = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-m", "x")
    with pytest.raises(Unavailable, match="did not end within 1 s"):
        Git(str(tmp_path / "shop"), environ=PLAIN).run(*words, timeout_s=1.0)
    assert (tmp_path / "shop/began").exists()
    assert not (tmp_path / "shop/.git/index.lock").exists()


def test_a_started_git_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """A hook waits for git no longer than its deadline allows; what git prints until then is no answer."""
    made_repository(tmp_path / "shop")
    ours = Git(str(tmp_path / "shop"), environ=PLAIN)
    slow = ours.start("-c", "alias.slow=!echo some; touch began; exec sleep 60", "slow")
    with pytest.raises(Unavailable, match="did not end within 1 s"):
        slow.result(1.0)
    assert ours.start("rev-parse", "--show-toplevel").result(60.0).text == ours.folder


def test_a_started_git_may_print_more_than_a_pipe_holds(tmp_path: Path) -> None:
    """Several run at the same time, and each is read when its turn comes."""
    made_repository(tmp_path / "shop")
    ours = Git(str(tmp_path / "shop"), environ=PLAIN)
    blob = ours.must("hash-object", "-w", "--stdin", stdin=b"y" * 3_000_000).text
    running = [ours.start("cat-file", "blob", blob) for _ in range(3)]
    assert [len(each.result(60.0).out) for each in running] == [3_000_000] * 3


def test_settings_of_the_repository_start_no_program(tmp_path: Path) -> None:
    """Git would ask one program which files changed, and another one whether a signature is good."""
    shop = tmp_path / "shop"
    made_repository(shop)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\necho good: $*\n")
    program.chmod(0o755)
    raw = Git(str(shop), environ=PLAIN).must("cat-file", "commit", "HEAD").out
    signed = raw.replace(b"\n\n", b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END\n\n", 1)
    commit = Git(str(shop), environ=PLAIN).must("hash-object", "-w", "-t", "commit", "--stdin", stdin=signed)
    settings = {"core.fsmonitor": program, "gpg.program": program, "log.showSignature": "true"}
    for name, value in {**settings, "log.showRoot": "false"}.items():
        git(shop, "config", name, str(value))
    (shop / "src/app.py").write_text("other\n")
    for caller in ({}, {"GIT_CONFIG_PARAMETERS": f"'core.fsmonitor'='{program}'"}):
        ours = Git(str(shop), environ={**PLAIN, **caller})
        for status in (ours.must, ours.quick):
            assert status("status", "--porcelain").text == " M src/app.py"
        assert ours.must("log", "--name-only", "--format=%s", commit.text).text == "first\n\nsrc/app.py"
    assert not (tmp_path / "started").exists()
