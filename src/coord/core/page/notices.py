"""Which events the page notifies its reader of, as data: it gets the table with every snapshot.

An event has the first of its rows that fits: each field in `when` has one of these values, and `only` holds:

    agent   its session is known, and not that of a person
    busy    its session has a task
    me      it is addressed to the reader

`level` says whom it concerns (`LEVELS`), and a reader chooses how to be notified of each level. Notices of
one `kind` that come together are one: `title` names a single one, `many` several. `to` is what its link leads
to: a view, or the `agent`, `lock` or `task` that the event names. An event in `until` with the same id,
project and task ends it. Its words are its sentence (`sentences.py`).
"""

from typing import Any

import msgspec
from msgspec.structs import replace

LEVELS = ("needs", "trouble", "news")
"""What waits for the reader; what went wrong or holds everybody up; what went well."""
_NEEDS, _TROUBLE, _NEWS = LEVELS


class Notice(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A row of the table; `tone` is a colour and a shape of the page."""

    kind: str
    level: str
    tone: str
    title: str
    many: str
    to: str
    when: dict[str, tuple[Any, ...]] = {}
    only: str = ""
    until: tuple[str, ...] = ()


_FAILED = Notice(
    *("failed", _NEEDS, "bad", "A task failed", "tasks failed", "task"),
    until=("task.retried", "task.skipped", "task.reset"),
)
_ALERT = Notice("alert", _NEEDS, "wait", "Alert", "alerts", "/alerts", until=("alert.closed",))
_ANSWERED = ("question.answered", "question.withdrawn")
_QUESTION = Notice("question", _NEEDS, "ask", "An agent asks", "questions", "/now", until=_ANSWERED)
_LOST = Notice("lost", _TROUBLE, "bad", "A lock was lost", "locks were lost", "lock")
_EMERGENCY = Notice(
    *("emergency", _TROUBLE, "bad", "Emergency", "emergencies", "/messages"), {"kind": ("emergency",)}
)
_FOR_YOU = Notice("mail", _NEEDS, "ask", "A message for you", "messages for you", "/messages", {}, "me")
_HELD = Notice(
    *("held", _TROUBLE, "wait", "All agents are held up", "times agents were held up", "/now"),
    until=("work.resumed",),
)
_DONE = Notice("done", _NEWS, "ok", "A task is done", "tasks are done", "task")

NOTICES: dict[str, tuple[Notice, ...]] = {
    "session.ended": (
        Notice(
            *("crashed", _TROUBLE, "bad", "An agent crashed", "agents crashed", "agent"),
            {"end_reason": ("dead",)},
            "agent",
        ),
    ),
    "session.hung": (Notice("hung", _NEEDS, "bad", "An agent hangs", "agents hang", "agent", {}, "agent"),),
    "question.asked": (
        Notice(
            *("permission", _NEEDS, "ask", "An agent needs permission", "permissions wanted", "/now"),
            {"kind": ("permission",)},
            until=_ANSWERED,
        ),
        _QUESTION,
    ),
    "alert.raised": (
        replace(_ALERT, tone="bad", when={"severity": ("critical",)}),
        replace(_ALERT, when={"severity": ("warning",)}),
        replace(_ALERT, level=_NEWS, tone="idle"),
    ),
    "task.failed": (_FAILED,),
    "task.errored": (_FAILED,),
    "lock.released": (
        replace(_LOST, when={"end_reason": ("stolen", "preempted", "deadlock", "owner_silent")}),
        replace(_LOST, when={"end_reason": ("expired",)}, only="busy"),
    ),
    "lock.deadlock": (
        Notice(
            *("deadlock", _TROUBLE, "bad", "A deadlock", "deadlocks", "/locks"),
            {"resolved": (False,)},
        ),
    ),
    "git.merge_refused": (
        Notice("unmerged", _TROUBLE, "bad", "A merge was refused", "merges were refused", "/merges"),
    ),
    "budget.exceeded": (
        Notice("budget", _TROUBLE, "bad", "A budget is exceeded", "budgets are exceeded", "/numbers"),
    ),
    "work.held": (replace(_HELD, tone="bad", when={"mode": ("stopped",)}), _HELD),
    "message.sent": (_EMERGENCY, _FOR_YOU),
    "message.sent_to_group": (_EMERGENCY, _FOR_YOU),
    "work.resumed": (Notice("resumed", _NEWS, "ok", "All agents go on", "times agents went on", "/now"),),
    "agent.limited": (
        Notice(
            *(
                "limited",
                _NEWS,
                "wait",
                "An agent reached its rate limit",
                "agents reached their rate limits",
            ),
            "/now",
        ),
    ),
    "task.completed": (_DONE,),
    "task.merged": (_DONE,),
    "git.merged": (Notice("merged", _NEWS, "ok", "A branch was merged", "branches were merged", "/merges"),),
}

SILENT = frozenset(
    (
        *("clock.accepted", "settings.changed", "limits.set", "session.registered", "session.updated"),
        *("session.compacted", "file.edited", "file.read", "file.restored", "brief.delivered"),
        *("token.created", "token.revoked", "token.rotated", "token.expired", "usage.reported"),
        *("message.delivered", "message.undelivered", "group.joined", "group.left", "delegation.added"),
        *("delegation.cancelled", "delegation.ended", "question.answered", "question.withdrawn"),
        *("lock.acquired", "lock.renewed", "lock.moved", "lock.denied", "lock.waiting", "lock.withdrawn"),
        *("lock.wait_ended", "lock.preemption_asked", "lock.preemption_withdrawn", "task.claimed"),
        *("task.renewed", "task.moved", "task.released", "task.expired", "task.superseded"),
        *("task.result_rejected", "task.refused", "task.reset", "task.added", "task.split", "task.assigned"),
        *("task.skipped", "task.retried", "task.history_forgotten", "agent.enabled", "git.committed"),
        *("git.commit_refused", "reaction.ran", "reaction.failed", "reaction.dropped", "reaction.refused"),
        *("reaction.decided", "alert.closed", "alert.rule_muted"),
    )
)
"""Events that are everyday work, or whose cause or effect has a notice; the activity shows them."""
