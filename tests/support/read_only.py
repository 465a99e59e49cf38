"""A read-only view of a folder, as a sandbox gives it: a mount of its own, which not even root can write."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SHOW = (
    'mount --bind "$1" "$1" && { test -z "$2" || mount --bind "$2" "$2"; } && mount -o remount,ro,bind "$1" '
    '&& shift 2 && cd "$0" && exec "$@"'
)


def run_read_only(
    folder: Path,
    command: Sequence[str],
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    writable: Path | str = "",
) -> "subprocess.CompletedProcess[str]":
    """Run a command that sees a folder read-only, all but one folder in it. It needs root.

    Everybody else may write it at the same time.
    """
    whole = ["unshare", "--mount", "sh", "-c", SHOW, str(cwd or "/"), str(folder), str(writable), *command]
    return subprocess.run(whole, env=environ or os.environ, capture_output=True, text=True, check=False)
