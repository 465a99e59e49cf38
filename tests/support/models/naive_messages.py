"""Messages as a child would keep them: one list of letters for each session, read in order."""

from typing import NamedTuple

MINUTE_MS = 60_000


class Letter(NamedTuple):
    """A message in one inbox."""

    id: str
    kind: str
    subject: str
    priority: int
    sent_ms: int
    number: int


class NaiveMessages:
    """Inboxes, names, roles and groups; nothing is ever lost."""

    def __init__(self) -> None:
        self.agents: dict[str, str] = {}
        self.roles: dict[str, str] = {}
        self.groups: dict[str, list[str]] = {}
        self.inboxes: dict[str, list[Letter]] = {}
        self.offered: dict[tuple[str, str], int] = {}
        self._number = 0

    def enter(self, session: str, agent: str, role: str) -> None:
        self.agents[session], self.roles[session] = agent, role
        self.inboxes.setdefault(session, [])

    def leave(self, session: str) -> None:
        for table in (self.agents, self.roles, self.inboxes):
            del table[session]
        for name in list(self.groups):
            self.groups[name] = [member for member in self.groups[name] if member != session]

    def mean(self, to: str, sender: str) -> list[str]:
        """The sessions that an address means."""
        kind, _, name = to.partition(":")
        if not to:
            found = list(self.agents)
        elif kind == "role":
            found = [session for session, role in self.roles.items() if role == name]
        elif kind == "group":
            found = self.groups.get(name, [])
        elif to in self.agents:
            return [to]
        else:
            found = [session for session, agent in self.agents.items() if agent == to]
        return sorted(session for session in found if session != sender)

    def send(self, name: str, kind: str, subject: str, priority: int, to: list[str], now: int) -> None:
        self._number += 1
        for session in to:
            self.inboxes[session].append(Letter(name, kind, subject, priority, now, self._number))

    def waiting(self, session: str) -> list[Letter]:
        """What waits for a session: emergencies first, then by priority and age."""
        return sorted(
            self.inboxes[session],
            key=lambda letter: (
                letter.kind != "emergency",
                letter.sent_ms - MINUTE_MS * letter.priority,
            ),
        )

    def offer(self, session: str, now: int) -> list[Letter]:
        """What is shown now: nothing twice within a minute."""
        due = [
            letter
            for letter in self.waiting(session)
            if now >= self.offered.get((session, letter.id), 0) + MINUTE_MS
        ]
        self.offered |= {(session, letter.id): now for letter in due}
        return due

    def ack(self, session: str, name: str) -> bool:
        """End a message; return whether it was there."""
        kept = [letter for letter in self.inboxes[session] if letter.id != name]
        known = len(kept) < len(self.inboxes[session])
        self.inboxes[session] = kept
        return known

    def stopped(self, session: str) -> bool:
        return any(letter.kind == "emergency" for letter in self.inboxes[session])
