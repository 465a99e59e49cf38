"""What questions do, without records: a list of them, looked at from the beginning for every answer."""

from dataclasses import dataclass, field


@dataclass
class NaiveQuestion:
    """A question and how it ended."""

    name: str
    session: str
    kind: str
    text: str
    call: str
    expires: int
    heard: int
    state: str = "open"


@dataclass
class NaiveQuestions:
    """All questions ever asked; `living` are the sessions that have not ended."""

    asked: list[NaiveQuestion] = field(default_factory=list)
    living: set[str] = field(default_factory=set)

    def pass_to(self, now: int) -> None:
        """Withdraw what has expired by now."""
        for each in self.asked:
            if each.state == "open" and now >= each.expires:
                each.state = "withdrawn"

    def open(self, session: str = "") -> list[NaiveQuestion]:
        """Return the open questions, of a session or of all, oldest first."""
        return [each for each in self.asked if each.state == "open" and session in ("", each.session)]

    def ask(self, session: str, kind: str, text: str, call: str, expires: int, heard: int) -> str:
        """Return the name of a question, new or the same as an open one."""
        for each in self.open(session):
            if (each.kind, each.text, each.call) == (kind, text, call):
                each.heard = max(each.heard, heard)
                return each.name
        self.asked.append(NaiveQuestion(f"q{len(self.asked) + 1}", session, kind, text, call, expires, heard))
        return self.asked[-1].name

    def answer(self, name: str, now: int) -> bool:
        """Answer a question if it takes one."""
        found = next((each for each in self.open() if each.name == name), None)
        if found is None or (found.kind == "permission" and now >= found.heard):
            return False
        found.state = "answered"
        return True

    def end(self, session: str) -> None:
        """End a session with all that it asked."""
        self.living.discard(session)
        for each in self.open(session):
            each.state = "withdrawn"

    def go_on(self, session: str, call: str, *, ended: bool) -> None:
        """A tool begins a call, or ends one (or all, without a name)."""
        for each in self.open(session):
            over = ended and call in ("", each.call)
            if each.kind == "attention" or (each.kind == "permission" and over):
                each.state = "withdrawn"
