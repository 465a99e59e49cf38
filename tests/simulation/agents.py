"""Whoever takes part: a routine that yields what it wants (`Ask`, `Rest`) and is sent the reply or the error.

Everything is drawn from the world's chance, so that one seed is one run.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coord.core.commands import Command
from coord.core.errors import CoordError, Unknown

if TYPE_CHECKING:
    from tests.simulation.process import Process


@dataclass(frozen=True, slots=True)
class Ask:
    """Run a command; with an id, the same command may be asked again after a lost answer."""

    command: Command
    command_id: str = ""


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing for a while."""

    ms: int


Grant = tuple[str, int]
"""A task and the generation, or a resource and the fence, that somebody was granted."""

Routine = Generator[Ask | Rest, Any, Any]


@dataclass(slots=True)
class Memory:
    """What outlives an agent's crash: its session, what it was granted, and the command it never heard of."""

    session: str
    held: list[Grant] = field(default_factory=list)
    unheard: Ask | None = None
    unheard_since_us: int = 0


class Agent:
    """One of those who live in a process."""

    def __init__(self, world: Any, process: "Process", memory: Any) -> None:
        self.world = world
        self.process = process
        self.memory = memory
        self.wake_us = world.now_us + world.chance.randrange(0, 5_000_000)
        self.reply: Any = None
        self.waits = False
        self.routine = self._live()

    @property
    def session(self) -> str:
        return self.memory.session

    def _live(self) -> Routine:
        raise NotImplementedError

    # Asking.

    def _ask(self, command: Command) -> Routine:
        if command.reads_only or self.world.chance.random() < 0.7:
            return (yield Ask(command))
        return (yield from self._surely(Ask(command, self.world.draw_id())))

    def _surely(self, ask: Ask) -> Routine:
        self.memory.unheard, self.memory.unheard_since_us = ask, self.world.now_us
        return (yield from self._insist(ask))

    def _insist(self, ask: Ask) -> Routine:
        """Ask with an id until an answer is heard; now and then once more, which must change nothing."""
        reply = yield ask
        while isinstance(reply, Unknown) and not self._too_late():
            yield Rest(self.world.chance.randrange(0, 2_000))
            reply = yield ask
        if not isinstance(reply, CoordError) and self.world.chance.random() < 0.1:
            yield ask
        self.memory.unheard = None
        return reply

    def _too_late(self) -> bool:
        """Ids are remembered for an hour by the clock of whoever looks; clocks here differ by 20 minutes."""
        return self.world.now_us > self.memory.unheard_since_us + 15 * 60_000_000
