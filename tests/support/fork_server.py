"""Processes for tests that start quickly: forks of a warm one, in which coord and its drivers are imported.

Only imported: nothing is opened, connected or known there, so that each is as good as a new interpreter. For
each of them a keeper is forked first, which tells at last how its child ended.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from typing import IO, Any, NoReturn

import coord

ROOT = Path(__file__).parents[2]
WARM = ("coord.core.", "coord.engine.", "coord.host.", "coord.sdk.", "coord.stores.")
MESSAGE_BYTES = 1 << 20
STDERR = 2


class Forked:
    """A program of the tests in a process of its own, to be used like `subprocess.Popen`."""

    def __init__(self, program: str, *arguments: str, text: bool = False) -> None:
        (theirs_in, ours_in), (ours_out, theirs_out), (told, tells) = os.pipe(), os.pipe(), os.pipe()
        mode = "" if text else "b"
        self.stdin: IO[Any] = os.fdopen(ours_in, f"w{mode}")
        self.stdout: IO[Any] = os.fdopen(ours_out, f"r{mode}")
        self._told = os.fdopen(told)
        self.returncode: int | None = None
        wanted = json.dumps([program, arguments, dict(os.environ)]).encode()
        socket.send_fds(_warm_process()[0], [wanted], [theirs_in, theirs_out, STDERR, tells])
        for each in (theirs_in, theirs_out, tells):
            os.close(each)
        self.pid = int(self._told.readline())

    def poll(self) -> int | None:
        """Return how it ended, if it has."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for its end."""
        if self.returncode is None:
            select.select([self._told], [], [], timeout)
        ended = self.poll()
        if ended is None:
            raise subprocess.TimeoutExpired([str(self.pid)], timeout)
        return ended

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if it lives."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it may have ended just now
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


Process = Forked | subprocess.Popen[Any]


def start(program: str, *arguments: str, under: tuple[str, ...] = (), text: bool = False) -> Process:
    """Start a program in a session of its own; what is to run under another one is a new interpreter."""
    if not under:
        return Forked(program, *arguments, text=text)
    return subprocess.Popen(
        [*under, sys.executable, "-m", program, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=text,
        start_new_session=True,
    )


def end(process: Process, within_s: float) -> None:
    """Leave nothing of it behind, nor of what it has started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):  # it may have ended just now
            os.killpg(process.pid, signal.SIGKILL)
    process.wait(within_s)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


@functools.cache
def _warm_process() -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """Start the warm process; it ends when this one does, or closes the socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return ours, process


# In the warm process, and in its children.


def main(asked: socket.socket) -> None:
    for module in pkgutil.walk_packages(coord.__path__, "coord."):
        if module.name.startswith(WARM):
            with contextlib.suppress(ImportError):  # a driver may be missing
                importlib.import_module(module.name)
    importlib.import_module("tests.support.process_group")  # most programs import something of it
    gc.collect()
    gc.freeze()  # what is warm is no garbage in any child
    while True:
        wanted, given, _, _ = socket.recv_fds(asked, MESSAGE_BYTES, 4)
        if not wanted:
            return
        if os.fork() == 0:
            asked.close()
            keep(json.loads(wanted), given)
        for each in given:
            os.close(each)
        with contextlib.suppress(ChildProcessError):  # there may be no keeper but those that are at work
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def keep(wanted: list[Any], given: list[int]) -> NoReturn:
    """Fork the process that is wanted, and see it through to its end."""
    *streams, tells = given
    child = os.fork()
    if child == 0:
        os.setsid()
        os.write(tells, f"{os.getpid()}\n".encode())
        os.close(tells)
        run(streams, *wanted)
    for each in streams:
        os.close(each)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(BrokenPipeError):  # nobody may be left who wants to know
        os.write(tells, f"{ended}\n".encode())
    os._exit(0)


def run(streams: list[int], program: str, arguments: list[str], environ: dict[str, str]) -> NoReturn:
    """Be a program, as if `python -m` had started it."""
    for target, each in enumerate(streams):
        os.dup2(each, target)
        os.close(each)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv[1:] = arguments
    code = 1
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        sys.stdout.flush()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever it is, it is said, as the interpreter would
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        main(requests)
