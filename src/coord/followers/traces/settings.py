"""The collector that a person has named for traces, in `[telemetry]` of a `coord.toml`.

The file of the repository counts after a person has confirmed it; that of the user counts for the others.
"""

import ipaddress
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult

from coord.core.errors import CoordError, Invalid
from coord.core.ids import short_repr
from coord.followers.follower import LogSource
from coord.followers.reactions.settings import configuration_files
from coord.followers.reactions.webhook import ANYWHERE, Reach, check_url
from coord.host.config import read_configuration, user_configuration_file
from coord.host.consent import read_consented
from coord.host.repository import Repository

TABLE, TRACES, REMOTE = "telemetry", "traces", "traces_remote"
PATH = "/v1/traces"


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


THIS_MACHINE = Reach(
    _is_loopback,
    "is another machine, and spans name tasks, files and agents",
    f"if that is meant: {REMOTE} = true below [telemetry]",
)


class Collector(NamedTuple):
    """Where spans are sent, and which addresses that may be."""

    parts: SplitResult
    reach: Reach


class Found(NamedTuple):
    """What the files say: a collector or none, and what is wrong with the table."""

    collector: Collector | None = None
    problem: str = ""


_read_before: dict[tuple[str, str], tuple[object, Found]] = {}


def find_collector(source: LogSource) -> Found:
    """Return the collector for the spans of a log; files that have not changed are not read again."""
    files = configuration_files(source.location, source.environ)
    before = _read_before.get(files.key)
    if before is not None and before[0] == files.signature:
        return before[1]
    try:
        found = Found(_read(files.repository, source.environ))
    except CoordError as error:
        found = Found(problem=f"[{TABLE}]: {error.message} ({error.hint})")
    _read_before[files.key] = (files.signature, found)
    return found


def _read(repository: Repository | None, environ: Mapping[str, str]) -> Collector | None:
    table = _table(read_consented(repository, environ).tables) if repository is not None else {}
    if TRACES not in table:
        table = _table(read_configuration(user_configuration_file(environ)))
    return read_collector(table)


def read_collector(table: Mapping[str, Any]) -> Collector | None:
    """Return the collector in a table `[telemetry]`."""
    if unknown := set(table) - {TRACES, REMOTE}:
        raise Invalid(f"[{TABLE}] has an unknown {short_repr(min(unknown))}", hint=f"use {TRACES}, {REMOTE}")
    url, remote = table.get(TRACES, ""), table.get(REMOTE, False)
    if type(remote) is not bool:
        raise Invalid(f"{REMOTE} is {short_repr(remote)}", hint="use true or false")
    if not url:
        return None
    if not isinstance(url, str):
        raise Invalid(f"{TRACES} is {short_repr(url)}", hint='use a URL: "http://127.0.0.1:4318"')
    parts = check_url(url)
    if parts.path in ("", "/"):
        parts = parts._replace(path=PATH)
    return Collector(parts, ANYWHERE if remote else THIS_MACHINE)


def _table(tables: Mapping[str, Any]) -> dict[str, Any]:
    found = tables.get(TABLE, {})
    if not isinstance(found, dict):
        raise Invalid(f"{TABLE} is {short_repr(found)}", hint=f"write a table: [{TABLE}]")
    return found
