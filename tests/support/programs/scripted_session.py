"""A session that carries out the calls that a test sends.

Each line of its input is a call of the client, `[method, arguments, options]`; the answer is
`{"reply": …}` or `{"error": class, "message": …}`. `hold` and `leave` begin and end a block that holds
locks; `enqueue` begins to wait for a lock and never looks after the request; `stop_at_commit` delays the
next commit until the test sends a line.
"""

import json
import os
import sys
from typing import Any

import msgspec

from coord.core.errors import CoordError
from coord.core.locks.commands import AcquireLocks, LockReply
from coord.host.processes import describe
from coord.sdk.client.blocks import LockBlock
from coord.sdk.client.client import Client
from coord.stores.contract import Commit
from tests.support.programs.client import connect_as, report


class ScriptedSession:
    """One session and the block that it is in."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._held: LockBlock | None = None

    def hold(self, *resources: str, **options: Any) -> int:
        self._held = self._client.lock(*resources, **options)
        self._held.__enter__()
        return self._held.fence

    def enqueue(self, resource: str, wait_s: int) -> str:
        """Begin to wait and never look after the request, like a process that is killed right then."""
        client, process = self._client, describe(os.getpid())
        command = AcquireLocks(
            client.caller,
            client.location.repository_id,
            client.resolve(resource),
            wait_ms=wait_s * 1_000,
            wait_id="unattended",
            waiter=process,
            leased=process is None or not client.location.local,
        )
        reply: LockReply = client.call(command)
        return reply.outcome.value

    def stop_at_commit(self) -> None:
        """Report before the next commit, and commit after the next line of the test."""
        store = self._client.database.log(self._client.tenant)

        def commit(wanted: Commit) -> int:
            del store.commit
            report("committing")
            sys.stdin.readline()
            return store.commit(wanted)

        store.commit = commit

    def leave(self) -> None:
        assert self._held is not None
        self._held.__exit__(None, None, None)

    def run(self, method: str, arguments: list[Any], options: dict[str, Any]) -> dict[str, Any]:
        try:
            call = getattr(
                self if method in ("hold", "enqueue", "stop_at_commit", "leave") else self._client, method
            )
            return {"reply": msgspec.to_builtins(call(*arguments, **options))}
        except CoordError as error:
            return {"error": type(error).__name__, "message": str(error)}


def main(options: dict[str, Any]) -> None:
    with connect_as(options) as client:
        session = ScriptedSession(client)
        report("ready")
        for line in sys.stdin:
            report(session.run(*json.loads(line)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
