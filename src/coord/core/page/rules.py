"""What each event changes in the state of the page, as data: the page gets it with every snapshot.

An operation is one of

    put    replace a record                  add    add numbers to fields of a record that exists
    save   change fields, or begin a record  drop   delete a record
    set    change fields of a record that    rekey  move a record to the key `to`, and change its fields
           exists                            push   append the event to what is recent
    note   the same, but a field that the event does not have stays

`fields` maps a field of the record to where its value comes from: a field of the event, `@offset`, `@at`, the
sum `@at+field`, `!field` for its negation, or a constant `=text`. An empty value (0 and false too) means that
the record has no such field. A key is made of fields of the event, joined with a line feed, or with what
`JOINTS` says.

Besides, every event of a session that is known says that it was seen (`seen_ms`) and does not hang, except
those in `SILENT`.
"""

from typing import Any

Operation = dict[str, Any]
TABLES = ("sessions", "locks", "waits", "tasks", "questions", "alerts", "agents", "held")
JOINTS = {"tasks": "/", "agents": "/"}
RECENT = {
    "messages": 300,
    "merges": 200,
    "commits": 200,
    "refusals": 200,
    "ended": 100,
    "decisions": 100,
    "closed_alerts": 100,
    "deadlocks": 50,
    "restored": 50,
    "reactions": 100,
    "settings": 50,
}
"""How many events each list keeps."""
SILENT = {
    **dict.fromkeys(
        (
            *("session.hung", "alert.raised", "alert.closed", "budget.exceeded", "message.undelivered"),
            *("question.answered", "question.withdrawn", "lock.released", "lock.moved", "lock.withdrawn"),
            *("lock.wait_ended", "lock.preemption_asked", "lock.preemption_withdrawn", "task.moved"),
            *("task.released", "task.expired", "task.superseded"),
        ),
        "",
    ),
    "lock.acquired": "waited_ms",
    "message.delivered": "by",
}
"""Events that others or the time cause, so their session was not seen: always, or if they have this field."""
_SESSION, _LOCK, _WAIT, _TASK = (
    ("session",),
    ("session", "resource"),
    ("id",),
    ("project", "task"),
)


def _change(kind: str, table: str, key: tuple[str, ...], *same: str, **others: str) -> Operation:
    """Return an operation; `same` are the fields that the event calls as the record does."""
    return {
        "op": kind,
        "table": table,
        "key": list(key),
        "fields": {**{name: name for name in same}, **others},
    }


def _drop(table: str, key: tuple[str, ...]) -> Operation:
    return {"op": "drop", "table": table, "key": list(key)}


def _push(name: str) -> list[Operation]:
    return [{"op": "push", "list": name, "most": RECENT[name]}]


def _ended(state: str = "", **others: str) -> list[Operation]:
    """Return what the end of a claim changes; without a state the task is open."""
    gone = {"session": "=", "agent": "=", "claimed_ms": "=", "expires_ms": "="}
    return [_change("set", "tasks", _TASK, **{**gone, "state": f"={state}", "ended_ms": "@at", **others})]


RULES: dict[str, list[Operation]] = {
    "session.registered": [
        _change(
            *("put", "sessions", _SESSION, "session", "agent", "role", "tool", "model", "user", "project"),
            *("parent", "person", "state"),
            started_ms="@at",
        )
    ],
    "session.updated": [
        _change("set", "sessions", _SESSION, "agent", "role", "tool", "model", "parent", "state"),
    ],
    "session.hung": [_change("set", "sessions", _SESSION, hung_s="silent_s")],
    "session.ended": [_drop("sessions", _SESSION), *_push("ended")],
    "file.edited": [_change("set", "sessions", _SESSION, file="resource")],
    "usage.reported": [
        _change("add", "sessions", _SESSION, "cost", "estimated", "input", "output"),
        _change("note", "sessions", _SESSION, "context_percent"),
    ],
    "lock.acquired": [
        _change(
            *("put", "locks", _LOCK, "session", "resource", "agent", "mode", "expires_ms", "reason"),
            fence="@offset",
            since_ms="@at",
        ),
        _change("set", "sessions", _SESSION, file="resource"),
    ],
    "lock.renewed": [_change("set", "locks", _LOCK, "expires_ms")],
    "lock.released": [_drop("locks", _LOCK)],
    "lock.moved": [
        {
            **_change("rekey", "locks", _LOCK, "agent", session="successor"),
            "to": ["successor", "resource"],
        },
    ],
    "lock.waiting": [
        _change(
            *("put", "waits", _WAIT, "id", "session", "agent", "resources", "holder", "priority", "since_ms")
        ),
    ],
    "lock.withdrawn": [_drop("waits", _WAIT)],
    "lock.wait_ended": [_drop("waits", _WAIT)],
    "lock.preemption_asked": [
        _change("set", "locks", _LOCK, asked_by="by", asked_reason="reason", asked_until_ms="until_ms"),
    ],
    "lock.preemption_withdrawn": [
        _change("set", "locks", _LOCK, asked_by="=", asked_reason="=", asked_until_ms="="),
    ],
    "lock.denied": _push("refusals"),
    "lock.deadlock": _push("deadlocks"),
    "task.added": [
        _change(
            *("save", "tasks", _TASK, "project", "task", "title", "type", "track", "role", "needs"),
            *("priority", "files", "depends_on", "deadline_ms", "estimate_s", "added_ms"),
        ),
    ],
    "task.split": [_change("set", "tasks", _TASK, "parts")],
    "task.assigned": [_change("set", "tasks", _TASK, assignee="agent", assigned_until_ms="until_ms")],
    "task.claimed": [
        _change(
            *("save", "tasks", _TASK, "project", "task", "generation", "session", "agent"),
            state="=in_progress",
            claimed_ms="@at",
            expires_ms="@at+lease_ms",
            ended_ms="=",
            retry_ms="=",
        ),
    ],
    "task.renewed": [_change("set", "tasks", _TASK, "expires_ms")],
    "task.moved": [_change("set", "tasks", _TASK, "agent", session="successor")],
    "task.released": _ended(reason="note"),
    "task.expired": _ended(reason="=its lease expired"),
    "task.superseded": _ended(),
    "task.completed": _ended("done", work_product="work_product", reason="="),
    "task.merged": _ended("done", generation="generation", work_product="work_product", reason="="),
    "task.skipped": _ended("skipped", reason="reason", retry_ms="="),
    "task.failed": _ended("failed", reason="reason"),
    "task.errored": _ended("errored", reason="reason", retries="retries"),
    "task.retried": [_change("set", "tasks", _TASK, "retries", "retry_ms", state="=")],
    "task.reset": _ended(reason="reason", retries="=", retry_ms="=", work_product="="),
    "task.result_rejected": _push("refusals"),
    "task.refused": _push("refusals"),
    "agent.limited": [
        _change("save", "agents", ("project", "agent"), "project", "agent", limited_until_ms="until_ms"),
    ],
    "work.held": [_change("put", "held", (), "mode", "reason", "by", since_ms="@at")],
    "work.resumed": [_drop("held", ())],
    "agent.enabled": [
        _change("put", "agents", ("project", "agent"), "project", "agent", "reason", disabled="!enabled"),
    ],
    "question.asked": [
        _change(
            *("put", "questions", ("id",), "id", "session", "agent", "kind", "text", "options", "expires_ms"),
            "project",
            asked_ms="@at",
        ),
    ],
    "question.answered": [_drop("questions", ("id",)), *_push("decisions")],
    "question.withdrawn": [_drop("questions", ("id",)), *_push("decisions")],
    "alert.raised": [
        _change(
            *("put", "alerts", ("id",), "id", "rule", "severity", "subject", "text", "session", "agent"),
            *("project", "since_ms"),
        ),
    ],
    "alert.closed": [_drop("alerts", ("id",)), *_push("closed_alerts")],
    "message.sent": _push("messages"),
    "message.sent_to_group": _push("messages"),
    "message.undelivered": _push("messages"),
    "git.merged": _push("merges"),
    "git.merge_refused": _push("merges"),
    "git.committed": _push("commits"),
    "git.commit_refused": _push("refusals"),
    "file.restored": _push("restored"),
    **dict.fromkeys(
        ("settings.changed", "limits.set", "token.created", "token.rotated", "token.revoked"),
        _push("settings"),
    ),
    "reaction.ran": _push("reactions"),
    "reaction.failed": _push("reactions"),
    "reaction.dropped": _push("reactions"),
    "reaction.refused": _push("reactions"),
    "reaction.decided": _push("reactions"),
}
DELIVERED: dict[str, Any] = {**RULES, "@join": JOINTS, "@silent": SILENT}
"""What the page gets with every snapshot."""
