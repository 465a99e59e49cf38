"""The views that SQL users see, as data; each SQL backend turns them into its dialect.

A view shows records as they were written: an expired lease stays there until a command acts on it, because no
rule runs in the store. A query has to compare `expires_at` with the clock. A field that a record omits
has its default. New columns are added at the end, because an existing view can only grow.
"""

from typing import Literal, NamedTuple

Form = Literal["text", "number", "flag", "time", "json", "part", "fence"]
"""The type of a column; `part` is a part of the key, `fence` the fence or else the version of the record."""


class Column(NamedTuple):
    """One column: the field of the record (`a.b` for a nested one) and its default."""

    name: str
    field: str = ""
    form: Form = "text"
    default: str = ""
    of_spec: bool = False

    @property
    def path(self) -> list[str]:
        """The names of the field and its parents."""
        return (self.field or self.name).split(".")


class RecordView(NamedTuple):
    """One row for each record below one of the prefixes.

    `with_spec` joins the task's specification; a record without the `needed` field is left out.
    """

    prefixes: tuple[str, ...]
    columns: tuple[Column, ...]
    with_spec: bool = False
    needed: str = ""


_TASK_KEY = (Column("project", "1", "part"), Column("task_id", "2", "part"))
_CLAIM = (
    Column("generation", form="number", default="0"),
    Column("claim"),
    Column("session"),
    Column("agent"),
    Column("claimed_at", "claimed_ms", "time"),
    Column("expires_at", "expires_ms", "time"),
    Column("ended_at", "ended_ms", "time"),
    Column("end_reason"),
)

RECORD_VIEWS = {
    "coord_sessions": RecordView(
        ("session/",),
        (
            Column("session_id"),
            Column("agent"),
            Column("role"),
            Column("user_name", "user"),
            Column("project"),
            Column("parent"),
            Column("host"),
            Column("pid", "process.pid", "number"),
            Column("cwd"),
            Column("state", default="idle"),
            Column("started_at", "started_ms", "time"),
            Column("heartbeat_at", "beat_ms", "time"),
            Column("ended_at", "ended_ms", "time"),
            Column("end_reason"),
            Column("current_task", form="json"),
        ),
    ),
    "coord_locks": RecordView(
        ("lock/",),
        (
            Column("resource"),
            Column("repository"),
            Column("session", "owner"),
            Column("agent"),
            Column("mode", default="write"),
            Column("profile", default="file"),
            Column("fence", form="fence"),
            Column("acquired_at", "acquired_ms", "time"),
            Column("expires_at", "expires_ms", "time"),
            Column("reason"),
            Column("priority", form="number", default="0"),
            Column("provisional", form="flag"),
        ),
    ),
    "coord_tasks": RecordView(
        ("task/",),
        (
            *_TASK_KEY,
            Column("state", default="ready"),
            *_CLAIM,
            Column("retries", form="number", default="0"),
            Column("description", of_spec=True),
            Column("type", of_spec=True),
            Column("track", of_spec=True),
            Column("role", of_spec=True),
            Column("priority", form="number", default="0", of_spec=True),
            Column("depends_on", form="json", of_spec=True),
            Column("created_at", "created_ms", "time", of_spec=True),
            Column("deadline_at", "deadline_ms", "time", of_spec=True),
        ),
        with_spec=True,
    ),
    "coord_claims": RecordView(
        ("task/", "history/"),
        (
            *_TASK_KEY,
            *_CLAIM,
            Column("work_product"),
            Column("result_bytes", form="number", default="0"),
            Column("note"),
        ),
        needed="generation",
    ),
}

HISTORY_VIEW = "coord_history"
HISTORY_FIELDS = ("event", "session", "agent", "project", "task", "resource")
"""What many events have; the whole event is in `details`."""

ACTIVITY_VIEW = "activity_log"
"""The newest actions of agents, with the columns of the founding document, and the tenant."""
ACTION_COLUMNS = ("event", "only_if", "vals", "type", "actor", "receiver", "receiver_role")
SUMMARY_COLUMNS = ("text1", "field1", "text2", "field2", "text3", "field3")

VIEW_NAMES = (*RECORD_VIEWS, HISTORY_VIEW, ACTIVITY_VIEW)
LOG_VIEWS = (HISTORY_VIEW, ACTIVITY_VIEW)
"""The views that need no records."""


NO_FIELD = "none"
"""The name of a field that no event has."""


def action_rows() -> list[tuple[str, ...]]:
    """Return the table of actions as rows of `ACTION_COLUMNS` and `SUMMARY_COLUMNS`."""
    from coord.core.activity.actions import ACTIONS, SUMMARY_PARTS

    rows = []
    for action in ACTIONS:
        values = "".join(f"|{value}" for value in action.values) + "|" if action.values else ""
        parts = [*action.parts, *[("", "")] * SUMMARY_PARTS][:SUMMARY_PARTS]
        fields = (action.agent, action.to, action.to_role)
        texts = (each for text, field in parts for each in (text, field or NO_FIELD))
        named = (field or NO_FIELD for field in fields)
        rows.append((action.event, action.only_if or NO_FIELD, values, action.type, *named, *texts))
    return rows


def actions_sql() -> str:
    """Return the table of actions as a query that every dialect understands."""
    columns = (*ACTION_COLUMNS, *SUMMARY_COLUMNS)
    rows: list[str] = []
    for row in action_rows():
        quoted = [f"'{text}'" for text in row]
        named = quoted if rows else [f"{text} AS {name}" for text, name in zip(quoted, columns, strict=True)]
        rows.append(f"SELECT {', '.join(named)}")
    return "\nUNION ALL ".join(rows)


class ActivityDialect(NamedTuple):
    """How one dialect writes the parts of the view; `{}` stands for the name of a field, or for an id."""

    text: str
    """The field of an event as text; NULL if it has none."""
    receiver: str
    """The one session that a field of an event names, as text; NULL if there is none, or several."""
    joined: str
    """Joins texts: `a || b`, with `{}` between them."""
    found: str
    """Whether `{0}` contains `{1}`."""

    def field(self, name: str) -> str:
        """Return a field whose name is in a column of the table of actions; "" if the event has none."""
        return f"coalesce({self.text.format(f'a.{name}')}, '')"

    @property
    def matches(self) -> str:
        """Whether an event matches a row of the table of actions."""
        value = self.field("only_if")
        listed = self.found.format("a.vals", self.join("'|'", value, "'|'"))
        return f"(a.only_if = '{NO_FIELD}' OR CASE a.vals WHEN '' THEN {value} <> '' ELSE {listed} END)"

    @property
    def to(self) -> str:
        """The session that an action concerns."""
        return f"coalesce({self.receiver.format('a.receiver')}, '')"

    @property
    def summary(self) -> str:
        """The text of an action; a resource, which is the first field if there is one, without `file:`."""
        first, *others = (self.field(f"field{number}") for number in (1, 2, 3))
        path = f"a.field1 = 'resource' AND substr({first}, 1, 5) = 'file:'"
        shown = (f"CASE WHEN {path} THEN substr({first}, 6) ELSE {first} END", *others)
        texts = ("a.text1", "a.text2", "a.text3")
        return self.join(*(each for pair in zip(texts, shown, strict=True) for each in pair))

    def join(self, *texts: str) -> str:
        """Return several texts as one."""
        return self.joined.format(", ".join(texts)) if "(" in self.joined else self.joined.join(texts)


def activity_sql(query: str, **parts: str) -> str:
    """Return the query of a dialect with its parts and the numbers of the ledger."""
    from coord.core.activity.actions import EVENTS_PER_ENTRY, LEDGER_MAX, OFFSET_BITS

    numbers = {"offsets": 1 << OFFSET_BITS, "events": EVENTS_PER_ENTRY, "most": LEDGER_MAX}
    for name, part in {"actions": actions_sql(), **parts, **numbers}.items():
        query = query.replace(f"{{{name}}}", str(part))
    return query
