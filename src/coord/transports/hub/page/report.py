"""A run as one file: the page with the log of that time, which opens without a hub.

A browser does not load modules from files, so all of them are in the file, as data that an import map names.
The policy in it names its scripts by their hashes and allows no request. Beside the log the file has what a
hub would answer (`run_facts.py`); `static_report/` gives these answers to the page.
"""

import base64
import gzip
import json
import re
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from coord.core.errors import LimitReached
from coord.core.events import read_or_name
from coord.core.page.rules import DELIVERED
from coord.core.page.sentences import SENTENCES
from coord.core.page.series import COUNTED, LEVELS, TIMED
from coord.core.page.series import RULES as SERIES_RULES
from coord.core.page.state import PageState, apply_entry
from coord.sdk.log_reader import first_offset, newest_offset, pages
from coord.sdk.page.numbers import WIDTHS_MS
from coord.sdk.page.past import PastStates, offset_at
from coord.sdk.page.snapshot import replay
from coord.stores.contract import Store
from coord.transports.hub.page.assets import style_files
from coord.transports.hub.page.run_facts import RunFacts

FOLDER = Path(__file__).parent
STATIC, ADDED = FOLDER / "static", FOLDER / "static_report"
ENTRIES_MAX = 200_000
SERIES = {
    "rules": SERIES_RULES,
    "levels": LEVELS,
    "counted": COUNTED,
    "timed": TIMED,
    "widths_ms": WIDTHS_MS,
}
"""How the numbers are counted."""
MARK = b'id="coord-report"'
"""What a report has in it and other files do not: only a report is written over."""
_IMPORT = re.compile(r"""(\bfrom\s*|\bimport\s*\(?)(["'])(\.{1,2}/[^"']+)\2""")
_PAGE = """<!doctype html>
<html lang="en" data-theme="auto">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>coord: report</title>
<style>{style}</style>
<script type="importmap">{imports}</script>
</head>
<body>
<div id="page"><noscript>The report needs JavaScript.</noscript></div>
<script type="application/octet-stream" id="coord-report">{log}</script>
<script type="module">{begin}</script>
</body>
</html>
"""
_BEGIN = 'import "coord/static_report/begin.js";'


class Run(NamedTuple):
    """The log of a time: the state before it, the entries since then, and the state after them."""

    base: PageState
    entries: list[dict[str, Any]]
    state: PageState
    whole: bool
    """Whether `base` has everything; if the log was trimmed, what began before it may be missing."""


def read_run(log: Store, past: PastStates, from_ms: int) -> Run:
    """Return everything since a time, or since the first state that is known of a trimmed log."""
    newest, first = newest_offset(log), first_offset(log)
    whole = past.knows(first)
    if whole:
        base = past.at(past.offset_at(from_ms))
    else:
        base = replay(log, PageState(offset=first - 1), offset_at(log, from_ms, first - 1))
    state, entries = msgspec.json.decode(msgspec.json.encode(base), type=PageState), []
    for page in pages(log, base.offset + 1):
        for entry in page:
            if base.offset < entry.offset <= newest:
                apply_entry(state, entry.offset, entry.at, entry.events)
                events = [read_or_name(raw) for raw in entry.events]
                entries.append({"offset": entry.offset, "at": entry.at, "events": events})
        if len(entries) > ENTRIES_MAX:  # offsets leap, so only the entries themselves can be counted
            raise LimitReached(
                f"the log has more than {ENTRIES_MAX} entries since then, and a report holds no more",
                hint="choose a shorter time: --since 2h",
            )
    return Run(base, entries, state, whole)


def make_report(run: Run, facts: RunFacts, name: str) -> bytes:
    """Return the file with a run, and with what the hub would say of it."""
    found = {
        "base": run.base,
        "entries": run.entries,
        "rules": DELIVERED,
        "series": SERIES,
        "sentences": SENTENCES,
        "hub": {"repository": name},
        "whole": run.whole,
        **msgspec.structs.asdict(facts),
    }
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(found), 6, mtime=0)).decode()
    return _html(packed).encode()


def _html(log: str) -> str:
    paths = sorted(path for folder in (STATIC, ADDED) for path in folder.rglob("*.js"))
    files = {path.relative_to(FOLDER).as_posix(): path for path in paths}
    modules = {f"coord/{name}": _module(name, path.read_text()) for name, path in files.items()}
    imports = json.dumps({"imports": modules}).replace("<", "\\u003c")
    style = "\n".join(path.read_text() for path in style_files())
    policy = (
        f"default-src 'none'; script-src {_hash(imports)} {_hash(_BEGIN)} data:; style-src {_hash(style)}; "
        "img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(policy=policy, style=style, imports=imports, log=log, begin=_BEGIN)


def _module(name: str, text: str) -> str:
    """Return a module as data; its imports name others as the map does."""
    folder = PurePosixPath("coord", name).parent

    def absolute(match: re.Match[str]) -> str:
        parts: list[str] = []
        for part in (folder / match[3]).parts:
            if part == "..":
                parts.pop()
            elif part != ".":
                parts.append(part)
        return f'{match[1]}"{"/".join(parts)}"'

    return "data:text/javascript;base64," + base64.b64encode(_IMPORT.sub(absolute, text).encode()).decode()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
