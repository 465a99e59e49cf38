"""One agent of the last act: a process that runs commands for its session, as a coding agent runs its tools.

It reads one order per line on stdin, writes one answer per line to stdout, and ends with stdin. Each session
needs a separate process, because coord refuses commands of two sessions from one process.
"""

import subprocess
import sys

import msgspec

LONGEST_S = 30.0


class Order(msgspec.Struct):
    """A command, its folder, and its input."""

    command: list[str]
    folder: str
    given: str = ""


class Answer(msgspec.Struct):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def obey(order: Order) -> Answer:
    done = subprocess.run(
        order.command,
        cwd=order.folder,
        input=order.given,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        answer = obey(msgspec.json.decode(line, type=Order))
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()
