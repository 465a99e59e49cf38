"""The bench runs from end to end at a tiny size and says what it found; nothing here looks at how fast."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import quiet
from bench.__main__ import SECTIONS, main
from bench.callers import _closed_claims, _closed_submissions, _poisson
from bench.figures import Calibration, Figure, latency_ms
from bench.imports import slowest_modules
from bench.quiet import PATIENCE, Rounds
from bench.raw import RawSqlite, settings
from bench.table import section_table
from bench.watched import events_per_commit
from bench.workload import Workplace
from coord import open_store
from tests.conftest import SOAK
from tests.support.servers.kinds import SHARED_STORES, STORES

SOME_STORES_ONLY = {
    "imports": {"sqlite"},
    "commands": {"sqlite"},
    "gates": {"sqlite"},
    "hooks": {"sqlite"},
    "commits": {"sqlite"},
    "merges": {"sqlite"},
    "effects": {"sqlite"},
    "mcp": {"sqlite"},
    "page": {"sqlite"},
    "hub": {"memory", "sqlite", "postgres"},
    "followers": {"memory", "sqlite"},
    "wake": {"files", "sqlite"},
    "hand-off": {"files", "sqlite", "postgres", "redis", "nats"},
    "tenants": set(SHARED_STORES),
}
"""What makes no sense, or is not asked for, on the others."""

KNOW_THE_STORE = ("batch",)
"""Sections with code of their own for each store; the others are tried on SQLite, and in the soak on all."""
GIT = ("gates", "hooks", "commits", "merges", "effects")
"""Half of what SQLite is tried with, so that the two halves can be tried at the same time."""
ELSEWHERE = ("locks", "check", "commands", "hand-off")
"""Sections whose figures, or whose rivals, other tests look at."""
WITH_PEERS = "postgres"
"""Other queues stand beside it, as beside SQLite, and beside Redis in the soak."""
RUNS = (
    [((store,), tuple(SECTIONS)) for store in STORES]
    if SOAK
    else [
        (("sqlite",), GIT),
        (("sqlite",), tuple(section for section in SECTIONS if section not in (*GIT, *ELSEWHERE))),
        ((WITH_PEERS,), ("peers",)),
        (("nats",), ("hand-off",)),  # where no rival stands beside it
        (tuple(store for store in STORES if store != "sqlite"), KNOW_THE_STORE),
    ]
)


@pytest.mark.timeout(7200 if SOAK else 400)
@pytest.mark.parametrize(("stores", "sections"), RUNS)
def test_every_section_gives_figures_in_the_table_and_in_json(
    stores: tuple[str, ...],
    sections: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every section measures the stores it concerns, each figure with a calibration on both sides."""
    for name, less in {"quiet.PATIENCE": 1, "quiet.LOOK_S": 0.0, "calibrate.TURNS": 2_000}.items():
        monkeypatch.setattr(f"bench.{name}", less)  # how quiet the machine is does not matter here
    path = tmp_path / "figures.json"
    asked = [word for store in stores for word in ("--store", store)]
    asked += [word for section in sections for word in ("--only", section)]
    assert main(["--scale", "tiny", *asked, "--json", str(path)]) == 0
    shown = capsys.readouterr()
    found = json.loads(path.read_bytes())
    assert {(figure["section"], figure["store"]) for figure in found["figures"]} == {
        (section, store)
        for section in sections
        for store in stores
        if store in SOME_STORES_ONLY.get(section, STORES)
    }
    for figure in found["figures"]:
        assert (
            figure["value"] > 0
            or figure["section"] in ("wake", "followers", "page")
            or "idle" in figure["name"]
        )
        assert figure["before"]["loop_turns_per_s"] > 0
        assert figure["after"]["syncs_per_s"] > 0
        assert figure["name"].strip() in shown.out
        assert figure["name"].strip() in shown.err
    assert {"cores", "cpu", "kernel", "python", "sqlite"} <= set(found["machine"])


def test_raw_and_batches_stand_beside_each_batch_figure(tmp_path: Path) -> None:
    """A batch figure has its raw limit; its commits hold the operations of its calls; no store is left."""
    path = tmp_path / "figures.json"
    words = ["--scale", "tiny", "--store", "sqlite", "--only", "batch", "--folder", str(tmp_path)]
    main([*words, "--json", str(path)])
    figures = json.loads(path.read_bytes())["figures"]
    assert list(tmp_path.iterdir()) == [path]
    assert {figure["name"] for figure in figures} == {
        f"{what}, batch {size}" for what in ("claims", "submissions") for size in (1, 8)
    }
    for figure in figures:
        assert figure["of_raw"] == pytest.approx(figure["value"] / figure["raw"])
        assert figure["detail"]["batch_mean"] == figure["detail"]["operations_per_call"]


def test_a_section_that_fails_takes_nothing_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of many minutes shows and keeps what it has found, names what failed, and says so by its code."""

    def fail(*_: object) -> Iterator[Figure]:
        yield Figure("past", "memory", "the last before it", 7, "/s")
        raise RuntimeError("the disk is full")

    monkeypatch.setitem(SECTIONS, "past", ("The past", fail))
    path = tmp_path / "figures.json"
    words = ["--scale", "tiny", "--store", "memory", "--only", "past", "--only", "memory"]
    assert main([*words, "--json", str(path)]) == 1
    assert {figure["section"] for figure in json.loads(path.read_bytes())["figures"]} == {"past", "memory"}
    shown = capsys.readouterr()
    assert "the last before it" in shown.out
    assert "FAILED, see above: past on memory" in shown.out
    assert "the disk is full" in shown.err


def test_a_missed_floor_is_shown_as_missed() -> None:
    """A figure is judged by its floor, its ceiling and its share of raw; the table marks each."""
    calm = Calibration(1e7, 5000, 0.2, 0.4, 0.1)
    figures = [
        Figure("batch", "sqlite", "fast", 50_000, "/s", floor=40_000, before=calm, after=calm),
        Figure("batch", "sqlite", "slow", 30_000, "/s", floor=40_000, before=calm, after=calm),
        Figure("batch", "sqlite", "late", 60, "ms", most=50),
        Figure("batch", "sqlite", "thin", 100, "/s", raw=250, raw_floor=0.5),
        Figure("batch", "sqlite", "free", 1, "/s"),
    ]
    assert [figure.met for figure in figures] == [True, False, False, False, None]
    lines = section_table("Batches", figures).splitlines()
    marks = {line.split()[1]: ("✓" in line, "✗" in line) for line in lines[3:]}
    assert marks == {
        "fast": (True, False),
        "slow": (False, True),
        "late": (False, True),
        "thin": (False, True),
        "free": (False, False),
    }
    assert figures[0].per_million_turns == pytest.approx(5_000)
    assert figures[0].per_sync == pytest.approx(10)


def test_a_machine_that_changed_meanwhile_is_marked() -> None:
    """A figure whose two calibrations differ is shown with ~."""
    calm, slowed = Calibration(1e7, 5000, 0.2, 0.4, 0.1), Calibration(6e6, 5000, 0.2, 0.4, 3.0)
    steady = Figure("batch", "sqlite", "steady", 1, "/s", before=calm, after=calm)
    shaken = Figure("batch", "sqlite", "shaken", 1, "/s", before=calm, after=slowed)
    *_, first, second = section_table("Batches", [steady, shaken]).splitlines()
    assert ("~" in first, "~" in second) == (False, True)


def test_percentiles_and_batches_are_counted_right() -> None:
    """p50, p99 and the histogram of commits mean what they say."""
    waiting = latency_ms(number / 1000 for number in range(1, 1001))
    assert (waiting["p50_ms"], waiting["p99_ms"], waiting["max_ms"]) == (501.0, 991.0, 1000.0)
    sizes = events_per_commit([1, 120, 4, 3])
    assert sizes["histogram"] == {"1": 1, "2-3": 1, "4-7": 1, "64-127": 1}
    assert sizes["commits_per_op"] == 4 / 128


def test_raw_has_the_settings_of_the_store(tmp_path: Path) -> None:
    """Raw is a limit only on equal terms: what the store sets on its connection, raw has too."""
    url = f"sqlite://{tmp_path}/store.db"
    database: Any = open_store(url)
    with contextlib.closing(database), contextlib.closing(RawSqlite(url)) as raw:
        of_store = settings(database._connection)
        assert settings(raw._connection) == of_store
    assert of_store["journal_mode"] == "wal"
    assert of_store["synchronous"] == 2  # FULL
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as plain:
        assert settings(plain) != of_store, "the store sets something that a plain connection lacks"


def test_every_caller_is_heard_however_short_the_run() -> None:
    """A machine so busy that the time is over before the callers begin still gives a rate, not an error."""
    with Workplace("memory:") as place:
        claims, held = _closed_claims(place, 4, seconds=0.0)
        submissions = _closed_submissions(place, held, seconds=0.0)
    assert len(claims.answers) == len(submissions.answers) == 4
    assert claims.rate > 0
    assert submissions.rate > 0


def test_arrivals_of_the_open_loop_are_drawn_beforehand() -> None:
    """Arrivals are a Poisson process at the asked rate, and the same in each run."""
    moments = _poisson(1000, 10)
    assert moments == _poisson(1000, 10)
    assert moments == sorted(moments)
    assert len(moments) == pytest.approx(10_000, rel=0.05)


def test_the_slowest_modules_come_from_the_listing_of_the_interpreter() -> None:
    """The breakdown of an import names modules by their own time, slowest first."""
    listing = "import time: self [us] | cumulative | imported package\n" + "\n".join(
        f"import time:     {own} |       {own + 5} |   module_{own}" for own in (20, 900, 100)
    )
    assert slowest_modules(listing) == [("module_900", 0.9), ("module_100", 0.1), ("module_20", 0.02)]


def test_a_repetition_that_neighbours_disturbed_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those count at whose both ends the machine was itself; all of a few, if there is none."""
    looks = iter([1.0, 1.0, 2.0, 1.1, 1.1])
    monkeypatch.setattr(quiet, "_met", {1.0})
    monkeypatch.setattr(quiet, "turn_s", lambda: next(looks))
    rounds = Rounds(2)
    numbers = [number for number, _ in enumerate(rounds)]
    assert numbers == [0, 1, 2, 3]
    assert (rounds.chosen(numbers), rounds.share) == ([0, 3], 0.5)
    quiet._met.add(0.8)
    assert (rounds.chosen(numbers), rounds.share) == ([0], 0.25), "a faster moment shows that others were not"
    monkeypatch.setattr(quiet, "turn_s", lambda: 2.0)
    never = Rounds(2)
    numbers = [number for number, _ in enumerate(never)]
    assert never.chosen(numbers) == numbers == list(range(2 * PATIENCE))
    assert never.share == 0
