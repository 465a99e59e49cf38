"""What a run finds out, one figure at a time; the table and the JSON are two views of the same list."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec


class Calibration(msgspec.Struct, frozen=True):
    """What the machine could do at some moment, whatever coord does."""

    loop_turns_per_s: float
    """Turns of a fixed loop in pure Python, in one thread."""
    syncs_per_s: float
    """Writes of 4 KiB, each followed by fdatasync, in the folder of the stores."""
    sync_ms_p50: float
    sync_ms_p99: float
    load: float
    """The load average of the last minute: what else was running."""


class Figure(msgspec.Struct):
    """One measured number, with the floor it should reach and what stands beside it."""

    section: str
    store: str
    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    floor: float | None = None
    most: float | None = None
    """The ceiling, for figures of which less is better."""
    raw: float | None = None
    """The same bytes into the same place without coord, per second."""
    raw_floor: float | None = None
    """The least share of raw that this figure should reach."""
    detail: dict[str, Any] = {}
    before: Calibration | None = None
    after: Calibration | None = None

    @classmethod
    def middle_of(
        cls, values: Sequence[float], section: str, store: str, name: str, unit: str, **more: Any
    ) -> "Figure":
        """Return the median of repetitions, with the lowest and the highest."""
        middle = statistics.median(values)
        return cls(section, store, name, middle, unit, low=min(values), high=max(values), **more)

    @property
    def of_raw(self) -> float | None:
        """Ours as a share of raw."""
        return self.value / self.raw if self.raw else None

    @property
    def met(self) -> bool | None:
        """Whether it reaches what it should; None where nothing is asked for."""
        verdicts = []
        if self.floor is not None:
            verdicts.append(self.value >= self.floor)
        if self.most is not None:
            verdicts.append(self.value < self.most)
        if self.raw_floor is not None and self.of_raw is not None:
            verdicts.append(self.of_raw >= self.raw_floor)
        return all(verdicts) if verdicts else None

    @property
    def per_million_turns(self) -> float | None:
        """A rate, per million turns of the calibration loop: comparable between machines."""
        turns = self._mean("loop_turns_per_s")
        return self.value / turns * 1e6 if turns and self.unit == "/s" else None

    @property
    def per_sync(self) -> float | None:
        """A rate, per fdatasync that the disk could do in the same time."""
        syncs = self._mean("syncs_per_s")
        return self.value / syncs if syncs and self.unit == "/s" else None

    def _mean(self, field: str) -> float | None:
        if self.before is None or self.after is None:
            return None
        return (getattr(self.before, field) + getattr(self.after, field)) / 2

    def as_data(self) -> dict[str, Any]:
        """Everything, for JSON."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        derived = ("of_raw", "met", "per_million_turns", "per_sync")
        return {**data, **{name: getattr(self, name) for name in derived}}


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """Return the value below which this share of all lies."""
    place = min(len(sorted_values) - 1, int(len(sorted_values) * share))
    return sorted_values[place]


def latency_ms(seconds: Iterable[float]) -> dict[str, float]:
    """Return the percentiles that tell how waiting feels."""
    millis = sorted(value * 1000 for value in seconds)
    if not millis:
        return {}
    shares = {"p50_ms": 0.5, "p99_ms": 0.99, "p99.9_ms": 0.999}
    return {**{name: percentile(millis, share) for name, share in shares.items()}, "max_ms": millis[-1]}
