"""The rights for a Postgres store: of the role that installs it, and of the role that uses it."""

from typing import Any

from coord.stores.sql_views import LOG_VIEWS, VIEW_NAMES

OWNER, AGENT = "coord_owner", "coord_agent"


def granted(address: Any) -> list[str]:
    """Return the statements that grant these rights, in order, with comments.

    The user of the url installs. A comment contains no name, because a name may contain a line break.
    """
    sql = address.sql
    schema, agent = _quoted(sql.schema), _quoted(AGENT)
    owner = _quoted(address.libpq.get("user", OWNER))
    database = _quoted(address.libpq.get("dbname", "coord"))
    tables: dict[str, list[str]] = {}
    for table, rights in sql.rights.items():
        tables.setdefault(rights, []).append(f"{schema}.{table}")
    views = VIEW_NAMES if "record" in sql.rights else LOG_VIEWS
    trimmed = [table for table in ("record", "entry") if table in sql.rights]
    return [
        (
            "-- As an administrator: one role installs, the other works. Give both a password.\n"
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
            "-- Only if the role may trim logs:\n"
            f"GRANT DELETE ON {', '.join(f'{schema}.{table}' for table in trimmed)} TO {agent};"
        ),
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
