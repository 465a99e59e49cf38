"""What people may ask a SQL server about coord: the views, as data; each server writes them in its own words.

A view shows records as they were written: a lease that ran out stands there until somebody notices, since
rules are in no store. Whoever asks compares `expires_at` with the clock. Fields that a record leaves out have
their defaults. New columns come last, since a view that exists can only grow.
"""

from typing import Literal, NamedTuple

Form = Literal["text", "number", "flag", "moment", "json", "part", "fence"]
"""How a value is shown; `part` is a part of the key, `fence` the version of the record unless it has one."""


class Column(NamedTuple):
    """One column: the field of the record that it shows (a dot leads into one), and what stands for none."""

    name: str
    field: str = ""
    form: Form = "text"
    default: str = ""
    of_spec: bool = False

    @property
    def path(self) -> list[str]:
        """The names that lead to the field."""
        return (self.field or self.name).split(".")


class RecordView(NamedTuple):
    """One row for each record below one of the prefixes.

    `with_spec` adds what a task is; a record without the field that is `needed` is left out.
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
    Column("claimed_at", "claimed_ms", "moment"),
    Column("expires_at", "expires_ms", "moment"),
    Column("ended_at", "ended_ms", "moment"),
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
            Column("started_at", "started_ms", "moment"),
            Column("heartbeat_at", "beat_ms", "moment"),
            Column("ended_at", "ended_ms", "moment"),
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
            Column("acquired_at", "acquired_ms", "moment"),
            Column("expires_at", "expires_ms", "moment"),
            Column("reason"),
            Column("priority", form="number", default="0"),
            Column("task"),
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
            Column("created_at", "created_ms", "moment", of_spec=True),
            Column("deadline_at", "deadline_ms", "moment", of_spec=True),
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
