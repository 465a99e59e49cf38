"""A session that sends numbered messages, or drains an inbox until it is told that all were sent."""

import json
import sys
from pathlib import Path
from typing import Any

from coord.sdk.client.client import Client
from tests.support.programs.client import await_start, connect_as, report


def send(client: Client, to: str, count: int) -> None:
    """Send messages numbered from 0."""
    for number in range(count):
        client.send(to, "status", f"{number}")


def drain(client: Client, all_sent: Path) -> list[tuple[str, int]]:
    """Take out what comes, until nothing more can; return who sent it, and its number."""
    found: list[tuple[str, int]] = []
    while True:
        last = all_sent.exists()
        messages = client.recv(drain=True, wait_s=0.2).messages
        found += [(message.from_session_id, int(message.subject)) for message in messages]
        if last and not messages:
            return found


def main(options: dict[str, Any]) -> None:
    with connect_as(options) as client:
        await_start()
        if options["sends"]:
            send(client, options["to"], options["sends"])
        else:
            report(drain(client, Path(options["all_sent"])))
    report("end")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
