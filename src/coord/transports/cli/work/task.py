"""Run a command for one task: its files, environment and process, and the meaning of its exit code."""

import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.limits import RESULT_BYTES_MAX
from coord.host.progress import VARIABLE as PROGRESS_FILE
from coord.sdk.client.lease import clock
from coord.sdk.worker.work import LOOK_S, CannotBeDone, GiveBack, RateLimited, Work, WorkFailed
from coord.transports import arguments, exit_codes
from coord.transports.cli.handlers.tasks import claim_fields
from coord.transports.cli.output import fields_of
from coord.transports.cli.process import Child
from coord.transports.cli.watchdog import Watchdog
from coord.transports.cli.work.progress import Screen
from coord.transports.cli.work.reaper import children, end_orphans

LIMITED, HOPELESS = exit_codes.TRY_AGAIN, 65
"""Exit codes of sysexits.h: EX_TEMPFAIL (try later) and EX_DATAERR (a retry cannot help)."""
TAIL_BYTES = 16 * 1024
PUMP_S = 1.0
_PLACEHOLDER = re.compile(
    r"\{(task_id|generation|description|type|track|project|session_id|task_file|result_file|context_file"
    r"|context)\}"
)


FILES = ("task_file", "result_file", "context_file")
"""Values that are also in the environment of the command, as `COORD_TASK_FILE` and so on."""


class Tail(threading.Thread):
    """Forwards the output of a command, and keeps the end of it."""

    def __init__(self, pass_on: Callable[[bytes], None]) -> None:
        super().__init__(name="coord-output", daemon=True)
        self._read, self.write = os.pipe()
        self._pass_on = pass_on
        self._kept = bytearray()
        self.start()

    def run(self) -> None:
        """Read until the last writer is gone."""
        with open(self._read, "rb", buffering=0) as source:
            while chunk := source.read(TAIL_BYTES):
                self._kept = (self._kept + chunk)[-TAIL_BYTES:]
                self._pass_on(chunk)

    @property
    def text(self) -> str:
        """The end of what was written."""
        self.join(PUMP_S)  # a process that we cannot see may keep it open for ever
        return bytes(self._kept).decode("utf-8", "replace").strip()


class Files(NamedTuple):
    """The files with the task and with the context of its worker, those for its result and for progress."""

    task: Path
    result: Path
    progress: Path
    context: Path


class TaskCommand:
    """A command that runs once per task."""

    def __init__(
        self,
        command: list[str],
        screen: Screen,
        environ: Mapping[str, str],
        *,
        grace_s: float,
        limited_s: float,
        timeout_s: float | None,
        silence_limit_s: float | None,
        needs_result: bool,
        context_of: Callable[[Work], str],
        over_budget: Callable[[str], str] | None = None,
    ) -> None:
        """`context_of` returns what the command should know about itself and the others beside it."""
        if _PLACEHOLDER.search(command[0]):
            raise Invalid(
                f"{short_repr(command[0])} would let a task choose the program",
                hint="name the program and pass it the task: sh -c '…' sh {task_id}",
            )
        self._command = command
        self._grace_s = grace_s
        self._limited_s = limited_s
        self._timeout_s = timeout_s
        self._silence_limit_s = silence_limit_s
        self._needs_result = needs_result
        self._context_of = context_of
        self._over_budget = over_budget
        self._screen = screen
        self._environ = environ
        self.child: Child | None = None

    def __call__(self, work: Work) -> dict[str, Any]:
        """Run the command for a task; return its result, or raise why there is none."""
        with tempfile.TemporaryDirectory(prefix="coord-task-") as folder:
            names = ("task.json", "result.json", "progress", "context.md")
            files = Files(*(Path(folder, name) for name in names))
            files.context.write_text(self._context_of(work), encoding="utf-8")
            files.task.write_bytes(msgspec.json.format(msgspec.json.encode(_described(work))) + b"\n")
            files.progress.touch()
            self._heard = clock()

            def pass_on(data: bytes) -> None:
                self._heard = clock()
                work.note_progress()
                self._screen.pass_on(data)

            out, errors = Tail(pass_on), Tail(pass_on)
            exit_code = self._run(work, files, out, errors)
            work.check()
            return self._meaning(exit_code, _read_result(files.result), out.text, errors.text)

    def _run(self, work: Work, files: Files, out: Tail, errors: Tail) -> int:
        values = _values(work, self._environ, files)
        command = [_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in self._command]
        variables = {f"COORD_{name.upper()}": values[name] for name in FILES}
        variables |= {
            PROGRESS_FILE: str(files.progress),
            "COORD_TASK_ID": work.task_id,
            "COORD_TASK_GENERATION": str(work.generation),
        }
        with Watchdog() as watchdog:
            others = children()
            try:
                outputs = (out.write, errors.write)
                child = Child(command, {**self._environ, **variables}, outputs, watchdog.group)
            finally:
                os.close(out.write)
                os.close(errors.write)
            self.child = child
            try:
                self._attend(child, work, files.progress)
            finally:
                self.child = None
                child.stop(0)
                end_orphans(others)
        return child.exit_code

    def _attend(self, child: Child, work: Work, progress: Path) -> None:
        """Wait until the command ends; stop it when its claim is lost or it exceeds a limit."""
        since, touched = time.monotonic(), 0
        while not child.ended.wait(LOOK_S):
            self._screen.draw(work, since)
            if touched != (touched := _touched_ns(progress)):
                work.note_progress()
            if work.over:
                child.stop(work.grace_s(self._grace_s))
            elif self._timeout_s is not None and time.monotonic() - since > self._timeout_s:
                child.stop(self._grace_s)
                raise WorkFailed(f"the command took longer than {arguments.span(self._timeout_s)}")
            elif self._silence_limit_s is not None and clock() - self._heard > self._silence_limit_s:
                child.stop(self._grace_s)
                raise WorkFailed(f"no output for {arguments.span(self._silence_limit_s)}")
            elif self._over_budget is not None and (spent := self._over_budget(work.task_id)):
                child.stop(self._grace_s)
                raise CannotBeDone(f"over budget: {spent}")  # a retry would spend even more

    def _meaning(
        self, exit_code: int, result: dict[str, Any] | None, out: str, errors: str
    ) -> dict[str, Any]:
        """Return the result, or raise the failure that exit code and result file report."""
        if result is not None and "rate_limited" in result:
            raise RateLimited(_seconds(result["rate_limited"]), errors or "rate limited")
        error_text = f"exit {exit_code}: {errors or out}".rstrip(": ")
        if exit_code == LIMITED:
            raise RateLimited(self._limited_s, error_text)
        if exit_code == HOPELESS:
            raise CannotBeDone(error_text)
        if exit_code:
            raise WorkFailed(error_text)
        if result is None and self._needs_result:
            raise WorkFailed(f"exit 0, but no result was written: {errors or out}".rstrip(": "))
        return {"output": out} if result is None else result


def _touched_ns(path: Path) -> int:
    """Return when a file was touched last; 0 if the command has removed it."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _described(work: Work) -> dict[str, Any]:
    return {
        "task": fields_of(work.task),
        "claim": claim_fields(work.claim),
        "locks": fields_of(work.locks),
    }


def _values(work: Work, environ: Mapping[str, str], files: Files) -> dict[str, str]:
    return {
        "task_id": work.task_id,
        "generation": str(work.generation),
        "description": work.task.description,
        "type": work.task.type,
        "track": work.task.track,
        "project": environ["COORD_PROJECT"],
        "session_id": environ["COORD_SESSION_ID"],
        "task_file": str(files.task),
        "result_file": str(files.result),
        "context_file": str(files.context),
        "context": files.context.read_text(encoding="utf-8"),
    }


def _read_result(path: Path) -> dict[str, Any] | None:
    """Return the content of the result file, which may be anything."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WorkFailed(f"the result file cannot be read: {error.strerror}") from error
    with open(file, "rb") as source:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise WorkFailed("the result file is not a regular file")
        data = source.read(RESULT_BYTES_MAX + 1)
    if not data.strip():
        return None
    if len(data) > RESULT_BYTES_MAX:
        raise WorkFailed(f"the result file has more than {RESULT_BYTES_MAX} bytes")
    with suppress(Invalid, UnicodeDecodeError):
        result = arguments.document(data.decode())
        if isinstance(result, dict):
            return result
    raise WorkFailed("the result file is not a JSON object")


def _seconds(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    raise GiveBack(f"rate limited, but {short_repr(value)} is not a number of seconds")
