"""The program of an agent tool and its version, as its process and its package show them."""

import os
from typing import NamedTuple

from coord.core.identity import Process

INTERPRETERS = ("node", "bun", "deno", "python")
"""Programs that run a tool, which is then their first argument that is no option."""
PACKAGE_LEVELS = 3
"""How many folders above the program its package file may lie."""


class Program(NamedTuple):
    """The path of a program and its version; empty where nothing shows them."""

    path: str = ""
    version: str = ""


def program_of(process: Process | None) -> Program:
    """Return the program that runs in a process of this machine."""
    if process is None:
        return Program()
    try:
        path = os.readlink(f"/proc/{process.pid}/exe")
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            words = [os.fsdecode(word) for word in file.read().split(b"\0")[1:]]
        if os.path.basename(path).startswith(INTERPRETERS):
            path = next((word for word in words if word and not word.startswith("-")), path)
            path = os.path.realpath(os.path.join(f"/proc/{process.pid}/cwd", path))
    except OSError:
        return Program()
    return Program(path.encode("utf-8", "backslashreplace").decode(), _version(path))


def _version(path: str) -> str:
    """Return the version of a program: its own name, as installers choose it, or that of its package."""
    name = os.path.basename(path)
    if name[:1].isdigit() and "." in name:  # …/claude/versions/2.1.325
        return name
    folder = path
    for _ in range(PACKAGE_LEVELS):
        folder = os.path.dirname(folder)
        try:
            with open(f"{folder}/package.json", "rb") as file:
                return _version_in(file.read())
        except OSError:
            continue
    return ""


def _version_in(package: bytes) -> str:
    import json

    try:
        found = json.loads(package)
    except ValueError:
        return ""
    version = found.get("version") if isinstance(found, dict) else None
    return version if isinstance(version, str) else ""
