"""The state of a run: workers from their reports, tasks from the log, and counters."""

from dataclasses import dataclass, field

from demo.log import Event

LOST = ("task.expired", "task.released")
"""The events that end a claim without a result."""


@dataclass
class Part:
    """One agent of the cast, with its current session."""

    name: str
    kind: str = ""
    session: str = ""
    doing: str = "starting"
    task: str = ""
    generation: int = 0


@dataclass
class Piece:
    """One task, as the log records it."""

    task: str
    depends_on: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    state: str = "free"
    generation: int = 0
    holder: str = ""


@dataclass
class Stage:
    """Everything that a screen shows."""

    parts: dict[str, Part]
    pieces: dict[str, Piece]
    claims: int = 0
    renewals: int = 0
    kills: int = 0
    freezes: int = 0
    refused: int = 0
    waits: int = 0
    deadlocks: int = 0
    seconds: float = 0.0
    news: list[str] = field(default_factory=list)
    """The lines that no screen has taken yet."""

    @property
    def done(self) -> int:
        return sum(piece.state == "done" for piece in self.pieces.values())

    def tell(self, line: str) -> None:
        self.news.append(f"{self.seconds:6.2f} s  {line}")

    def take_news(self) -> list[str]:
        news, self.news = self.news, []
        return news

    def follow(self, event: Event) -> None:
        """Update the tasks with an event of the log."""
        piece = self.pieces.get(event.fields.get("task", ""))
        if piece is None:
            return
        if event.name == "task.claimed":
            self.claims += 1
            piece.state, piece.generation = "held", event.fields["generation"]
            piece.holder = event.fields["session"]
        elif event.name == "task.renewed":
            self.renewals += 1
        elif event.name in LOST and event.fields["generation"] == piece.generation:
            piece.state = "lost"
        elif event.name == "task.completed":
            piece.state, piece.holder = "done", event.fields["session"]
            if self.done % 5 == 0:
                self.tell(f"{self.done} of {len(self.pieces)} tasks are done")
