"""Starts programs of the tests as forks of a process that has imported their modules already.

A server only imports: it opens and connects nothing, so a fork is as good as a new interpreter. Each test
worker has one server for each module to import first (`preload`). For every program the server forks a
keeper; the keeper forks the program, waits for its end and reports the exit code.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).parents[2]
PRELOAD = "tests.support.preload_coord"
OF_THIS_RUN = ("CI", "COORD_SOAK", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "PYTEST_PLUGINS")
"""Variables of this run of tests; some modules read them when they are imported."""
MESSAGE_BYTES = 1 << 20
STDERR = 2


class Forked:
    """A program of the tests in a forked process, with the methods of `subprocess.Popen`."""

    def __init__(
        self,
        program: str,
        *arguments: str,
        text: bool = False,
        environ: Mapping[str, str] = os.environ,
        preload: str = PRELOAD,
    ) -> None:
        (theirs_in, ours_in), (ours_out, theirs_out), (status, report) = os.pipe(), os.pipe(), os.pipe()
        mode = "" if text else "b"
        self.stdin: IO[Any] = os.fdopen(ours_in, f"w{mode}")
        self.stdout: IO[Any] = os.fdopen(ours_out, f"r{mode}")
        self._status = os.fdopen(status)
        self.returncode: int | None = None
        request = json.dumps([program, arguments, dict(environ)]).encode()
        socket.send_fds(_server(preload)[0], [request], [theirs_in, theirs_out, STDERR, report])
        for each in (theirs_in, theirs_out, report):
            os.close(each)
        self.pid = int(self._status.readline())

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.returncode = int(self._status.readline())
            self._status.close()
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for the end of the process and return its exit code."""
        if self.returncode is None:
            select.select([self._status], [], [], timeout)
        ended = self.poll()
        if ended is None:
            raise subprocess.TimeoutExpired([str(self.pid)], timeout)
        return ended

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it may have ended just now
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


Process = Forked | subprocess.Popen[Any]


def start(program: str, *arguments: str, under: tuple[str, ...] = (), text: bool = False) -> Process:
    """Start a program in a new process group; `under` another program it is a new interpreter."""
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
    """Kill a process and its children, wait for its end and close its pipes."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):  # it may have ended just now
            os.killpg(process.pid, signal.SIGKILL)
    process.wait(within_s)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def plain_environment() -> dict[str, str]:
    """Return the environment without the variables of this run of tests."""
    return {name: value for name, value in os.environ.items() if name not in OF_THIS_RUN}


@functools.cache
def _server(preload: str) -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """Start a server; it ends when this process ends or closes the socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno()), preload],
            cwd=ROOT,
            env=plain_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return ours, process


# In the server, and in its children.


def serve(requests: socket.socket, preload: str) -> None:
    """Fork a process for each request, until the other side closes the socket."""
    importlib.import_module(preload)
    gc.collect()
    gc.freeze()  # no child collects what the server has imported
    while True:
        request, given, _, _ = socket.recv_fds(requests, MESSAGE_BYTES, 4)
        if not request:
            return
        if os.fork() == 0:
            requests.close()
            keep(json.loads(request), given)
        for each in given:
            os.close(each)
        with contextlib.suppress(ChildProcessError):  # no keeper has ended, or none is left
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def keep(request: list[Any], given: list[int]) -> NoReturn:
    """Fork the requested process, and report its id and its exit code."""
    *streams, report = given
    child = os.fork()
    if child == 0:
        os.setsid()
        os.write(report, f"{os.getpid()}\n".encode())
        os.close(report)
        run(streams, *request)
    for each in streams:
        os.close(each)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(BrokenPipeError):  # the reader may have ended
        os.write(report, f"{ended}\n".encode())
    os._exit(0)


def run(streams: list[int], program: str, arguments: list[str], environ: dict[str, str]) -> NoReturn:
    """Run a program as `python -m` does, and end with its exit code."""
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
    except BaseException:  # noqa: BLE001 - the interpreter, too, prints any exception
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given_socket:
        serve(given_socket, sys.argv[2])
