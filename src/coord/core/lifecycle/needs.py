"""What needs a person: questions, sessions that hang, tasks that failed, agents without work, alerts.

Each source is a function in `SOURCES`, named by its path, so that a domain above this one can add its own:
`(tx, command, now) -> needs`. The most urgent come first, and the oldest among equals.
"""

from collections.abc import Iterator

from coord.core import keys
from coord.core.dispatch import TARGETS
from coord.core.lifecycle.commands import Need, NeedsReply, NeedsYou
from coord.core.locks.locks import ended_by_time, locks_of
from coord.core.messages.quoting import quote, quote_name
from coord.core.plans.commands import GetStuck
from coord.core.plans.plan import get_stuck
from coord.core.questions.questions import open_questions
from coord.core.questions.schema import Question, QuestionKind
from coord.core.sessions.liveness import evidence_of, liveness, thresholds_of
from coord.core.sessions.queries import every_session
from coord.core.sessions.schema import Liveness, Session
from coord.core.tasks.agent_record import blocked_reason
from coord.core.tasks.schema import AgentRecord, Task
from coord.core.transaction import PAGE, Transaction
from coord.core.usage.schema import OverBudget

SOURCES = (
    "coord.core.lifecycle.needs:waiting_questions",
    "coord.core.lifecycle.needs:blocking_sessions",
    "coord.core.lifecycle.needs:stuck_tasks",
    "coord.core.lifecycle.needs:blocked_agents",
    "coord.core.lifecycle.needs:spent_budgets",
    "coord.core.alerts.queries:alert_needs",
)
"""Where needs come from: `module:function`, imported on first use."""
ASKED, SILENT, STUCK, IDLE = range(4)
"""How urgent a need is: somebody waits for an answer, others may wait, work lies idle, an agent does."""
SHOWN_MAX = 500


def needs_you(tx: Transaction, command: NeedsYou, now: int) -> NeedsReply:
    """Return what needs a person, the most urgent first, and how much there is."""
    found: list[Need] = [need for source in SOURCES for need in TARGETS[source](tx, command, now)]
    found.sort(key=lambda need: (need.urgency, need.since_ms or now, need.id))
    counts: dict[str, int] = {}
    for need in found:
        counts[need.kind] = counts.get(need.kind, 0) + 1
    asked = [need.since_ms for need in found if need.kind == "question"]
    return NeedsReply(now, found[: min(command.limit, SHOWN_MAX)], counts, min(asked, default=0))


def waiting_questions(tx: Transaction, command: NeedsYou, now: int) -> Iterator[Need]:
    """Yield the open questions."""
    for question in open_questions(tx, now, command.project):
        yield Need(
            kind="question",
            id=question.id,
            what=question.kind.value,
            text=question.text,
            urgency=ASKED,
            since_ms=question.asked_ms,
            session_id=question.session,
            agent=question.agent,
            project=question.project,
            options=list(question.options),
            next=_how_to_answer(question, now),
        )


def _how_to_answer(question: Question, now: int) -> str:
    if question.kind is QuestionKind.PERMISSION and now >= question.heard_until_ms:
        return "answer in its terminal"
    if question.kind is QuestionKind.ATTENTION:
        return "go to its terminal"
    return f"coord decide {question.id} ANSWER"


def blocking_sessions(tx: Transaction, command: NeedsYou, now: int) -> Iterator[Need]:
    """Yield the sessions without a sign of life that keep locks or tasks from others."""
    thresholds = thresholds_of(tx)
    silent = [
        each
        for each in every_session(tx)
        if not each.person
        and command.project in ("", each.project)
        and (not each.ended_ms or each.end_reason == "dead")
        and now - each.beat_ms >= thresholds.suspect_ms
    ]
    tx.evidence(*(each.process for each in silent if each.process is not None and not each.ended_ms))
    for session in silent:
        evidence = None if session.ended_ms else evidence_of(tx, session)
        life = liveness(session, now, evidence, thresholds)
        kept = _keeps(tx, session, now) if life in (Liveness.HUNG, Liveness.DEAD) else ""
        if kept:
            yield Need(
                kind="session",
                id=session.session_id,
                what=life.value,
                text=f"{quote_name(session.agent or session.session_id)} has {kept}",
                urgency=SILENT,
                since_ms=session.beat_ms,
                session_id=session.session_id,
                agent=session.agent,
                project=session.project,
                next=f"look at it; coord register --replaces {session.session_id} takes over",
            )


def _keeps(tx: Transaction, session: Session, now: int) -> str:
    """Return what a session keeps from others: its locks and its tasks."""
    name = session.session_id
    locks = sum(ended_by_time(lock_at.lock, now) is None for lock_at in locks_of(tx, name))
    tasks = len(tx.scan(keys.by_session_prefix(name), limit=PAGE))
    numbers = [(locks, "lock"), (tasks, "task")]
    return " and ".join(f"{n} {noun}{'s' if n > 1 else ''}" for n, noun in numbers if n)


def stuck_tasks(tx: Transaction, command: NeedsYou, now: int) -> Iterator[Need]:
    """Yield the tasks that failed permanently or too often."""
    names: dict[str, None] = {}
    if command.project:
        names[command.project] = None
    else:
        for found in tx.scan(keys.stuck_prefix(), limit=SHOWN_MAX):
            names[keys.parts(found.key)[1]] = None
    for project in names:
        for task in get_stuck(tx, GetStuck(project, limit=SHOWN_MAX), now).tasks:
            record = tx.get(keys.task(project, task.task_id), Task)
            yield Need(
                kind="task",
                id=task.task_id,
                what=f"task {task.state}",
                text=quote(task.note or task.description) if task.note or task.description else "",
                urgency=STUCK,
                since_ms=record.ended_ms if record is not None else 0,
                session_id=task.session_id,
                agent=task.agent,
                project=project,
                next=f"coord task retry {task.task_id}, or coord task skip {task.task_id}",
            )


def blocked_agents(tx: Transaction, command: NeedsYou, now: int) -> Iterator[Need]:
    """Yield the agents that get no task: disabled, at a rate limit, or after several failures."""
    prefix = keys.agent_prefix(command.project) if command.project else keys.AGENT_PREFIX
    for page in tx.pages(prefix):
        for entry in page:
            record = tx.get(entry.key, AgentRecord)
            why, until_ms = blocked_reason(record, now) if record is not None else ("", 0)
            if record is None or not why:
                continue
            _, project, name = keys.parts(entry.key)
            yield Need(
                kind="agent",
                id=name,
                what="agent limited" if until_ms else "agent disabled",
                text=quote(why),
                urgency=IDLE,
                since_ms=record.failed_ms,
                agent=name,
                project=project,
                next=f"coord agent enable {name}",
            )


def spent_budgets(tx: Transaction, command: NeedsYou, _now: int) -> Iterator[Need]:
    """Yield the tasks and crews that are over their budget."""
    for page in tx.pages(keys.OVER_BUDGET_PREFIX):
        for entry in page:
            over = tx.get(entry.key, OverBudget)
            if over is not None and command.project in ("", over.project):
                yield Need(
                    kind="budget",
                    id=over.name,
                    what=f"{over.scope} over budget",
                    text=over.text,
                    urgency=STUCK,
                    since_ms=over.since_ms,
                    session_id=over.session,
                    agent=over.agent,
                    project=over.project,
                    next="coord cost --by task shows more; raise [budget] in coord.toml, or stop it",
                )
