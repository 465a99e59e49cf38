"""The check of `coord doctor` for the hub of this user."""

import os
import time
from collections.abc import Mapping

from coord.core.errors import CoordError, Unsupported
from coord.host.caller import TENANT
from coord.host.repository import Repository
from coord.host.runtime.hub_socket import OFF, SOCKET, runtime_folder, socket_of_user
from coord.host.runtime.start_hub import hub_runs, is_wanted
from coord.sdk.remote.address import read_state
from coord.sdk.remote.channel import UnixChannel
from coord.sdk.remote.database import say_hello
from coord.sdk.reports.doctor import OK, WARN, Finding

ANSWER_S = 2.0


def hub_answers(repository: Repository | None, environ: Mapping[str, str]) -> bool:
    """Return whether hooks and commands here are answered by a hub."""
    found = examine_hub(repository, environ)
    return any(each.state == OK and " answers in " in each.message for each in found)


def examine_hub(repository: Repository | None, environ: Mapping[str, str]) -> list[Finding]:
    """Check the hub of this user: none, one that serves this version, or one that helps nobody."""
    if environ.get("COORD_HUB") == OFF:
        return []
    folder = runtime_folder(environ)
    state = read_state(environ) if folder else None
    if state is None:
        return _check_absent(folder, environ)
    channel = UnixChannel(state.socket)
    began = time.monotonic()
    try:
        root = "" if repository is None else repository.root or repository.commondir
        say_hello(channel, root, TENANT, ANSWER_S)
    except Unsupported as error:
        return [Finding("hub", WARN, f"{error.message}; nobody uses it", "coord serve --stop")]
    except CoordError as error:
        return [Finding("hub", WARN, f"the hub (pid {state.pid}) does not help here: {error.message}", _NEXT)]
    finally:
        channel.close()
    took_ms = (time.monotonic() - began) * 1000
    where = f" and {state.listen}" if state.listen else ""
    served = f"the hub (pid {state.pid}, coord {state.version}) answers in {took_ms:.1f} ms"
    return [Finding("hub", OK, f"{served} at {state.socket}{where}")]


_NEXT = "coord serve --stop; commands and hooks work without it"


def _check_absent(folder: str, environ: Mapping[str, str]) -> list[Finding]:
    """Report why no hub serves: none was started, or one left its socket behind."""
    if folder and hub_runs(folder):
        return [Finding("hub", WARN, f"a hub has locked {folder}, and does not say where it serves", _NEXT)]
    if folder and os.path.lexists(f"{folder}/{SOCKET}"):
        whose = "a hub that was killed" if socket_of_user(environ) else "somebody else"
        return [Finding("hub", WARN, f"{folder}/{SOCKET} is left from {whose}", "coord serve replaces it")]
    if is_wanted(environ):
        return [Finding("hub", OK, "no hub runs; the next hook or command starts one")]
    return []
