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

VIEW_NAMES = (*RECORD_VIEWS, HISTORY_VIEW)
