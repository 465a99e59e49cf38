"""Sessions that take locks again and again, in line with each other, until all together have had enough.

Each is a process of its own, forked from this one before anything is opened: so thirty-two start quickly.
"""

import json
import math
import os
import random
import sys
import traceback
from pathlib import Path
from typing import Any

from coord.core.errors import Busy, NotFound, Refused, Unavailable, Unknown
from coord.sdk.client.client import Client
from tests.support.overlap_detector import OverlapDetector, append
from tests.support.process_group import PATIENCE_S
from tests.support.programs.client import await_start, connect_as, report


def contend(client: Client, options: dict[str, Any]) -> None:
    """`wanted` lists what to choose from: a resource, its mode, and the paths that it covers.

    Nobody goes before it had its turn. `far` says that the store may be away for a while: whoever cannot
    reach it asks again for the same, so that nobody holds one lock and waits for another.
    """
    chance = random.Random(options["session"])
    detector = OverlapDetector(Path(options["witness"]), options["session"])
    passing = (Busy, Unavailable, Unknown) if options.get("far") else (Busy,)
    mine = 0
    while detector.grants() < options["enough"] or not mine:
        resource, mode, paths = chance.choice(options["wanted"])
        fence = acquire(client, resource, mode, passing, options)
        detector.work(paths, mode, fence)
        if unlock(client, resource, fence, passing):
            append(Path(options["witness"]) / "unlocked", f"{fence} {options['session']}\n".encode())
        mine += 1


def acquire(
    client: Client, resource: str, mode: str, passing: tuple[type[Exception], ...], options: dict[str, Any]
) -> int:
    """Wait for a lock as long as it takes; return its fence."""
    while True:
        try:
            reply = client.acquire(resource, mode=mode, ttl_s=3_600, wait_s=PATIENCE_S)
        except passing:  # nothing happened, or the next answer tells
            continue
        if reply.ok:
            return reply.locks[0].fence
        assert options.get("far"), f"{options['session']} did not get {resource}: {reply}"


def unlock(client: Client, resource: str, fence: int, passing: tuple[type[Exception], ...]) -> bool:
    """Give a lock back; return whether this was acknowledged, and not only known from a second answer."""
    in_doubt = False
    while True:
        try:
            client.unlock(resource, fence=fence)
        except passing as error:
            in_doubt = in_doubt or isinstance(error, Unknown)
        except (Refused, NotFound):
            if not in_doubt:
                raise
            return False
        else:
            return True


def live(options: dict[str, Any], prepared: int, start: int) -> None:
    """The whole life of one session's process."""
    open_s = math.inf if options.get("far") else None  # whoever is cut off waits as long as it takes
    with connect_as({**options, "open_s": open_s}) as client:
        os.write(prepared, b".")
        os.read(start, 1)
        contend(client, options)


def fork_session(options: dict[str, Any], prepared: int, start: tuple[int, int]) -> int:
    """Begin the process of a session; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.close(start[1])
        live(options, prepared, start[0])
    except BaseException:  # noqa: BLE001 - whatever it is, the first process has to learn of it
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main(options: dict[str, Any]) -> None:
    prepared, start = os.pipe(), os.pipe()
    sessions = [
        {**options, "session": f"{options['session']}session-{number}"}
        for number in range(options["processes"])
    ]
    pids = [fork_session(each, prepared[1], start) for each in sessions]
    os.close(prepared[1])
    ready = 0
    while ready < len(pids):
        found = len(os.read(prepared[0], len(pids)))
        assert found, "all have ended before the start"
        ready += found
    await_start()
    os.close(start[1])  # all who read see the end of it, and go
    failed = [pid for pid in pids if os.waitpid(pid, 0)[1]]
    assert not failed, f"{len(failed)} of {len(pids)} failed"
    report("end")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
