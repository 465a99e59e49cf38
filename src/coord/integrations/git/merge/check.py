"""Run the check command of a merge in a temporary worktree.

The worktree belongs to coord: nobody works in it, and it contains only a merge that is not accepted yet.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from coord.core.errors import Invalid
from coord.integrations.git.run import Git
from coord.integrations.git.worktree.worktree import worktrees
from coord.sdk.client.blocks import LockBlock

PREFIX = "coord-check-"
LOOK_S = 0.5
SAID_BYTES_MAX = 4000
NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


class CheckResult(NamedTuple):
    """Whether a tree passed, and the end of the command's output."""

    passed: bool
    said: str


def check(git: Git, commit: str, command: Sequence[str], held: LockBlock, timeout_s: float) -> CheckResult:
    """Run a command on a commit; raise if the lock is lost, because then the result does not count."""
    with _worktree(git, commit) as folder, tempfile.TemporaryFile() as said:
        environ = {**git.environ, "COORD_CHECKED_COMMIT": commit}
        try:
            process = subprocess.Popen(
                list(command), cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=said,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Invalid(
                f"{command[0]}: {error.strerror}", hint="name an executable; the command runs without a shell"
            ) from error
        try:
            code = _wait(process, held, time.monotonic() + timeout_s)
        finally:
            with suppress(ProcessLookupError, PermissionError):  # also processes that the command left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        size = said.seek(0, os.SEEK_END)
        said.seek(max(0, size - SAID_BYTES_MAX))
        text = said.read().decode("utf-8", "replace").strip()
    if code is None:
        return CheckResult(False, f"{text}\nit did not end within {timeout_s:.0f} s".strip())
    return CheckResult(code == 0, text or f"exit code {code}")


def _wait(process: "subprocess.Popen[bytes]", held: LockBlock, deadline: float) -> int | None:
    while True:
        held.check()
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=LOOK_S)
        if time.monotonic() >= deadline:
            return None


@contextmanager
def _worktree(git: Git, commit: str) -> Iterator[str]:
    """Yield a temporary worktree; a file lock shows that it is in use and ends with this process."""
    folder = tempfile.mkdtemp(prefix=PREFIX)
    tree = f"{folder}/tree"
    with open(f"{folder}/in-use", "wb") as in_use:
        fcntl.flock(in_use, fcntl.LOCK_EX)
        try:
            git.must(*NO_HOOKS, "worktree", "add", "--quiet", "--detach", "--force", tree, commit)
            yield tree
        finally:
            _remove(git, folder)


def _remove(git: Git, folder: str) -> None:
    """Remove one worktree; `prune` would also drop worktrees on disks that are not mounted now."""
    git.run("worktree", "remove", "--force", "--force", f"{folder}/tree")
    shutil.rmtree(folder, ignore_errors=True)


def remove_stale_worktrees(git: Git) -> None:
    """Remove the worktrees of checks whose process was killed."""
    for folder in [os.path.dirname(each.path) for each in worktrees(git)]:
        if os.path.basename(folder).startswith(PREFIX):
            try:
                with open(f"{folder}/in-use", "rb") as in_use:
                    fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (FileNotFoundError, BlockingIOError):
                continue
            _remove(git, folder)
