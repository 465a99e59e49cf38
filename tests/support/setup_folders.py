"""Set up coord in a repository, and take snapshots of folders to compare."""

import os
import stat
from pathlib import Path

from coord.host.repository import find_repository
from coord.integrations.setup.changes import Plan
from coord.integrations.setup.installer import plan_repository
from coord.integrations.setup.removal import plan_removal
from coord.integrations.setup.tools import named_tools

Snapshot = dict[str, tuple[int, bytes]]


def snapshot(*folders: Path) -> Snapshot:
    """Return everything below some folders: the mode and bytes of each file, link targets, folders."""
    found: Snapshot = {}
    for top in folders:
        for folder, names, files in os.walk(top):
            for name in (*names, *files):
                path = f"{folder}/{name}"
                mode = os.lstat(path).st_mode
                data = b""
                if stat.S_ISLNK(mode):
                    data = os.fsencode(os.readlink(path))
                elif stat.S_ISREG(mode):
                    data = Path(path).read_bytes()
                found[path] = (mode, data)
    return found


def planned(folder: Path, tools: str = "claude,codex,gemini", *, shared: bool = False) -> Plan:
    """Return the plan of a setup."""
    repository = find_repository(str(folder))
    assert repository is not None
    chosen = named_tools(tools) if tools else ()
    return plan_repository(repository, os.environ, chosen, shared=shared)


def set_up(folder: Path, tools: str = "claude,codex,gemini", *, shared: bool = False) -> Plan:
    """Set coord up in a repository."""
    plan = planned(folder, tools, shared=shared)
    plan.apply()
    return plan


def take_out(folder: Path) -> Plan:
    """Remove coord from a repository."""
    repository = find_repository(str(folder))
    assert repository is not None
    plan = plan_removal(repository)
    plan.apply()
    return plan


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file, and create its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(mode)
