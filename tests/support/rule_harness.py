"""Run the rules of the core without engine and store: records in a dict, commands with short names.

Nothing is opened and no time passes.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from coord.core.commands import Command
from coord.core.dispatch import dispatch
from coord.core.identity import NO_EVIDENCE, Evidence, Process
from coord.core.limits import SetLimits
from coord.core.ranges import Range
from coord.core.records import Stored, decode, encode
from coord.core.sweep import SWEEP_MAX, Sweep
from coord.core.tasks.commands import (
    ClaimTask,
    GetClaimHistory,
    GetSessionClaims,
    GetTaskState,
    ListExpiredClaims,
    ReleaseClaim,
    RenewLease,
    ResetTask,
    SubmitResult,
)
from coord.core.tasks.types import ReleaseReason
from coord.core.transaction import Found, Transaction, Written

AnyStored = TypeVar("AnyStored", bound=Stored)

T0 = 1_700_000_000_000
LEASE = 60_000
"""The lease of a claim that gives none."""


class Kept(NamedTuple):
    """A record as a store would keep it."""

    data: bytes
    index_key: str


class Outcome(NamedTuple):
    """What one command did: its reply, what it wrote (None: deleted), and its events."""

    reply: Any
    writes: dict[str, Stored | None]
    index_keys: dict[str, str]
    events: list[dict[str, Any]]

    @property
    def event_tags(self) -> list[str]:
        return [event["event"] for event in self.events]


class RuleHarness:
    """The smallest source of a transaction: it encodes what a rule writes and decodes what a rule reads."""

    def __init__(self, tenant: str = "local") -> None:
        self.tenant = tenant
        self.records: dict[str, Kept] = {}
        self.known: dict[str, Written] = {}

    batch_size = 1

    def get(self, key: str, kind: type[AnyStored]) -> AnyStored | None:
        kept = self.records.get(key)
        return None if kept is None else decode(kept.data, kind, key)

    def prefetch(self, keys: Sequence[str], ranges: Sequence[Range] = ()) -> None:
        """Everything is at hand."""

    def not_loaded(self, keys: Iterable[str]) -> bool:
        return False

    def version(self, key: str) -> int:
        assert key in self.records, f"{key} is absent"
        return 1

    def evidence(self, processes: Sequence[Process]) -> list[Evidence]:
        return [NO_EVIDENCE for _ in processes]

    def scan(self, range_: Range, own: dict[str, Written]) -> list[Found]:
        index_keys = {key: kept.index_key for key, kept in self.records.items()}
        index_keys.update({key: item.index_key for key, item in own.items() if item.value is not None})
        gone = {key for key, item in own.items() if item.value is None}
        by_index_key = range_.by == "index_key"
        places = sorted(
            (index_key if by_index_key else "", key)
            for key, index_key in index_keys.items()
            if key not in gone
        )
        after = range_.after if by_index_key else ("", range_.after[1])
        inside = [
            Found(key, index_keys[key])
            for index_key, key in places
            if (index_key if by_index_key else key).startswith(range_.prefix) and (index_key, key) > after
        ]
        return inside[: range_.limit]

    def run(self, command: Command, now: int = T0) -> Outcome:
        """Decide a command and keep what it writes."""
        tx = Transaction(self)
        reply = dispatch(tx, command, now)
        for key, item in tx.writes.items():
            if item.value is None:
                self.records.pop(key, None)
            else:
                self.records[key] = Kept(encode(item.value), item.index_key)
        return Outcome(
            reply,
            {key: item.value for key, item in tx.writes.items()},
            {key: item.index_key for key, item in tx.writes.items()},
            [msgspec.json.decode(event) for event in tx.events],
        )

    def read(self, key: str, kind: type[AnyStored]) -> AnyStored:
        """Return a record that must be there."""
        found = self.get(key, kind)
        assert found is not None, f"{key} is absent"
        return found

    def keys(self, prefix: str = "") -> list[str]:
        return sorted(key for key in self.records if key.startswith(prefix))

    # Commands by short names; by default the task is t and the session is s.

    def claim(self, session: str = "s", task: str = "t", *, lease_ms: int = LEASE, now: int = T0) -> Outcome:
        command = ClaimTask(self.tenant, "p", task, f"agent-{session}", session, lease_ms)
        return self.run(command, now)

    def force(self, session: str, task: str = "t", *, lease_ms: int = LEASE, now: int = T0) -> Outcome:
        agent = f"agent-{session}"
        command = ClaimTask(self.tenant, "p", task, agent, session, lease_ms, force=True, reason="needed")
        return self.run(command, now)

    def renew(self, session: str = "s", generation: int = 1, task: str = "t", *, now: int = T0) -> Outcome:
        return self.run(RenewLease(self.tenant, "p", task, session, generation), now)

    def release(
        self,
        session: str = "s",
        generation: int = 1,
        task: str = "t",
        *,
        reason: ReleaseReason = ReleaseReason.VOLUNTARY,
        now: int = T0,
    ) -> Outcome:
        return self.run(ReleaseClaim(self.tenant, "p", task, session, generation, reason), now)

    def submit(
        self,
        session: str = "s",
        generation: int = 1,
        task: str = "t",
        *,
        result: bytes = b'{"n":1}',
        now: int = T0,
    ) -> Outcome:
        product = f"wp-{task}-gen{generation}-abcdef"
        command = SubmitResult(self.tenant, "p", task, session, generation, result, product)
        return self.run(command, now)

    def reset(self, task: str = "t", *, now: int = T0) -> Outcome:
        return self.run(ResetTask(self.tenant, "p", task, "once more"), now)

    def sweep(self, *, now: int, most: int = SWEEP_MAX) -> Outcome:
        return self.run(Sweep(self.tenant, most), now)

    def set_limits(self, **limits: int) -> Outcome:
        return self.run(SetLimits("", limits))

    def state(self, task: str = "t", *, now: int = T0) -> Any:
        return self.run(GetTaskState(self.tenant, "p", task), now).reply

    def history(self, task: str = "t", *, now: int = T0) -> Any:
        return self.run(GetClaimHistory(self.tenant, "p", task), now).reply

    def claims_of(self, session: str = "s", *, now: int = T0) -> Any:
        return self.run(GetSessionClaims(self.tenant, session), now).reply

    def expired(self, *, now: int, before: int | None = None) -> Any:
        return self.run(ListExpiredClaims(self.tenant, before), now).reply
