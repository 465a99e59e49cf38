"""The `[metrics]` table of `coord.toml`: the prefix of the names of the founding documents (CFL-24)."""

import re
from collections.abc import Mapping
from typing import Any

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.followers.follower import LogSource
from coord.followers.metrics.families import PREFIX
from coord.host.consent import read_consented

_PREFIX = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,62}", re.ASCII)


def prefix_of(source: LogSource) -> str:
    """Return the prefix that the repository of a log has chosen, or the usual one."""
    return read_prefix(read_consented(source.location.repository, source.environ).tables)


def read_prefix(tables: Mapping[str, Any]) -> str:
    """Return the prefix in a configuration."""
    table = tables.get("metrics", {})
    if not isinstance(table, dict) or set(table) - {"prefix"}:
        raise Invalid("[metrics] in coord.toml is not understood", hint='write prefix = "shop" below it')
    return check_prefix(table.get("prefix", PREFIX))


def check_prefix(prefix: object) -> str:
    """Return a prefix with which every name is a name for Prometheus."""
    if isinstance(prefix, str) and _PREFIX.fullmatch(prefix):
        return prefix
    raise Invalid(
        f"{short_repr(str(prefix))} is no prefix of metrics", hint="use letters, digits and _, a letter first"
    )
