"""Messages as the log tells of them: each reaches its recipient once, comes back, or still waits."""

import json
from collections import Counter
from typing import Any

from coord.stores.contract import Commit, Record
from tests.linearizability.ledger import require

SentMessage = tuple[str, str]
"""A message and its recipient."""


class MessageOracle:
    """Every message that was ever sent."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.waits: set[SentMessage] = set()
        self._past: set[SentMessage] = set()

    def add(self, commit: Commit) -> None:
        """Read one commit."""
        for data in commit.events:
            event = json.loads(data)
            match event["event"]:
                case "message.sent":
                    sent = {(event["id"], to) for to in event["to"]}
                    known = sent & (self.waits | self._past)
                    require(not known, "two messages with one name:", known)
                    self.waits |= sent
                case "message.delivered" | "message.undelivered" as what:
                    self._end((event["id"], event["session"]), what)
                case "session.ended" if event.get("successor"):
                    self._move(event["session"], event["successor"])

    def _end(self, message: SentMessage, what: str) -> None:
        self.counts[what] += 1
        require(message in self.waits, "not waiting, and yet", what, message, message in self._past)
        self.waits.remove(message)
        self._past.add(message)

    def _move(self, old: str, new: str) -> None:
        moving = {message for message in self.waits if message[1] == old}
        self.waits = (self.waits - moving) | {(name, new) for name, _ in moving}

    def check(self, records: list[Record]) -> None:
        """Whatever waits stands in an inbox, or in a broadcast that its recipient has not collected."""
        there: set[SentMessage] = set()
        seen: dict[str, int] = {}
        broadcasts: list[tuple[int, dict[str, Any]]] = []
        pending: Counter[str] = Counter()
        recorded: dict[str, int] = {}
        emergencies: Counter[str] = Counter()
        stopping: dict[str, int] = {}
        for record in records:
            kind, _, rest = record.key.partition("/")
            value = json.loads(record.value or b"{}")
            if kind == "inbox":
                message = (value["id"], value["to_session_id"])
                require(message not in there, "twice in an inbox:", message)
                there.add(message)
                pending[value["to_session_id"]] += 1
                emergencies[value["to_session_id"]] += value["kind"] == "emergency"
            elif kind == "mailbox":
                seen[rest], recorded[rest] = value.get("broadcasts_seen", 0), value.get("pending", 0)
            elif kind == "session" and not value.get("ended_ms"):
                stopping[rest] = value.get("emergencies", 0)
            elif kind == "broadcast":
                broadcasts.append((int(rest), value))
        for number, value in broadcasts:
            there |= {(value["id"], to) for to in value.get("recipients", ()) if seen.get(to, 0) < number}
        require(self.waits <= there, "vanished:", sorted(self.waits - there))
        require(
            there <= self.waits, "waits although it was delivered or returned:", sorted(there - self.waits)
        )
        for session, count in stopping.items():
            require(
                count == emergencies[session], "another number of emergencies than in the inbox of", session
            )
        for session, count in recorded.items():
            require(count == pending[session], "another number of messages than in the inbox of", session)
