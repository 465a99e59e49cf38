"""`python -m bench`: measure every store in one run; a table on stdout, JSON in bench/results/latest.json."""

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from bench import (
    batch,
    briefs,
    broad,
    callers,
    checks,
    commands,
    commits,
    contended,
    effects,
    followers,
    gates,
    held,
    hooks,
    hub,
    imports,
    locks,
    mcp,
    memory_use,
    merges,
    page,
    past,
    peers,
    queues,
    tenants,
    wake,
)
from bench.calibrate import calibrate, machine
from bench.figures import Calibration, Figure
from bench.places import Places, temporary
from bench.scale import FULL, SCALES, Scale
from bench.table import LEGEND, calibration_lines, number, section_table
from tests.support.servers.kinds import STORES, lacks

RESULTS = Path(__file__).parent / "results"

Measure = Callable[[Places, Scale, str], Iterator[Figure]]

SECTIONS: dict[str, tuple[str, Measure]] = {
    "batch": ("Batches from one caller", batch.measure),
    "callers": ("Many callers, one engine", callers.measure),
    "tenants": ("Batches in several tenants", tenants.measure),
    "held": ("Claims held at once in one tenant", held.measure),
    "past": ("A long past", past.measure),
    "memory": ("Memory, and opening", memory_use.measure),
    "imports": ("Coming in", imports.measure),
    "locks": ("A lock that nobody else wants", locks.measure),
    "hand-off": ("One lock that all want", contended.measure),
    "check": ("Asking among many held locks", checks.measure),
    "broad": ("Requests and listings over everything", broad.measure),
    "briefs": ("What others do, for one agent", briefs.measure),
    "wake": ("From a release to the next holder", wake.measure),
    "peers": ("Claim and complete, beside other queues", peers.measure),
    "queue": ("Tasks in line", queues.measure),
    "hub": ("Claims through a hub", hub.measure),
    "followers": ("Followers of the log", followers.measure),
    "page": ("The page in a browser", page.measure),
    "mcp": ("Tool calls over MCP", mcp.measure),
    "commands": ("Whole commands", commands.measure),
    "gates": ("Gates of git", gates.measure),
    "hooks": ("Whole calls of a hook", hooks.measure),
    "commits": ("Commits in git", commits.measure),
    "merges": ("Merges in git", merges.measure),
    "effects": ("Looking at what a shell command changed", effects.measure),
}
"""Every section yields the figures of one store; another system to compare with is another section."""

EXAMPLE = """examples:
  python -m bench                                    everything, in full length
  python -m bench --quick                            everything, for a shorter time
  python -m bench --store sqlite --only callers      one section of one store"""


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--store", action="append", choices=STORES, help="this store (may be repeated)")
    parser.add_argument(
        "--only", action="append", choices=tuple(SECTIONS), help="this section (may be repeated)"
    )
    parser.add_argument(
        "--quick", dest="scale", action="store_const", const="quick", help="shorter and smaller"
    )
    parser.add_argument("--scale", dest="scale", choices=tuple(SCALES), help="how much to measure")
    parser.add_argument("--folder", help="make the stores below this folder (default: /var/tmp)")
    parser.add_argument("--json", type=Path, default=RESULTS / "latest.json", help="where to put the JSON")
    parser.set_defaults(scale=FULL.name)
    return parser.parse_args(words)


class Session:
    """One run: sections in order, a calibration between any two, so that each has one on both sides."""

    def __init__(self, places: Places, scale: Scale) -> None:
        self._places = places
        self._scale = scale
        self._began = time.monotonic()
        self.figures: list[Figure] = []
        self.failed: list[str] = []
        self.calibrations = [self._calibrate()]

    def _calibrate(self) -> Calibration:
        return calibrate(self._places.folder, self._scale.calibration_seconds)

    def run(self, section: str, store: str) -> None:
        """Measure one section of one store, if it can be had here."""
        if lacking := lacks(store):
            self.say(f"{section:8} {store:9} NOT MEASURED: {lacking}")
            return
        found: list[Figure] = []
        try:
            for figure in SECTIONS[section][1](self._places, self._scale, store):
                found.append(figure)
                self.say(f"{section:8} {store:9} {figure.name}: {number(figure.value)} {figure.unit}")
        except Exception:  # noqa: BLE001 - one that fails must not take along what others have found
            self.failed.append(f"{section} on {store}")
            self.say(f"{section:8} {store:9} FAILED:\n{traceback.format_exc()}")
        self._places.remove_embedded()
        before, after = self.calibrations[-1], self._calibrate()
        self.calibrations.append(after)
        for figure in found:
            figure.before, figure.after = before, after
        self.figures += found

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began:5.0f} s] {text}", file=sys.stderr, flush=True)


def show(session: Session, facts: dict[str, object]) -> None:
    print("; ".join(f"{name} {value}" for name, value in facts.items()))
    print(calibration_lines(session.calibrations))
    for section, (title, _) in SECTIONS.items():
        figures = [figure for figure in session.figures if figure.section == section]
        if figures:
            print(section_table(title, figures))
    print(LEGEND)
    if absent := peers.missing():
        print(f"\nNOT MEASURED, since not installed: {', '.join(absent)}. Install them: make venv")
    if session.failed:
        print(f"\nFAILED, see above: {', '.join(session.failed)}")


def save(path: Path, session: Session, facts: dict[str, object], scale: Scale) -> None:
    found = {
        "machine": facts,
        "scale": scale._asdict(),
        "calibrations": session.calibrations,
        "figures": [figure.as_data() for figure in session.figures],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def main(words: list[str]) -> int:
    asked = arguments(words)
    scale = SCALES[asked.scale]
    with temporary(asked.folder) as places:
        facts = machine(places.folder)
        session = Session(places, scale)
        for section in asked.only or SECTIONS:
            for store in asked.store or STORES:
                session.run(section, store)
        show(session, facts)
        save(asked.json, session, facts, scale)
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
