"""What a follower is: a reducer of events with a name and a version, and perhaps effects.

The state depends on the events alone: `apply` sees no clock, no file and no other process. So whoever runs
the follower gets the same bytes, and the record of a follower can be removed and computed again.

Effects come afterwards, in `act`: at least once, because a process can be killed between an effect and the
note that it happened. Each effect of an event has the event's offset and number, so its receiver recognises a
repetition.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from coord.engine.engine import Engine
from coord.host.store_location import StoreLocation
from coord.sdk.log_reader import LoggedEvent
from coord.stores.contract import Store


class LogSource(NamedTuple):
    """The log that a follower follows, and the engine and folder of its store."""

    engine: Engine
    log: Store
    location: StoreLocation
    environ: Mapping[str, str]
    clock: Callable[[], int] | None = None
    """Given by tests."""

    def now(self) -> int:
        """Return the time of the store in milliseconds."""
        return self.log.now() if self.clock is None else self.clock()

    @property
    def tenant(self) -> str:
        """The tenant of the log."""
        return self.engine.tenant


class Follower(ABC):
    """Follows one log. A new object has read nothing."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    """Raised when the state is computed or written differently: it is then computed again."""
    about: ClassVar[str]
    """What it keeps up to date, for `coord follow list`."""
    has_effects: ClassVar[bool] = False
    """Whether `act` does something that must not happen in several processes at once."""
    is_local: ClassVar[bool] = False
    """Whether its state belongs to this machine: `act` keeps it, with the offset, outside of the store."""
    starts_at_present: ClassVar[bool] = False
    """Whether a follower without a state begins at the end of the log, and not at its first entry."""

    def __init__(self, source: LogSource) -> None:
        self.source = source
        self.offset = 0
        """The newest entry that it has read; whoever runs it sets this."""

    @classmethod
    def wanted(cls, source: LogSource) -> bool:
        """Whether a hub runs it for this store; asked often, so it has to be cheap."""
        del source
        return True

    @classmethod
    def problems(cls, source: LogSource) -> list[str]:
        """Return what is wrong with its configuration, for `coord follow list` and `coord doctor`."""
        del source
        return []

    def refresh(self, offset: int, now: int) -> None:  # noqa: B027 - few followers depend on more than the log
        """Look at what changed besides the log, before the entries after `offset` are read."""

    @abstractmethod
    def apply(self, logged: LoggedEvent) -> None:
        """Take an event into the state; events of one entry come in their order."""

    def apply_entry(self, events: list[LoggedEvent]) -> None:
        """Take the events of one entry into the state."""
        for logged in events:
            self.apply(logged)

    @abstractmethod
    def dump(self) -> bytes:
        """Return the state; equal states give equal bytes."""

    @abstractmethod
    def load(self, data: bytes) -> None:
        """Take over a state that `dump` returned."""

    def resume(self) -> int:
        """Load the state that a local follower has kept, and return its offset."""
        return 0

    def act(self, now: int) -> int:
        """Perform what is due, and return when something is due again (0: with the next event).

        `now` and the result are milliseconds of the store's clock. The state is saved after this.
        """
        del now
        return 0

    @property
    def acted(self) -> bool:
        """Whether the state changed without an event since it was last dumped, so that it has to be saved."""
        return False

    @property
    def busy(self) -> bool:
        """Whether `act` has begun something that has not ended, so that this process stays its runner."""
        return False

    def offset_to_save(self, offset: int) -> int:
        """Return the offset to save if it has read up to `offset`; later entries are read again."""
        return offset

    def close(self) -> None:  # noqa: B027 - few followers have begun anything
        """End what `act` has begun: threads, processes, connections."""


class LocalFollower(Follower):
    """A follower whose state belongs to this machine: it reads no events, and `act` keeps what it does."""

    is_local = True

    def apply(self, logged: LoggedEvent) -> None:
        del logged

    def dump(self) -> bytes:
        return b""

    def load(self, data: bytes) -> None:
        del data
