"""Run git: arguments as a list, names that end with NUL, never a shell, never a prompt.

Git prints file names as bytes; `os.fsdecode` turns them into text, so any name survives.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from coord.core.errors import Refused, Unavailable
from coord.host.runtime.environment import acts_for_another, environment

if TYPE_CHECKING:
    import subprocess

TIMEOUT_S = 120.0
WAITING_S = 10.0
"""How often a caller hears that git is still running."""
OnWait = Callable[[float], None]
TERMINATE_S = 5.0
"""How long git may take to remove its lock files after it was asked to end."""
INDEX_WAIT_S = 10.0
PIPE_BYTES = 1 << 20
INDEX_NAP_S = 0.03
_HOOK_VARIABLES = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH"),
)
"""Variables that git sets for its hooks; they are wrong for any other repository."""
_ALWAYS = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
    "GIT_NO_REPLACE_OBJECTS": "1",  # otherwise a pushed `refs/replace/…` decides what is checked
}
_SETTINGS = (
    *("-c", "core.fsmonitor=false"),  # a program that chooses the files git looks at
    *("-c", "log.showSignature=false"),  # starts gpg, whose lines git prints among its own
    *("-c", "log.showRoot=true"),
)
"""Settings of git that would start a program, or change what git prints, whatever the repository says.

They are arguments and not variables, because git lets `-c` of a caller override its variables.
"""
_ANOTHER_WAS_FASTER = ("index.lock': File exists", "cannot lock ref 'HEAD': is at")
"""What git prints if another git has the index, or has moved HEAD; it has changed nothing then."""


class GitFailed(Refused):
    """Git refused or failed."""

    code = "git_failed"

    def __init__(self, arguments: tuple[str, ...], code: int, stderr: str) -> None:
        self.git_code = code
        self.stderr = stderr
        first = next((line for line in stderr.splitlines() if line.strip()), f"exit code {code}")
        super().__init__(f"git {arguments[0] if arguments else ''}: {first}", hint="look at git status")


class GitResult(NamedTuple):
    """The exit code and the output of a git command."""

    code: int
    out: bytes
    stderr: str

    @property
    def text(self) -> str:
        """The output without the last newline."""
        return os.fsdecode(self.out).removesuffix("\n")

    @property
    def names(self) -> list[str]:
        """The output as names that end with NUL."""
        return [os.fsdecode(name) for name in self.out.split(b"\0") if name]


class Git:
    """Runs git in one folder: a worktree or a bare repository."""

    def __init__(
        self, folder: str, *, in_hook: bool = False, environ: Mapping[str, str] | None = None
    ) -> None:
        """`in_hook`: this process is a hook of this repository, so the variables of git are right."""
        given = dict(environment() if environ is None else environ)
        if not in_hook:
            for name in _HOOK_VARIABLES:
                given.pop(name, None)
        self.folder = folder
        self.environ = {**given, **_ALWAYS}

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        timeout_s: float | None = TIMEOUT_S,
        on_wait: OnWait | None = None,
        starter: Sequence[str] = (),
        **environ: str,
    ) -> GitResult:
        """Run git and return its result; `on_wait` is called every few seconds while git runs.

        `starter`: a program that starts git in its own place.
        """
        import subprocess  # importing it takes longer than a git that `quick` runs

        try:
            process = subprocess.Popen(
                [*starter, "git", *_SETTINGS, *arguments],
                cwd=self.folder,
                env={**self.environ, **environ},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError as error:
            raise _cannot_run() from error
        with process:
            try:
                out, stderr = _communicate(process, stdin, timeout_s, on_wait)
            except subprocess.TimeoutExpired as error:
                raise _too_slow(arguments, timeout_s) from error
            finally:
                if process.poll() is None:
                    _end(process)
        return GitResult(process.returncode, out, stderr.decode("utf-8", "replace"))

    def at_most(self, bytes_max: int, timeout_s: float, *arguments: str) -> tuple[bytes, bool]:
        """Return the beginning of what git prints, and whether that is all; raise GitFailed if it fails.

        A git that prints more is killed; one that takes longer, too: Unavailable. It fetches nothing and asks
        nobody.
        """
        import subprocess
        import threading

        environ = {**self.environ, "GIT_NO_LAZY_FETCH": "1"}
        try:
            process = subprocess.Popen(
                ["git", *_SETTINGS, *arguments],
                cwd=self.folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise _cannot_run() from error
        expired = threading.Event()

        def end() -> None:
            expired.set()
            _kill_group(process.pid)

        late = threading.Timer(timeout_s, end)
        late.daemon = True
        late.start()
        with process:
            assert process.stdout is not None
            try:
                out = process.stdout.read(bytes_max + 1)
                if len(out) <= bytes_max:
                    process.wait()
            finally:
                late.cancel()
                if process.poll() is None:
                    _kill_group(process.pid)
        if len(out) > bytes_max:
            return out[:bytes_max], False
        if process.returncode and expired.is_set():
            raise _too_slow(arguments, timeout_s)
        if process.returncode:
            raise GitFailed(arguments, process.returncode, "")
        return out, True

    def quick(self, *arguments: str, stdin: bytes = b"") -> GitResult:
        """Run a short git command, or raise GitFailed; made for hooks, which must start fast."""
        return self.start(*arguments, stdin=stdin).result()

    def start(self, *arguments: str, stdin: bytes = b"", **environ: str) -> "RunningGit":
        """Start a git command that reads a short input; several can run at the same time."""
        given, giving = os.pipe()
        taking, taken = os.pipe()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        ends = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate((given, taken, nowhere))]
        try:
            words = ["git", *_SETTINGS, "-C", self.folder, *arguments]
            process = os.posix_spawnp(self._program(), words, {**self.environ, **environ}, file_actions=ends)
        except OSError as error:
            os.close(giving)
            os.close(taking)
            raise _cannot_run() from error
        finally:
            for end in (given, taken, nowhere):
                os.close(end)
        with open(giving, "wb", 0) as pipe, contextlib.suppress(BrokenPipeError):
            pipe.write(stdin)  # if git has ended already, its exit code says why
        return RunningGit(arguments, process, taking)

    def _program(self) -> str:
        """Return the git of this environment; `posix_spawnp` looks only into the folders of this process."""
        if acts_for_another():
            for folder in self.environ.get("PATH", "").split(os.pathsep):
                if os.path.isabs(folder) and os.access(f"{folder}/git", os.X_OK):
                    return f"{folder}/git"
        return "git"

    def must(self, *arguments: str, stdin: bytes = b"", **environ: str) -> GitResult:
        """Run git; raise GitFailed if it fails."""
        done = self.run(*arguments, stdin=stdin, timeout_s=TIMEOUT_S, on_wait=None, **environ)
        if done.code:
            raise GitFailed(arguments, done.code, done.stderr)
        return done

    def retry_on_race(
        self,
        *arguments: str,
        stdin: bytes = b"",
        timeout_s: float | None = TIMEOUT_S,
        on_wait: OnWait | None = None,
        starter: Sequence[str] = (),
        **environ: str,
    ) -> GitResult:
        """Run git as `must` does, but retry for a while if another git has the index or has moved HEAD."""
        deadline = time.monotonic() + INDEX_WAIT_S
        while True:
            done = self.run(
                *arguments, stdin=stdin, timeout_s=timeout_s, on_wait=on_wait, starter=starter, **environ
            )
            if not done.code:
                return done
            faster = any(text in done.stderr for text in _ANOTHER_WAS_FASTER)
            if not faster or time.monotonic() >= deadline:
                raise GitFailed(arguments, done.code, done.stderr)
            time.sleep(INDEX_NAP_S)  # noqa: TID251 - git has no way to wait for the index


def _cannot_run() -> Unavailable:
    return Unavailable("git cannot run here", hint="install git, or check the folder")


def _too_slow(arguments: Sequence[str], timeout_s: float | None) -> Unavailable:
    return Unavailable(
        f"git {arguments[0]} did not end within {timeout_s:g} s", hint="look for another git or a slow hook"
    )


def _kill_group(leader: int) -> None:
    """Kill a process that leads a group, and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


class RunningGit:
    """A git command that runs; what it prints as an error goes nowhere. Without its result it is a zombie."""

    def __init__(self, arguments: tuple[str, ...], process: int, output: int) -> None:
        self._arguments = arguments
        self._process = process
        self._output = output

    def result(self, timeout_s: float | None = None) -> GitResult:
        """Return the result when git ends, or raise GitFailed; Unavailable after the timeout."""
        try:
            out = self._read(timeout_s)
        except Unavailable:
            from signal import SIGTERM  # slow to import

            os.kill(self._process, SIGTERM)  # SIGKILL would leave its lock files
            raise
        finally:
            os.close(self._output)
            code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        if code:
            raise GitFailed(self._arguments, code, "")
        return GitResult(code, out, "")

    def _read(self, timeout_s: float | None) -> bytes:
        if timeout_s is None:
            with open(self._output, "rb", closefd=False) as file:
                return file.read()
        import select

        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        deadline, found = time.monotonic() + timeout_s, b""
        while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            some = os.read(self._output, PIPE_BYTES)
            if not some:
                return found
            found += some
        raise _too_slow(self._arguments, timeout_s)


def _communicate(
    process: "subprocess.Popen[bytes]", stdin: bytes, timeout_s: float | None, on_wait: OnWait | None
) -> tuple[bytes, bytes]:
    """Return the output of a process."""
    import subprocess

    began, given = time.monotonic(), stdin
    while True:
        passed_s = time.monotonic() - began
        left_s = None if timeout_s is None else max(0.0, timeout_s - passed_s)
        step_s = left_s if on_wait is None else WAITING_S if left_s is None else min(WAITING_S, left_s)
        try:
            return process.communicate(given, step_s)
        except subprocess.TimeoutExpired:
            if on_wait is None or step_s == left_s:
                raise
            given = b""  # the input was sent already
            on_wait(time.monotonic() - began)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End git gently first, because a killed git leaves the index locked."""
    import subprocess

    process.terminate()
    try:
        process.wait(TERMINATE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def nul_terminated(paths: Iterable[str]) -> bytes:
    """Return names as git reads them from standard input."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def as_text(name: str) -> str:
    """Return a name as valid UTF-8 text, with escapes for other bytes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
