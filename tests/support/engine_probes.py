"""Commands with rules so simple that a test can say what must come out, and surroundings that stand still."""

import itertools
from collections import Counter
from typing import Any

import msgspec
import pytest

from coord.core.commands import Command
from coord.core.dispatch import TARGETS
from coord.core.errors import Refused
from coord.core.records import Stored
from coord.core.transaction import Transaction


class Text(Stored, frozen=True, tag=1):
    """A record of some letters."""

    text: str = ""


class Appended(msgspec.Struct, frozen=True, tag_field="event", tag="appended"):
    """Letters were added."""

    key: str
    text: str


class Probe(Command, frozen=True):
    """Reads and writes one record."""

    reply = str
    key: str
    text: str = ""


class Append(Probe, frozen=True):
    """Add letters to a record; the reply is what it holds then."""


class Look(Probe, frozen=True):
    """Ask what a record holds."""

    reads_only = True


class LookTwice(Probe, frozen=True):
    """Ask for a record, and for the record that it names: two reads, one after the other."""

    reads_only = True


class Once(Probe, frozen=True):
    """Write a record if it is empty; otherwise say who was there, and write nothing."""


class OnceElsewhere(Probe, frozen=True):
    """Write a record if the one named by another is empty: the refusal rests on two reads."""


class Copy(Probe, frozen=True):
    """Write into one record (`text` names it) what another holds."""


class Gather(Probe, frozen=True):
    """Write into one record (`text` names it) all that stands below another's key."""


class Explode(Probe, frozen=True):
    """Write, emit, and then fail with an exception that nobody foresaw."""


class Refuse(Probe, frozen=True):
    """Write, emit, and then refuse."""


class Fill(Probe, frozen=True):
    """Write a record of many bytes."""

    size: int = 0


class Probes:
    """The rules of the probes, and how often each was asked."""

    def __init__(self) -> None:
        self.completed: Counter[tuple[str, str]] = Counter()
        self.times: list[int] = []
        self.asked: list[int] = []
        """Times of decisions, of those too that were suspended or refused."""

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Make the probes known to the engine for the length of a test."""
        rules: dict[type[Command], Any] = {
            Append: self.append,
            Look: self.look,
            LookTwice: self.look_twice,
            Once: self.once,
            OnceElsewhere: self.once_elsewhere,
            Copy: self.copy,
            Gather: self.gather,
            Explode: self.explode,
            Refuse: self.refuse,
            Fill: self.fill,
        }
        for command, rule in rules.items():
            patch.setattr(command, "rule", f"probes:{command.__name__}", raising=False)
            patch.setitem(TARGETS, command.rule, self._counted(rule))

    def _counted(self, rule: Any) -> Any:
        """Count decisions that came to an end: a suspended one is not counted."""

        def decide(tx: Transaction, command: Probe, now: int) -> Any:
            self.asked.append(now)
            reply = rule(tx, command)
            self.completed[type(command).__name__, command.key] += 1
            self.times.append(now)
            return reply

        return decide

    def append(self, tx: Transaction, command: Probe) -> str:
        text = _text(tx, command.key) + command.text
        tx.put(command.key, Text(text=text))
        tx.emit(Appended(command.key, command.text))
        return text

    def look(self, tx: Transaction, command: Probe) -> str:
        return _text(tx, command.key)

    def look_twice(self, tx: Transaction, command: Probe) -> str:
        return _text(tx, _text(tx, command.key))

    def once(self, tx: Transaction, command: Probe) -> str:
        before = _text(tx, command.key)
        if not before:
            self.append(tx, command)
        return before

    def once_elsewhere(self, tx: Transaction, command: Probe) -> str:
        named = _text(tx, command.key) or "elsewhere"
        before = _text(tx, named)
        if not before:
            tx.put(named, Text(text=command.text))
        return before

    def copy(self, tx: Transaction, command: Probe) -> str:
        text = _text(tx, command.key)
        tx.put(command.text, Text(text=text))
        return text

    def gather(self, tx: Transaction, command: Probe) -> str:
        text = "".join(_text(tx, found.key) for found in tx.scan(command.key, limit=9))
        _text(tx, command.text)
        tx.put(command.text, Text(text=text))
        return text

    def explode(self, tx: Transaction, command: Probe) -> str:
        self.append(tx, command)
        raise ZeroDivisionError("a defect")

    def refuse(self, tx: Transaction, command: Probe) -> str:
        text = _text(tx, command.key)
        self.append(tx, command)
        raise Refused(f"not today: {text}" if text else "not today")

    def fill(self, tx: Transaction, command: Fill) -> str:
        _text(tx, command.key)
        tx.put(command.key, Text(text="x" * command.size))
        return command.key


def _text(tx: Transaction, key: str) -> str:
    record = tx.get(key, Text)
    return "" if record is None else record.text


class StillRuntime:
    """Time passes only by sleeping, and chance is always in the middle."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []
        self._ids = itertools.count(1)

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def jitter(self, most: float) -> float:
        return most / 2

    def commit_id(self) -> bytes:
        return b"commit-%d" % next(self._ids)
