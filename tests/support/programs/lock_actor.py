"""A session that takes, renews, checks and gives back locks at random, and writes down what it is told."""

import json
import os
import random
import sys
import time
from typing import Any

from coord.core.errors import Busy, NotFound, Refused, Unavailable
from coord.sdk.client.client import Client
from tests.linearizability.lock_model import PARTS
from tests.support.programs.client import await_start, connect_as, report

KINDS, WEIGHTS = ("acquire", "unlock", "renew", "check"), (8, 5, 3, 3)


class Actor:
    def __init__(self, client: Client, session: str, seed: int, history: str) -> None:
        self._client = client
        self._session = session
        self._chance = random.Random(f"{seed}/{session}")
        self._history = os.open(history, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._fences = [0]
        self._held = list(PARTS)
        """What it was granted of late: more often than not it goes on with that."""

    def act(self) -> None:
        """Carry out one operation; a kill in the middle leaves one without an answer."""
        chance = self._chance
        kind, resource = chance.choices(KINDS, WEIGHTS)[0], chance.choice(list(PARTS))
        if kind != "acquire" and chance.random() < 0.8:
            resource = self._held[-1]
        mode = "read" if chance.random() < 0.4 else "write"
        fence = 0 if kind == "acquire" or chance.random() < 0.5 else chance.choice(self._fences[-3:])
        asked = {"session": self._session, "kind": kind, "resource": resource, "mode": mode, "fence": fence}
        self._write({"op": {**asked, "begin": time.monotonic_ns()}})
        try:
            answer = self._answer(kind, resource, mode, fence or None)
        except (Busy, Unavailable):
            self._write({"nothing": True})
        else:
            self._write({"answer": answer, "end": time.monotonic_ns()})

    def _answer(self, kind: str, resource: str, mode: str, fence: int | None) -> list[Any]:
        client = self._client
        try:
            if kind == "acquire":
                reply = client.acquire(resource, mode=mode, ttl_s=3_600)
                if not reply.ok:
                    return ["held", reply.holder.owner if reply.holder else ""]
                fences = {lock.resource.removeprefix("file:"): lock.fence for lock in reply.locks}
                self._fences += fences.values()
                self._held.append(resource)
                return ["granted", fences]
            if kind == "check":
                checked = client.check(resource, mode=mode, fence=fence)
                holders = [[lock.resource.removeprefix("file:"), lock.owner] for lock in checked.holders]
                return [checked.free, sorted(holders)]
            (client.unlock if kind == "unlock" else client.renew)(resource, fence=fence)
        except (Refused, NotFound) as error:
            return [type(error).__name__]
        return ["done"]

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._history, json.dumps(line).encode() + b"\n")


def main(options: dict[str, Any]) -> None:
    with connect_as(options) as client:
        actor = Actor(client, options["session"], options["seed"], options["history"])
        await_start()
        for number in range(options["rounds"]):
            if number == options["rounds"] * 3 // 4:
                report("nearly")
            actor.act()
    report("end")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
