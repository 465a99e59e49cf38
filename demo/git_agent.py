"""One agent of the last act: a process that runs what it is told, as a coding agent runs its tools.

Orders come line by line on stdin, and each is answered by a line on stdout. It ends when nobody gives orders
any more. coord knows a session by its process: commands of two sessions out of one would be refused.
"""

import subprocess
import sys

import msgspec

LONGEST_S = 30.0


class Order(msgspec.Struct):
    """A command, where it runs, and what it reads."""

    command: list[str]
    folder: str
    given: str = ""


class Answer(msgspec.Struct):
    """How a command ended, and what it said."""

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
