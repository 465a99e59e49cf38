"""The rights that a Postgres store takes: of the role that installs it, and of one that works with it."""

import re
from typing import Any

from coord.stores.record_views import VIEW_NAMES

OWNER, AGENT = "coord_owner", "coord_agent"

# No name stands in a comment, for it might hold the end of a line.
GRANTS = """
-- As an administrator, who also gives both a password: one role installs, the other works.
CREATE ROLE {owner} LOGIN;
CREATE ROLE {agent} LOGIN;
GRANT CONNECT, CREATE ON DATABASE {database} TO {owner};
GRANT CONNECT ON DATABASE {database} TO {agent};
-- Then coord install, as the first role, and then, as the first role in that database:
GRANT USAGE ON SCHEMA {schema} TO {agent};
GRANT SELECT ON {schema}.meta TO {agent};
GRANT SELECT, INSERT, UPDATE ON {schema}.log, {schema}.record TO {agent};
GRANT SELECT, INSERT ON {schema}.entry TO {agent};
GRANT SELECT ON {views} TO {agent};
-- Only for who may forget the past of a log:
GRANT DELETE ON {schema}.record, {schema}.entry TO {agent};
"""


def granted(address: Any) -> list[str]:
    """Return the statements that give these rights, in their order; comments stand before what they explain.

    Who installs is the user of the url.
    """
    schema = _quoted(address.sql.schema)
    names = {
        "{schema}": schema,
        "{database}": _quoted(address.libpq.get("dbname", "coord")),
        "{owner}": _quoted(address.libpq.get("user", OWNER)),
        "{agent}": _quoted(AGENT),
        "{views}": ", ".join(f"{schema}.{view}" for view in VIEW_NAMES),
    }
    return [_named(f"{statement.strip()};", names) for statement in GRANTS.split(";")[:-1]]


def _named(statement: str, names: dict[str, str]) -> str:
    return re.sub("{[a-z]+}", lambda found: names[found[0]], statement)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
