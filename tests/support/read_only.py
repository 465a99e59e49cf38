"""A read-only view of a folder, as a sandbox gives it: a mount of its own, which not even root can write."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SHOW = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && cd "$0" && exec "$@"'


def run_read_only(
    folder: Path, command: Sequence[str], cwd: Path | None = None, environ: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command that sees a folder read-only; everybody else may write it meanwhile. It needs root."""
    whole = ["unshare", "--mount", "sh", "-c", SHOW, str(cwd or "/"), str(folder), *command]
    return subprocess.run(whole, env=environ or os.environ, capture_output=True, text=True, check=False)
