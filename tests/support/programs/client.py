"""How every process of these tests comes to its store, and the lines in which it talks to the test."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import coord
from coord.sdk.client.client import Client
from tests.linearizability.actor import StepClock
from tests.support.hub.fleet import use_hub


def connect_as(options: dict[str, Any]) -> Client:
    """Open the store in the name of a session, with nothing of the surroundings of the test run.

    `own_pid` says that the session lives in this process, so that its death can be proven; `clock` names a
    file that stands in for the store's clock; `open_s` is how long a server that is away is waited for; `hub`
    is the way into a hub (`KilledHub.way`).
    """
    hub = use_hub(options)
    return coord.connect(
        options["url"] or None,
        session=options["session"],
        pid=os.getpid() if options.get("own_pid") else None,
        cwd=options["cwd"],
        environ={"USER": "tester", "HOME": options["cwd"], **hub},
        clock=StepClock(Path(options["clock"])).read if options.get("clock") else None,
        timeout=options.get("open_s"),
    )


def report(value: Any) -> None:
    """Send one value to the test."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def await_start() -> None:
    """Report that everything is prepared, and wait for the common start."""
    report("ready")
    sys.stdin.readline()
