"""Write metrics as Prometheus reads them (text format 0.0.4).

By hand: `prometheus_client` has its registry, which would have to be filled from ours for each
scrape, and blocks for 14 ms (decision 0076). A real Prometheus reads this in a test.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from coord.followers.metrics.counts import SEPARATOR, Counts
from coord.followers.metrics.families import FAMILIES, PREFIX, Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Gauge(NamedTuple):
    """A metric that says what is now, by its label values."""

    name: str
    about: str
    labels: tuple[str, ...]
    samples: Mapping[tuple[str, ...], float]
    seed: bool = False


def metrics_text(counts: Counts, gauges: list[Gauge], prefix: str = PREFIX) -> str:
    """Return counters, histograms and gauges as text."""
    lines: list[str] = []
    for name, family in FAMILIES.items():
        lines += _family_lines(
            f"{prefix}_{name}" if family.seed else name, family, counts.series.get(name, {})
        )
    for gauge in gauges:
        name = f"{prefix}_{gauge.name}" if gauge.seed else gauge.name
        lines += _head(name, "gauge", gauge.about)
        for values, value in sorted(gauge.samples.items()):
            lines.append(f"{name}{_labels(gauge.labels, values)} {number(value)}\n")
    return "".join(lines)


def _family_lines(name: str, family: Family, series: Mapping[str, list[float]]) -> Iterator[str]:
    yield from _head(name, family.kind, family.about)
    if not family.labels:
        series = {"": [0.0] * (len(family.buckets) + 2 if family.buckets else 1), **series}
    for key, numbers in sorted(series.items()):
        values = tuple(key.split(SEPARATOR)) if family.labels else ()
        if not family.buckets:
            yield f"{name}{_labels(family.labels, values)} {number(numbers[0])}\n"
            continue
        bounds = [*map(number, family.buckets), "+Inf"]
        for bound, value in zip(bounds, [*numbers[:-2], numbers[-1]], strict=True):
            labels = _labels((*family.labels, "le"), (*values, bound))
            yield f"{name}_bucket{labels} {number(value)}\n"
        yield f"{name}_sum{_labels(family.labels, values)} {number(numbers[-2])}\n"
        yield f"{name}_count{_labels(family.labels, values)} {number(numbers[-1])}\n"


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}\n# TYPE {name} {kind}\n"]


def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    if not names:
        return ""
    pairs = zip(names, values, strict=True)
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs) + "}"


def number(value: float) -> str:
    """Return a number without needless digits.

    >>> number(3.0), number(0.1)
    ('3', '0.1')
    """
    return str(int(value)) if value == int(value) else repr(round(value, 3))
