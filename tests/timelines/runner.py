"""Runs timelines written as text: commands, `----`, and what they print. Times are relative: `at T=15s`.

A timeline begins with comments that say what it proves, and perhaps with `needs durable`. Then come blocks:
comments, commands one per line, a line of dashes, the output; an empty line ends the block.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from coord import ClaimKey, ClaimTemplate, CoordError, TaskCoordinator
from coord.core.tasks.types import ClaimHistory, ClaimResult, TaskResult

EPOCH_MS = 1_767_506_400_000
DASHES = "----"
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?")
_HASH = re.compile(r"(wp-\S+-gen\d+-)[0-9a-f]{6}")


class Block(NamedTuple):
    """A few commands and what they print together."""

    comments: list[str]
    commands: list[str]
    expected: list[str]

    def text(self, printed: list[str]) -> str:
        return "\n".join([*self.comments, *self.commands, DASHES, *printed, ""])


class Timeline(NamedTuple):
    """A script: its heading, what it needs of a store, its blocks."""

    heading: list[str]
    needs_durable: bool
    blocks: list[Block]

    def text(self, printed: list[list[str]]) -> str:
        heading = [*self.heading, *(["needs durable"] if self.needs_durable else []), ""]
        return "\n".join([*heading, *map(Block.text, self.blocks, printed)])


def read_timeline(path: Path) -> Timeline:
    """Return the script in a file."""
    heading, *rest = path.read_text(encoding="utf-8").strip().split("\n\n")
    lines = heading.splitlines()
    blocks = []
    for part in rest:
        block = part.splitlines()
        comments = [line for line in block if line.startswith("#")]
        bare = block[len(comments) :]
        dashes = bare.index(DASHES)
        blocks.append(Block(comments, bare[:dashes], bare[dashes + 1 :]))
    return Timeline([line for line in lines if line.startswith("#")], "needs durable" in lines, blocks)


def duration_ms(text: str) -> int:
    """Return a duration like 1m30s in milliseconds; a bare number counts seconds."""
    found = _DURATION.fullmatch(f"{text}s" if text.isdigit() else text)
    assert found, f"{text!r} is not a duration"
    hours, minutes, seconds, millis = (int(part or 0) for part in found.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + millis


def moment(ms: int) -> str:
    """Return a moment as the script writes it."""
    seconds, millis = divmod(ms - EPOCH_MS, 1000)
    minutes, seconds = divmod(seconds, 60)
    shown = (f"{minutes}m" if minutes else "") + (f"{seconds}s" if seconds or not minutes else "")
    return f"T={shown}{f'{millis}ms' if millis else ''}"


Clock = Callable[[], int]
Opener = Callable[[str, Clock], TaskCoordinator]


class Runner:
    """Carries out the commands of one timeline on one store."""

    def __init__(self, url: str, open_coordinator: Opener | None = None) -> None:
        """`open_coordinator` takes the url and a clock; without it the store is opened here."""
        self._url = url
        self._open_coordinator = open_coordinator or (
            lambda url, clock: TaskCoordinator.open(url, clock=clock)
        )
        self._now = EPOCH_MS
        self._where = {"tenant": "local", "project": "demo"}
        self._opened: list[TaskCoordinator] = []
        self._open()

    @property
    def coordinator(self) -> TaskCoordinator:
        return self._opened[-1]

    @property
    def durable(self) -> bool:
        return bool(self.coordinator.database.log("local").limits.durable)

    def _open(self) -> None:
        self._opened.append(self._open_coordinator(self._url, lambda: self._now))

    def close(self) -> None:
        for coordinator in self._opened:
            coordinator.close()

    def run(self, line: str) -> list[str]:
        """Carry out one command; return what it prints."""
        name, *words = shlex.split(line)
        options = dict(word.split("=", 1) for word in words if re.match(r"[a-z_]+=", word))
        plain = [word for word in words if not re.match(r"[a-z_]+=", word)]
        action: Callable[..., list[str]] = getattr(self, "do_" + name.replace("-", "_"))
        try:
            return [_HASH.sub(r"\1******", text) for text in action(*plain, **options)]
        except CoordError as error:
            return [f"error {error.code}: {error}"]

    def _names(self, task: str, options: dict[str, str]) -> tuple[str, str, str]:
        return (
            options.pop("tenant", self._where["tenant"]),
            options.pop("project", self._where["project"]),
            task,
        )

    # The clock and the store.

    def do_at(self, time: str) -> list[str]:
        self._now = EPOCH_MS + duration_ms(time.removeprefix("T="))
        return []

    def do_use(self, **where: str) -> list[str]:
        self._where.update(where)
        return []

    def do_reopen(self) -> list[str]:
        """Close the store and open it again."""
        self.coordinator.close()
        self._open()
        return []

    def do_kill(self) -> list[str]:
        """Leave the coordinator as it stands, with nothing closed or told, and go on with another."""
        self._open()
        return []

    def do_each(self, span: str, name: str, *words: str, **options: str) -> list[str]:
        """Carry a command out for each number of a span, in place of *; equal lines are counted."""
        first, last = span.split("..")
        numbers = [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
        command = " ".join([name, *words, *(f"{option}={value}" for option, value in options.items())])
        printed = Counter(
            line.replace(number, "*") for number in numbers for line in self.run(command.replace("*", number))
        )
        return [f"{count} × {line}" for line, count in printed.items()]

    # Commands.

    def do_claim(self, task: str, agent: str, session: str, lease: str = "300s", **where: str) -> list[str]:
        names = self._names(task, where)
        return [_claimed(self.coordinator.claim_task(*names, agent, session, duration_ms(lease) / 1000))]

    def do_force(self, task: str, agent: str, session: str, reason: str, **where: str) -> list[str]:
        names = self._names(task, where)
        return [_claimed(self.coordinator.force_claim(*names, agent, session, reason=reason))]

    def do_batch_claim(self, *tasks: str, agent: str, session: str, lease: str = "300s") -> list[str]:
        keys = [ClaimKey(*self._names(task, {})) for task in tasks]
        template = ClaimTemplate(agent, session, duration_ms(lease) / 1000)
        replies = self.coordinator.batch_claim(keys, template)
        return [f"{key.task_id}: {_claimed(reply)}" for key, reply in replies.items()]

    def do_renew(self, task: str, session: str, generation: str, **where: str) -> list[str]:
        reply = self.coordinator.renew_lease(*self._names(task, where), session, int(generation))
        until = f" until {moment(reply.new_expiry_ms)}" if reply.new_expiry_ms is not None else ""
        return [f"{reply.reason}{until}"]

    def do_release(
        self, task: str, session: str, generation: str, reason: str = "VOLUNTARY", **where: str
    ) -> list[str]:
        names = self._names(task, where)
        return [self.coordinator.release_claim(*names, session, int(generation), reason).reason]

    def do_submit(
        self, task: str, session: str, generation: str, result: str = "{}", **where: str
    ) -> list[str]:
        names = self._names(task, where)
        reply = self.coordinator.submit_result(*names, session, int(generation), json.loads(result))
        if reply.accepted:
            return [f"{reply.reason} as {reply.work_product_ref}"]
        lost = ", work lost" if reply.work_lost else ""
        return [f"{reply.reason}, current generation {reply.current_generation}{lost}"]

    def do_reset(self, task: str, reason: str = "", **where: str) -> list[str]:
        reply = self.coordinator.reset_task(*self._names(task, where), reason)
        return [f"{reply.reason}, generation {reply.generation}"]

    def do_limits(self, tenant: str, **limits: str) -> list[str]:
        wanted: dict[str, Any] = {name: int(value) for name, value in limits.items()}
        now = self.coordinator.set_limits(tenant, **wanted)
        return [f"{name} {now[name]}" for name in limits]

    # Questions.

    def do_state(self, *tasks: str, **where: str) -> list[str]:
        keys = [ClaimKey(*self._names(task, dict(where))) for task in tasks]
        lines = []
        for key, state in self.coordinator.batch_get_states(keys).items():
            assert state == self.coordinator.get_task_state(*key), "asked together or alone, it is the same"
            lines.append(f"{key.task_id}: {state.state}, generation {state.generation}")
            if state.claim is not None:
                until = f" until {moment(state.claim.expires_ms)}" if state.claim.state == "ACTIVE" else ""
                who = f"{state.claim.agent_id} in {state.claim.session_id}"
                lines.append(f"  claim {state.claim.state}: {who}{until}")
            if state.result is not None:
                lines.append(f"  result ACCEPTED: {_result(state.result)}")
        return lines

    def do_history(self, task: str, **where: str) -> list[str]:
        entries = self.coordinator.get_claim_history(*self._names(task, where))
        rows: list[tuple[str, ...]] = [
            ("generation", "session", "agent", "acquired", "released", "ended", "result")
        ]
        rows += [_row(entry) for entry in entries]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return lines + [_rejected(result) for entry in entries for result in entry.rejected]

    def do_claims(self, session: str, **where: str) -> list[str]:
        tenant = where.get("tenant", self._where["tenant"])
        claims = self.coordinator.get_active_claims_for_session(tenant, session)
        lines = [
            f"{claim.task_id}: generation {int(claim.generation)} until {moment(claim.expires_ms)}"
            for claim in claims
        ]
        return lines or ["none"]

    def do_expired(self, **where: str) -> list[str]:
        claims = self.coordinator.list_expired_claims(where.get("tenant", self._where["tenant"]))
        lines = [
            f"{claim.task_id}: generation {int(claim.generation)} of {claim.session_id} at"
            f" {moment(claim.expires_ms)}"
            for claim in claims
        ]
        return lines or ["none"]

    def do_log(self, **where: str) -> list[str]:
        """Print the log: what happened, in one order, without gaps."""
        entries = self.coordinator.database.log(where.get("tenant", self._where["tenant"])).tail(0, 1000)
        assert [entry.offset for entry in entries] == list(range(1, len(entries) + 1))
        return [f"{moment(entry.at)} {_event(event)}" for entry in entries for event in entry.events]


def _claimed(reply: ClaimResult) -> str:
    if reply.claim is not None:
        return (
            f"{reply.reason} generation {int(reply.claim.generation)} until {moment(reply.claim.expires_ms)}"
        )
    holder = f", held by {reply.current_holder}" if reply.current_holder else ""
    return f"{reply.reason}{holder}{f': {reply.detail}' if reply.detail else ''}"


def _result(result: TaskResult) -> str:
    data = json.dumps(result.result_data)
    return f"{data} by {result.agent_id} at {moment(result.submitted_ms)}, {result.work_product_ref}"


def _row(entry: ClaimHistory) -> tuple[str, ...]:
    outcome = "rejected" if entry.rejected else "none"
    return (
        str(entry.generation),
        entry.session_id,
        entry.agent_id,
        moment(entry.acquired_ms),
        moment(entry.released_ms),
        entry.release_reason,
        "accepted" if entry.result_accepted else outcome,
    )


def _rejected(result: TaskResult) -> str:
    who = f"{result.session_id}/{result.agent_id or '?'}"
    return (
        f"rejected: {who} at {moment(result.submitted_ms)}, generation {result.generation},"
        f" {result.rejection_reason}"
    )


def _event(event: bytes) -> str:
    told: dict[str, Any] = json.loads(event)
    return f"{told['event']} {told.get('task', '')} generation {told.get('generation', '')}".rstrip()
