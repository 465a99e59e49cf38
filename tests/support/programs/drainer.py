"""Workers that take tasks and hand in results until nothing is left; some of them are killed in between.

Each is a process of its own, forked from this one before anything is opened; one that was killed is
followed by another under a new name, as a tool that crashed is started again.
"""

import contextlib
import json
import math
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from coord.core.errors import Busy, Unavailable, Unknown
from coord.core.plans.commands import Runnable
from coord.sdk.client.client import Client
from tests.support.process_group import PATIENCE_S
from tests.support.programs.client import await_start, connect_as, report

LINE_BYTES = 8
"""What a worker writes down for each result that was accepted: a task id and the end of the line."""


def die_if_told(options: dict[str, Any]) -> None:
    """Kill this process, if one with a task in hand is to die and no other was quicker."""
    with contextlib.suppress(FileNotFoundError):
        Path(options["doom"]).unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def drain(client: Client, book: int, options: dict[str, Any]) -> None:
    """Work until all is done; what was accepted is written down, what was refused is somebody else's.

    `far` says that the store may be away for a while: whoever cannot reach it tries again.
    """
    passing = (Busy, Unavailable, Unknown) if options.get("far") else (Busy,)
    while True:
        try:
            reply = client.next_task(lease_s=options["lease_s"], wait_s=PATIENCE_S)
            if reply.outcome is Runnable.DONE:
                return
            assert reply.task is not None, f"nothing moves any more: {reply}"
            assert reply.claim is not None, "a task comes with its claim"
            die_if_told(options)
            done = client.submit_task(reply.task.task_id, reply.claim.generation, {"by": os.getpid()})
        except passing:  # nothing happened, or the result is handed in by whoever takes the task next
            continue
        if done.accepted:
            os.write(book, f"{reply.task.task_id:<7}\n".encode())


def fork_worker(options: dict[str, Any], number: int) -> int:
    """Begin the process of a worker; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        book = os.open(options["book"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        name = f"{options['session']}worker-{number}"
        open_s = math.inf if options.get("far") else None  # whoever is cut off waits as long as it takes
        with connect_as({**options, "session": name, "open_s": open_s}) as client:
            drain(client, book, options)
    except BaseException:  # noqa: BLE001 - whatever it is, the first process has to learn of it
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def accepted(book: Path) -> int:
    """How many results were accepted so far."""
    return book.stat().st_size // LINE_BYTES if book.exists() else 0


def kill_some(options: dict[str, Any], pids: list[int]) -> None:
    """Kill a worker each time another share of the work is done, and let another take its place.

    Every other time it is whoever gets the next task; else one dies at whatever it does at that moment.
    """
    chance, book = random.Random(1), Path(options["book"])
    for number in range(options["kills"]):
        enough = options["tasks"] * (number + 1) // (options["kills"] + 2)
        deadline = time.monotonic() + PATIENCE_S * 10
        while accepted(book) < enough:
            assert time.monotonic() < deadline, f"only {accepted(book)} of {enough} results"
            time.sleep(0.005)  # noqa: TID251 - a file tells nobody that it grows
        if number % 2:
            Path(options["doom"]).touch()
        else:
            os.kill(chance.choice(pids), signal.SIGKILL)
        pid, status = os.wait()
        ended = os.waitstatus_to_exitcode(status)
        assert ended == -signal.SIGKILL, f"a worker ended with {ended} after {accepted(book)} results"
        pids[pids.index(pid)] = fork_worker(options, options["processes"] + number)


def main(options: dict[str, Any]) -> None:
    await_start()
    began = time.monotonic()
    pids = [fork_worker(options, number) for number in range(options["processes"])]
    kill_some(options, pids)
    failed = [pid for pid in pids if os.waitpid(pid, 0)[1]]
    assert not failed, f"{len(failed)} of {len(pids)} failed"
    report("end")
    report(time.monotonic() - began)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
