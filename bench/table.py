"""The figures as a table for people: each beside its floor, its raw limit and the machine's calibration."""

from collections.abc import Callable, Iterable

from bench.figures import Calibration, Figure
from bench.quiet import NOISE

SHOWN_DETAIL = {
    "cpu_us_per_op": "cpu µs/op",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "p99.9_ms": "p99.9 ms",
    "max_ms": "max ms",
    "commits_per_op": "commits/op",
    "batch_mean": "ops/commit",
    "first_ms": "first ms",
    "rss_mb": "in use MB",
    "peak_mb": "peak MB",
    "empty_mb": "at start MB",
    "offered_per_s": "offered/s",
    "completed_per_s": "completed/s",
    "refused": "refused",
    "undisturbed": "undisturbed",
    "ours_of_this": "ours/this",
    "least_share": "least share",
    "most_share": "most share",
    "in_order": "in order",
    "of_fewest": "of fewest",
    "of_one": "of one",
    "from_call_ms": "from call ms",
    "command_ms": "command ms",
    "direct_ms": "direct ms",
    "reads_per_s": "reads/s",
    "wakeups_per_s": "wake-ups/s",
    "cpu_ms_per_min": "cpu ms/min",
    "plain_per_s": "without/s",
    "followed_per_s": "with/s",
    "cpu_percent": "cpu %",
    "late_ms": "loop late ms",
    "python_ms": "python ms",
    "git_ms": "git ms",
}


def number(value: float | None) -> str:
    """Return three significant digits, or whole numbers with separators."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def mark(reached: bool) -> str:
    return "✓" if reached else "✗"


def asked(figure: Figure) -> str:
    """Return what the figure should reach, and whether it does."""
    if figure.floor is not None:
        return f"≥ {number(figure.floor)} {mark(figure.value >= figure.floor)}"
    return "" if figure.most is None else f"< {number(figure.most)} {mark(figure.value < figure.most)}"


def spread(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f"{number(figure.low)}…{number(figure.high)}"


def share_of_raw(figure: Figure) -> str:
    share = figure.of_raw
    if share is None:
        return ""
    if figure.raw_floor is None:
        return f"{share:.2f}"
    return f"{share:.2f} ≥ {figure.raw_floor} {mark(share >= figure.raw_floor)}"


def noisy(figure: Figure) -> str:
    """Return ~ where the machine itself changed during the measurement, and nothing shows what it did."""
    if "undisturbed" in figure.detail:
        return "" if figure.detail["undisturbed"] else "~"
    before, after = figure.before, figure.after
    if before is None or after is None:
        return ""
    pairs = [(before.loop_turns_per_s, after.loop_turns_per_s), (before.syncs_per_s, after.syncs_per_s)]
    return "~" if any(max(pair) / min(pair) > 1 + NOISE for pair in pairs) else ""


COLUMNS: dict[str, Callable[[Figure], str]] = {
    "store": lambda figure: figure.store,
    "what": lambda figure: figure.name,
    "value": lambda figure: f"{number(figure.value)} {figure.unit}".replace(" /", "/"),
    "asked": asked,
    "": noisy,
    "spread": spread,
    "raw/s": lambda figure: number(figure.raw),
    "ours/raw": share_of_raw,
    **{
        title: lambda figure, name=name: number(figure.detail.get(name))  # type: ignore[misc]
        for name, title in SHOWN_DETAIL.items()
    },
    "/Mturns": lambda figure: number(figure.per_million_turns),
    "/sync": lambda figure: number(figure.per_sync),
}


def section_table(title: str, figures: Iterable[Figure]) -> str:
    """Return one section as lines of aligned columns; columns with nothing in them are left out."""
    rows = [[cell(figure) for cell in COLUMNS.values()] for figure in figures]
    used = [place for place in range(len(COLUMNS)) if any(row[place] for row in rows)]
    titles = list(COLUMNS)
    lines = [[titles[place] for place in used], *([row[place] for place in used] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(used))]
    shown = [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([f"\n{title}", *shown])


def calibration_lines(calibrations: list[Calibration]) -> str:
    """Return how the machine was during the run, from the worst moment to the best."""
    turns = [each.loop_turns_per_s / 1e6 for each in calibrations]
    syncs = [each.sync_ms_p50 for each in calibrations]
    loads = [each.load for each in calibrations]
    shown = (
        f"calibration ({len(calibrations)} times): loop {min(turns):.1f}…{max(turns):.1f} million turns/s, "
        f"fdatasync of 4 KiB {min(syncs):.2f}…{max(syncs):.2f} ms (p50), "
        f"load {min(loads):.1f}…{max(loads):.1f}"
    )
    if max(turns) / min(turns) > 1 + NOISE:  # the load counts ourselves too; the loop runs while we rest
        shown += (
            "\nTHE MACHINE WAS NOT QUIET: the same loop took very different times; do not trust the rates"
        )
    return shown


LEGEND = """
asked: the floor of the project, ✓ reached, ✗ missed, ~ the machine changed by more than 25 % meanwhile
undisturbed: the share of all repetitions during which it did not; only these count, or all if there is none
cpu µs/op: processor time of this process, all its threads (not of a server); for a hub its own
raw/s: the same commits into the same place with nothing of coord (bench/raw.py says precisely what)
/Mturns, /sync: the rate per million turns of the calibration loop, and per fdatasync the disk could do"""
