"""The coding agents that the tests drive: pinned by a lock file, installed once into a cache folder.

`python -m tests.support.agents.programs` installs them, for `tools/setup agents`. If they are there, it is
silent.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PINS = Path(__file__).parent / "tools"
INSTALL_S = 900
# The programs themselves: the wrappers that npm links need a script run at installation, and time.
PLACES = {
    "claude": "@anthropic-ai/claude-code-*/claude",
    "codex": "@openai/codex-*/vendor/*/bin/codex",
    "gemini": "@google/gemini-cli/bundle/gemini.js",
}


def cache_folder() -> Path:
    """Where the agents of this very lock file are or will be."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256((PINS / "package-lock.json").read_bytes()).hexdigest()
    return Path(cache) / "coord-test-tools" / digest[:16]


def command_of(tool: str) -> list[str] | None:
    """Return how a tool is started, or None where it is not installed."""
    found = sorted((cache_folder() / "node_modules").glob(PLACES[tool]))
    node = shutil.which("node")
    if not found or (tool == "gemini" and node is None):
        return None
    program = str(found[0])
    return [str(node), program] if tool == "gemini" else [program]


def install() -> bool:
    """Install what the lock file names, whole or not at all; False where npm is missing or fails."""
    folder = cache_folder()
    if folder.exists():
        return True
    npm = shutil.which("npm")
    if npm is None:
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent):
        if folder.exists():
            return True
        sys.stderr.write(
            "==> Installing Claude Code, Codex and Gemini CLI for the tests (0.9 GB, a minute)\n"
        )
        for left in folder.parent.glob("draft-*"):  # by somebody who was killed: nobody else is at work here
            shutil.rmtree(left)
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder.parent))
        try:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(PINS / name, draft)
            quiet = [
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--no-update-notifier",
                "--loglevel=error",
            ]
            done = subprocess.run([npm, "ci", *quiet], cwd=draft, stdout=2, timeout=INSTALL_S, check=False)
            if done.returncode == 0:
                draft.chmod(0o755)
                draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder.exists()


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One installation at a time, of all checkouts."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(0 if install() else 1)
