"""Decide whether Claude Code can send its hooks by HTTP here, and where to."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from hashlib import sha256
from os import fsencode

from coord.core.errors import Invalid, Refused, Unsupported
from coord.host.repository import Repository
from coord.integrations.setup.tools import CLAUDE, HttpForm, Tool
from coord.sdk.remote.address import read_state

SINCE = (2, 1, 295)
"""The first Claude Code that can refuse a call if its hook fails (`onFailure`)."""
VERSION_S = 30
DEFAULT_HUB = "http://127.0.0.1:7420"
LOOPBACK = "http://127.0.0.1:"
VARIABLE = "COORD_HOOK_TOKEN"
OTHERWISE = "coord init --hub=auto uses the hub, and works without it"


def find_form(repository: Repository, environ: Mapping[str, str]) -> HttpForm:
    """Return where the hooks of a repository go: to the hub that runs, or to where one would listen."""
    state = read_state(environ)
    hub = state.listen if state is not None and state.listen else DEFAULT_HUB
    if not hub.startswith(LOOPBACK):
        raise Refused(f"your hub listens at {hub}, and http hooks need 127.0.0.1", hint=OTHERWISE)
    return HttpForm(hub, variable_of(repository))


def variable_of(repository: Repository) -> str:
    """Return the variable with the token of a repository; no two repositories share one."""
    return f"{VARIABLE}_{sha256(fsencode(repository.commondir)).hexdigest()[:8].upper()}"


def check_usable(tools: Sequence[Tool], environ: Mapping[str, str], *, shared: bool, by_user: bool) -> None:
    """Refuse the form where a call would pass if the hub is down, or the token could not be right."""
    if CLAUDE not in tools:
        raise Invalid("only Claude Code has http hooks", hint="add claude to --tools")
    if shared or by_user:
        option, why = (
            ("--shared", "git would bring them to people without your hub")
            if shared
            else ("--user", "no two repositories share a token")
        )
        raise Invalid(f"http hooks cannot be written with {option}: {why}", hint=f"omit {option}")
    check_version(environ)


def check_version(environ: Mapping[str, str]) -> None:
    """Raise Unsupported unless the installed Claude Code refuses calls when their hook fails."""
    program = shutil.which(CLAUDE.name, path=environ.get("PATH"))
    wanted = ".".join(map(str, SINCE))
    if program is None:
        raise Unsupported(
            f"claude is not on the PATH, so coord cannot see whether it is {wanted} or newer; an older one "
            "lets every call pass while the hub is down",
            hint=OTHERWISE,
        )
    found = _version(program, environ)
    if found < SINCE:
        named = ".".join(map(str, found)) or "of an unknown version"
        raise Unsupported(
            f"Claude Code {named} lets every call pass while the hub is down: it needs {wanted} or newer",
            hint=f"update Claude Code, or: {OTHERWISE}",
        )


def _version(program: str, environ: Mapping[str, str]) -> tuple[int, ...]:
    """Return the version that a program prints; () if it prints none."""
    try:
        done = subprocess.run(
            [program, "--version"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.match(rb"(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b", done.stdout.strip())
    return tuple(map(int, match.groups())) if match and done.returncode == 0 else ()
