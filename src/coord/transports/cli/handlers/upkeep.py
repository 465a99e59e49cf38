"""Commands that keep the books."""

import threading
from types import SimpleNamespace

from coord.sdk.client.client import Client
from coord.transports.cli import output
from coord.transports.cli.output import Answer


def sweep(client: Client, given: SimpleNamespace) -> Answer:
    """Pass what is due, once or again and again."""
    if given.every is None:
        return _swept(client)
    from coord.sdk.scheduler import Scheduler

    def once() -> None:
        output.show(_swept(client), as_json=True)

    def complain(_name: str, error: Exception) -> None:
        output.say(f"coord: {error}")

    with Scheduler(on_error=complain) as scheduler:
        scheduler.register("sweep", given.every, once, at_once=True)
        threading.Event().wait()  # a signal ends it
    raise AssertionError("nothing ends the wait but a signal")


def _swept(client: Client) -> Answer:
    reply = client.sweep()
    things = "thing" if reply.passed == 1 else "things"
    line = f"{reply.passed} {things} ran out" if reply.passed else "nothing ran out"
    return Answer(output.fields_of(reply), line)
