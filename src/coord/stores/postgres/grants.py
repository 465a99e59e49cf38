"""The rights that a Postgres store takes: of the role that installs it, and of one that works with it."""

from typing import Any

from coord.stores.sql_views import HISTORY_VIEW, VIEW_NAMES

OWNER, AGENT = "coord_owner", "coord_agent"


def granted(address: Any) -> list[str]:
    """Return the statements that give these rights, in their order; comments stand before what they explain.

    Who installs is the user of the url. No name stands in a comment, for it might hold the end of a line.
    """
    sql = address.sql
    schema, agent = _quoted(sql.schema), _quoted(AGENT)
    owner = _quoted(address.libpq.get("user", OWNER))
    database = _quoted(address.libpq.get("dbname", "coord"))
    tables: dict[str, list[str]] = {}
    for table, rights in sql.rights.items():
        tables.setdefault(rights, []).append(f"{schema}.{table}")
    views = VIEW_NAMES if "record" in sql.rights else (HISTORY_VIEW,)
    trimmed = [table for table in ("record", "entry") if table in sql.rights]
    return [
        (
            "-- As an administrator, who also gives both a password: one role installs, the other works.\n"
            f"CREATE ROLE {owner} LOGIN;"
        ),
        f"CREATE ROLE {agent} LOGIN;",
        f"GRANT CONNECT, CREATE ON DATABASE {database} TO {owner};",
        f"GRANT CONNECT ON DATABASE {database} TO {agent};",
        (
            "-- Then coord install, as the first role, and then, as the first role in that database:\n"
            f"GRANT USAGE ON SCHEMA {schema} TO {agent};"
        ),
        *(f"GRANT {rights} ON {', '.join(names)} TO {agent};" for rights, names in tables.items()),
        f"GRANT SELECT ON {', '.join(f'{schema}.{view}' for view in views)} TO {agent};",
        (
            "-- Only for who may forget the past of a log:\n"
            f"GRANT DELETE ON {', '.join(f'{schema}.{table}' for table in trimmed)} TO {agent};"
        ),
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
