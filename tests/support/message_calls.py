"""Send and receive messages through a lock harness."""

from typing import Any

from coord.core.messages.commands import ReceiveMessages, SendMessage
from tests.support.lock_harness import LockHarness

LONG = "x" * 8_000
HEAVY = {"data": "x" * 30_000}


def send(harness: LockHarness, by: str, to: str, subject: str, **more: Any) -> Any:
    return harness.engine.call(
        SendMessage(caller=harness.who(by), to=to, kind="status", subject=subject, **more)
    )


def receive(harness: LockHarness, name: str, *, drain: bool = False) -> Any:
    return harness.engine.call(ReceiveMessages(harness.who(name), drain))


def subjects(received: Any) -> list[str]:
    return [message.subject for message in received.messages]


def everything(harness: LockHarness, name: str) -> list[str]:
    """All that a session reads if it reads until nothing is left."""
    found: list[str] = []
    while (received := receive(harness, name, drain=True)).messages or received.more:
        found += subjects(received)
    return found
