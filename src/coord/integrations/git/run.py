"""Running git: arguments as a list, names ended by NUL, never a shell, never a prompt.

What git says about files is bytes; here they are text as `os.fsdecode` makes it, so any name survives.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from coord.core.errors import Refused, Unavailable

if TYPE_CHECKING:
    import subprocess

TIMEOUT_S = 120.0
WAITING_S = 10.0
"""After so long, and again after so long, is it told that git is still at work."""
OnWait = Callable[[float], None]
TERMINATE_S = 5.0
"""So long git has to take its lock files away when it is told to end."""
INDEX_WAIT_S = 10.0
INDEX_NAP_S = 0.03
_HOOK_VARIABLES = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH"),
)
"""What git sets for its hooks: true for the repository that runs the hook, wrong for any other."""
_ALWAYS = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
    "GIT_NO_REPLACE_OBJECTS": "1",  # else whoever pushes a `refs/replace/…` decides what is judged
}


class GitFailed(Refused):
    """Git refused, or failed."""

    code = "git_failed"

    def __init__(self, arguments: tuple[str, ...], code: int, stderr: str) -> None:
        self.git_code = code
        self.stderr = stderr
        first = next((line for line in stderr.splitlines() if line.strip()), f"it ended with {code}")
        super().__init__(f"git {arguments[0] if arguments else ''}: {first}", hint="see what git status says")


class GitResult(NamedTuple):
    """How a git command ended, and what it said."""

    code: int
    out: bytes
    stderr: str

    @property
    def text(self) -> str:
        """What it printed, without the last line's end."""
        return os.fsdecode(self.out).removesuffix("\n")

    @property
    def names(self) -> list[str]:
        """What it printed, as names that end with NUL."""
        return [os.fsdecode(name) for name in self.out.split(b"\0") if name]


class Git:
    """The git of one folder: a worktree, or a bare repository."""

    def __init__(
        self, folder: str, *, in_hook: bool = False, environ: Mapping[str, str] | None = None
    ) -> None:
        """`in_hook`: this process is a hook of that very repository, whose index and objects git named."""
        given = dict(os.environ if environ is None else environ)
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
        **environ: str,
    ) -> GitResult:
        """Run git to its end, however it ends; `on_wait` is called again and again while it takes long."""
        import subprocess  # takes longer than a git that `quick` runs

        try:
            process = subprocess.Popen(
                ["git", *arguments],
                cwd=self.folder,
                env={**self.environ, **environ},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError as error:
            raise Unavailable("git cannot be run here", hint="install git, or look at the folder") from error
        with process:
            try:
                out, stderr = _communicate(process, stdin, timeout_s, on_wait)
            except subprocess.TimeoutExpired as error:
                raise Unavailable(
                    f"git {arguments[0]} did not end within {timeout_s:g} s",
                    hint="is another git at work, or does a hook take longer?",
                ) from error
            finally:
                if process.poll() is None:
                    _end(process)
        return GitResult(process.returncode, out, stderr.decode("utf-8", "replace"))

    def quick(self, *arguments: str, stdin: bytes = b"") -> GitResult:
        """Run a git that ends at once, or raise GitFailed: for hooks, which start anew for every call."""
        given, giving = os.pipe()
        taking, taken = os.pipe()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        ends = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate((given, taken, nowhere))]
        try:
            words = ["git", "-C", self.folder, *arguments]
            process = os.posix_spawnp("git", words, self.environ, file_actions=ends)
        except OSError as error:
            os.close(giving)
            os.close(taking)
            raise Unavailable("git cannot be run here", hint="install git, or look at the folder") from error
        finally:
            for end in (given, taken, nowhere):
                os.close(end)
        with open(giving, "wb", 0) as told, open(taking, "rb") as stderr:
            with contextlib.suppress(BrokenPipeError):  # it has ended already: its code says how
                told.write(stdin)
            told.close()
            out = stderr.read()
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if code:
            raise GitFailed(arguments, code, "")
        return GitResult(code, out, "")

    def must(self, *arguments: str, stdin: bytes = b"", **environ: str) -> GitResult:
        """Run git, and raise GitFailed unless it succeeds."""
        done = self.run(*arguments, stdin=stdin, timeout_s=TIMEOUT_S, on_wait=None, **environ)
        if done.code:
            raise GitFailed(arguments, done.code, done.stderr)
        return done

    def retry_on_index_lock(
        self,
        *arguments: str,
        stdin: bytes = b"",
        timeout_s: float | None = TIMEOUT_S,
        on_wait: OnWait | None = None,
        **environ: str,
    ) -> GitResult:
        """Run git as `must` does; where another git has the index, wait for it a while."""
        deadline = time.monotonic() + INDEX_WAIT_S
        while True:
            done = self.run(*arguments, stdin=stdin, timeout_s=timeout_s, on_wait=on_wait, **environ)
            if not done.code:
                return done
            if "index.lock': File exists" not in done.stderr or time.monotonic() >= deadline:
                raise GitFailed(arguments, done.code, done.stderr)
            time.sleep(INDEX_NAP_S)  # noqa: TID251 - git has no way to wait for the index


def _communicate(
    process: "subprocess.Popen[bytes]", stdin: bytes, timeout_s: float | None, on_wait: OnWait | None
) -> tuple[bytes, bytes]:
    """Return what a process says until it ends."""
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
            given = b""  # it has been told already
            on_wait(time.monotonic() - began)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End git; not at once, for a git that is killed leaves the index locked for everybody."""
    import subprocess

    process.terminate()
    try:
        process.wait(TERMINATE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def nul_terminated(paths: Iterable[str]) -> bytes:
    """Return names as git reads them from its standard input."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def as_text(name: str) -> str:
    """Return a name as text that can be written down, whatever bytes it has."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
