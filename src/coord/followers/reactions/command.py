"""Run the command of a reaction: without a shell, in its own process group, in bounded time and output.

It runs in nobody's name. Its environment is a short list of usual variables, those that its table names, and
what coord says about the event. If it calls coord, it is the session `reaction-NAME`: never the agent that
caused the event, and never a person.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from coord.core.errors import CoordError, Refused
from coord.core.messages.quoting import visible
from coord.followers.reactions.events import Delivery, fields_of

OUTPUT_CHARS_MAX = 1000
EVENT_BYTES_MAX = 64 * 1024
"""A larger event is not in the environment of the command: the kernel accepts 128 KiB for a variable."""
LOOK_S = 0.05
JOIN_S = 1.0
READ_BYTES = 65536
PASSED_ON = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"),
)
PASSED_ON_PREFIXES = ("LC_", "XDG_")


class Failed(CoordError):
    """A command did not succeed."""


class Ran(NamedTuple):
    """A command that succeeded."""

    took_ms: int
    output: str


def environment(
    environ: Mapping[str, str], more: Sequence[str], delivery: Delivery, reaction: str
) -> dict[str, str]:
    """Return the environment of a command."""
    kept = {
        name: value
        for name, value in environ.items()
        if name in PASSED_ON or name in more or name.startswith(PASSED_ON_PREFIXES)
    }
    event = msgspec.json.encode(fields_of(delivery, reaction)).decode()
    return {
        **kept,
        "COORD_EVENT": event if len(event.encode()) <= EVENT_BYTES_MAX else "",
        "COORD_EVENT_NAME": delivery.event,
        "COORD_DELIVERY": delivery.id_for(reaction),
        "COORD_HOPS": str(delivery.hops + 1),
        "COORD_SESSION_ID": f"reaction-{reaction}",
        "COORD_AGENT": "reaction",
    }


def run(
    arguments: Sequence[str], cwd: str, environ: Mapping[str, str], timeout_s: float, stop: threading.Event
) -> Ran:
    """Run a command to its end; raise `Failed` unless it ends with 0, and `Refused` if coord stops."""
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            list(arguments), cwd=cwd, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Failed(f"{arguments[0]}: {reason}", hint="name an executable; there is no shell") from error
    said = _Tail(process)
    try:
        ended = _wait(process, began + timeout_s, stop)
    finally:
        with suppress(ProcessLookupError, PermissionError):  # also processes that the command left
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    output = said.text()
    if not ended and stop.is_set():
        raise Refused("coord stops", hint="it is run again")
    if not ended:
        raise Failed(f"it did not end within {timeout_s:.0f} s {output}".strip(), hint="raise timeout_s")
    if code:
        raise Failed(f"it ended with {code} {output}".strip(), hint="run it by hand")
    return Ran(int((time.monotonic() - began) * 1000), output)


def _wait(process: "subprocess.Popen[bytes]", deadline: float, stop: threading.Event) -> bool:
    """Return whether a process ended in time; it keeps its number until its group is killed."""
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= deadline or stop.wait(LOOK_S):
            return False
    return True


class _Tail:
    """Reads what a process writes, and keeps the end of it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None, "it is a pipe"
        self._pipe = process.stdout
        self._end = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while part := os.read(self._pipe.fileno(), READ_BYTES):
            self._end = (self._end + part)[-4 * OUTPUT_CHARS_MAX :]
        self._pipe.close()

    def text(self) -> str:
        """Return the end of the output; a process that left the group may still have the pipe."""
        self._thread.join(JOIN_S)
        return visible(self._end.decode("utf-8", "replace").strip()[-OUTPUT_CHARS_MAX:])
