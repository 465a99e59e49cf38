"""A run as one file: the page with the log of that time, which opens without a hub.

A browser does not load modules from files, so all of them are in the file, as data that an import map names.
The policy in it names its scripts by their hashes and allows no request.
"""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from coord.core.errors import LimitReached
from coord.core.events import read_event
from coord.core.page.rules import JOINTS, RULES
from coord.core.page.state import PageState
from coord.sdk.log_reader import first_offset, newest_offset, pages
from coord.sdk.page.past import offset_at
from coord.sdk.page.snapshot import replay
from coord.stores.contract import Store

STATIC = Path(__file__).parent / "static"
ENTRIES_MAX = 200_000
MARK = b'id="coord-report"'
"""What a report has in it and other files do not: only a report is written over."""
_IMPORT = re.compile(r"""(\bfrom\s*|\bimport\s*)(["'])(\.{1,2}/[^"']+)\2""")
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
_BEGIN = 'import "coord/app.js";'


def make_report(log: Store, from_ms: int, name: str) -> bytes:
    """Return the file with everything since a time; what began before a trimmed log is missing."""
    oldest = max(0, first_offset(log) - 1)
    base = replay(log, PageState(offset=oldest), offset_at(log, from_ms, oldest))
    newest = newest_offset(log)
    if newest - base.offset > ENTRIES_MAX:
        raise LimitReached(
            f"the log has {newest - base.offset} entries since then; a report holds {ENTRIES_MAX}",
            hint="choose a shorter time: --since 2h",
        )
    found = {
        "base": base,
        "entries": list(_entries(log, base.offset, newest)),
        "rules": {**RULES, "@join": JOINTS},
        "hub": {"repository": name},
        "from_ms": from_ms,
    }
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(found), 6, mtime=0)).decode()
    return _html(packed).encode()


def _entries(log: Store, after: int, until: int) -> Iterator[dict[str, Any]]:
    for page in pages(log, after + 1):
        for entry in page:
            if after < entry.offset <= until:
                events = [_event(raw) for raw in entry.events]
                yield {"offset": entry.offset, "at": entry.at, "events": events}


def _event(raw: bytes) -> dict[str, Any]:
    return read_event(raw) or {"event": "unreadable"}


def _html(log: str) -> str:
    files = {path.relative_to(STATIC).as_posix(): path for path in sorted(STATIC.rglob("*.js"))}
    modules = {f"coord/{name}": _module(name, path.read_text()) for name, path in files.items()}
    imports = json.dumps({"imports": modules}).replace("<", "\\u003c")
    style = "\n".join(path.read_text() for path in sorted(STATIC.rglob("*.css"), key=_style_order))
    policy = (
        f"default-src 'none'; script-src {_hash(imports)} {_hash(_BEGIN)} data:; style-src {_hash(style)}; "
        "img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(policy=policy, style=style, imports=imports, log=log, begin=_BEGIN)


def _style_order(path: Path) -> tuple[int, str]:
    """Return where a style comes: what others build on is first."""
    return (
        (("tokens.css", "base.css", "parts.css").index(path.name), "")
        if path.stem in _FIRST
        else (9, path.name)
    )


_FIRST = ("tokens", "base", "parts")


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
