"""The conditions that raise alerts, and how each alert ends.

    stuck_agent              every signal of a running agent is silent
        true                 it ended, lost its work, or was silent for longer than a model call may take
        false                it went on by itself
    context_pressure         the context of a session is nearly full
        true                 the context shrank, or the session ended
    duplicate_file_edit      a session is denied a file, or waits for one, that another session has locked;
                             or it overwrote one, which was restored
        true                 nobody wants the file any more, or it was overwritten
        false                all who wanted it ended
    idle_agents_ready_tasks  agents are idle while tasks are ready
        true                 one of them works, or no task is ready any more
        false                all of them ended
    stale_decision           a question waits for a person
        true                 it was answered, it expired, or its session ended
        false                its session withdrew it

A person can close every alert, and correct each outcome (`close.py`).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from coord.core import keys
from coord.core.alerts.schema import Alert, AlertOutcome, Severity, Watch
from coord.core.alerts.stuck import BUSY_RUNS, INTERVAL_MS, Running, is_stuck
from coord.core.git_log import Overwrites
from coord.core.locks.commands import ListWaits
from coord.core.locks.cycles import list_waits
from coord.core.messages.quoting import quote_name
from coord.core.questions.questions import number_of, open_questions
from coord.core.questions.schema import Question, QuestionKind, QuestionState
from coord.core.sessions.schema import Session
from coord.core.settings import Settings
from coord.core.transaction import Transaction
from coord.core.usage.counting import context_percent
from coord.core.usage.schema import UsageState

UNWANTED_MS = 5 * INTERVAL_MS
"""How long nobody may ask for a file before the alert ends: a denied agent tries again."""
NAMED_MAX = 5
CONTEXT_FIELD = "context_percent"
"""The field of a session's own report that says how full its context is."""
CONTEXT_SLACK = 5
"""By how many percent a context has to shrink: the number is an estimate."""


class Condition(NamedTuple):
    """Something that a rule found; `rule` and `subject` name it."""

    rule: str
    subject: str
    severity: Severity
    text: str
    session: str = ""
    agent: str = ""
    project: str = ""
    agents: tuple[str, ...] = ()
    beat_ms: int = 0


class World(NamedTuple):
    """What the rules look at: agents that have not ended, silent ones with their watches, and settings."""

    agents: list[Running]
    watches: dict[str, Watch]
    settings: Settings

    def find(self, name: str) -> Running | None:
        """Return an agent that has not ended."""
        return next((each for each in self.agents if each.session.session_id == name), None)


class End(NamedTuple):
    """How an alert ended by itself."""

    outcome: AlertOutcome
    note: str


class Rule(NamedTuple):
    """A rule: what it says at most, its conditions, and whether an alert without its condition has ended."""

    severity: Severity
    find: Callable[[Transaction, World, int], Iterator[Condition]]
    end: Callable[[Transaction, Alert, World, int], End | None]


def _right(note: str) -> End:
    return End(AlertOutcome.TRUE, note)


def _wrong(note: str) -> End:
    return End(AlertOutcome.FALSE, note)


def _name(session: Session) -> str:
    return _who(session.session_id, session.agent)


def _who(session_id: str, agent: str) -> str:
    """Return who is meant; all agents of one tool may have one name."""
    if agent in ("", session_id):
        return quote_name(session_id)
    return f"{quote_name(agent)} (session {quote_name(session_id)})"


def _minutes(ms: int) -> str:
    return f"{ms // 60_000} min"


def _find_stuck(_tx: Transaction, world: World, now: int) -> Iterator[Condition]:
    for agent in world.agents:
        session = agent.session
        watch = world.watches.get(session.session_id)
        if is_stuck(agent, watch, world.settings, now):
            seen = "its processes are quiet" if watch is not None and watch.sample is not None else ""
            unseen = "its processes cannot be seen"
            calls = "its last tool call has not ended, " if session.calls else ""
            text = f"{_name(session)} has shown no activity for {_minutes(now - session.beat_ms)}: "
            yield Condition(
                rule="stuck_agent",
                subject=session.session_id,
                severity=Severity.WARNING,
                text=f"{text}{calls}{seen or unseen}",
                session=session.session_id,
                agent=session.agent,
                project=session.project,
                agents=(session.session_id,),
                beat_ms=session.beat_ms,
            )


def _end_stuck(tx: Transaction, alert: Alert, world: World, now: int) -> End | None:
    session = tx.get(keys.session(alert.session), Session)
    if session is None or session.ended_ms:
        return _right("it ended without a further sign of life")
    if session.beat_ms > alert.beat_ms:
        silent_ms = session.beat_ms - alert.beat_ms
        long = silent_ms >= 1000 * world.settings.alert_prompting_seconds
        return (_right if long else _wrong)(f"it went on after {_minutes(silent_ms)}")
    agent, watch = world.find(alert.session), world.watches.get(alert.session)
    if agent is None or agent.state == "crashed":
        return _right("its process is dead")
    if not agent.runs:
        return _right("it has lost its work, without a sign of life")
    if watch is not None and watch.busy_runs >= BUSY_RUNS:
        long = now - alert.beat_ms >= 1000 * world.settings.alert_prompting_seconds
        return None if long else _wrong("its processes went on")
    return None


def _context(tx: Transaction, session: Session) -> float | None:
    """Return how full the context of a session is, as its tool counted it or as it reported itself."""
    counted = context_percent(tx.get(keys.usage_state(session.session_id), UsageState))
    if counted >= 0:
        return counted
    value = session.blob.get(CONTEXT_FIELD)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _find_full_contexts(tx: Transaction, world: World, _now: int) -> Iterator[Condition]:
    warning, critical = world.settings.alert_context_percent, world.settings.alert_context_critical_percent
    tx.prefetch(*(keys.usage_state(each.session.session_id) for each in world.agents))
    for agent in world.agents if warning else ():
        session, percent = agent.session, _context(tx, agent.session)
        if percent is not None and percent > warning:
            yield Condition(
                rule="context_pressure",
                subject=session.session_id,
                severity=Severity.CRITICAL if percent > critical else Severity.WARNING,
                text=f"the context of {_name(session)} is {percent:.0f} % full",
                session=session.session_id,
                agent=session.agent,
                project=session.project,
                agents=(session.session_id,),
            )


def _end_full_context(tx: Transaction, alert: Alert, world: World, _now: int) -> End | None:
    agent = world.find(alert.session)
    if agent is None:
        return _right("its session ended")
    percent = _context(tx, agent.session)
    if percent is not None and percent > world.settings.alert_context_percent - CONTEXT_SLACK:
        return None
    return _right("its context began again" if percent is None else f"its context is {percent:.0f} % full")


def _find_duplicates(tx: Transaction, world: World, now: int) -> Iterator[Condition]:
    yield from _find_wanted(tx, world, now)
    yield from _find_overwrites(tx, world, now)


def _find_wanted(tx: Transaction, world: World, now: int) -> Iterator[Condition]:
    patience_ms = 1000 * world.settings.alert_duplicate_seconds
    wanted: dict[str, dict[str, None]] = {}
    for wait in list_waits(tx, ListWaits(), now) if patience_ms else ():
        if wait.denied or now - wait.since_ms >= patience_ms:
            for blocker in wait.blockers:
                if blocker.by == "lock" and blocker.what.startswith("file:"):
                    wanted.setdefault(blocker.what, {blocker.session: None})[wait.session] = None
    for resource, sessions in wanted.items():
        found = [tx.get(keys.session(name), Session) for name in sessions]
        named = zip(sessions, found, strict=True)
        names = [_who(each, "" if session is None else session.agent) for each, session in named]
        holder = found[0]
        others = ", ".join(names[1 : NAMED_MAX + 1])
        yield Condition(
            rule="duplicate_file_edit",
            subject=resource,
            severity=Severity.WARNING,
            text=f"{quote_name(resource.removeprefix('file:'))} is locked by {names[0]}; wanted by {others}",
            session=next(iter(sessions)),
            agent=holder.agent if holder is not None else "",
            project=holder.project if holder is not None else "",
            agents=tuple(sessions),
        )


def _find_overwrites(tx: Transaction, world: World, now: int) -> Iterator[Condition]:
    """Find files that a session overwrote although others hold them: edited twice, and undone."""
    overwrites = tx.get(keys.OVERWRITES, Overwrites) if world.settings.alert_duplicate_seconds else None
    for path, found in overwrites.files.items() if overwrites is not None else ():
        if now - found.at_ms < UNWANTED_MS:
            by = tx.get(keys.session(found.session), Session)
            holders = ", ".join(map(quote_name, found.holders[:NAMED_MAX]))
            who = _who(found.session, "" if by is None else by.agent)
            yield Condition(
                rule="duplicate_file_edit",
                subject=f"file:{path}",
                severity=Severity.WARNING,
                text=f"{quote_name(path)} of {holders} was overwritten by {who}, and restored",
                session=found.session,
                agent=by.agent if by is not None else "",
                project=by.project if by is not None else "",
                agents=(*found.holders, found.session),
            )


def _end_duplicate(tx: Transaction, alert: Alert, _world: World, now: int) -> End | None:
    if now - alert.seen_ms < UNWANTED_MS:
        return None
    overwrites = tx.get(keys.OVERWRITES, Overwrites)
    if overwrites is not None and alert.subject.removeprefix("file:") in overwrites.files:
        return _right("it was overwritten, and not again")
    wanted = [tx.get(keys.session(name), Session) for name in alert.agents[1:]]
    if all(each is None or each.ended_ms for each in wanted):
        return _wrong("the sessions that wanted it ended")
    return _right("nobody waits for it any more")


def _idle(world: World, now: int) -> dict[str, list[Session]]:
    """Return the agents that are idle for long enough and not for too long, by project."""
    from_ms = 1000 * world.settings.alert_idle_seconds
    until_ms = from_ms + 1000 * world.settings.alert_prompting_seconds
    found: dict[str, list[Session]] = {}
    for agent in world.agents:
        session = agent.session
        silent_ms = now - session.beat_ms
        waits = agent.state != "idle" or session.calls or session.questions
        if session.project and not waits and from_ms <= silent_ms < until_ms:
            found.setdefault(session.project, []).append(session)
    return found


def _find_idle(tx: Transaction, world: World, now: int) -> Iterator[Condition]:
    for project, idle in _idle(world, now).items() if world.settings.alert_idle_seconds else ():
        if _has_ready(tx, project):
            names = ", ".join(map(_name, idle[:NAMED_MAX]))
            yield Condition(
                rule="idle_agents_ready_tasks",
                subject=project,
                severity=Severity.INFO,
                text=f"{names} {'is' if len(idle) == 1 else 'are'} idle while tasks of {project} are ready",
                project=project,
                agents=tuple(each.session_id for each in idle),
            )


def _has_ready(tx: Transaction, project: str) -> bool:
    return bool(tx.scan(keys.ready_prefix(project), by="index_key", limit=1))


def _end_idle(tx: Transaction, alert: Alert, world: World, _now: int) -> End | None:
    if not _has_ready(tx, alert.subject):
        return _right("no task is ready any more")
    if all(world.find(name) is None for name in alert.agents):
        return _wrong("the idle agents ended")
    return _right("an agent went on")


def _find_stale(tx: Transaction, world: World, now: int) -> Iterator[Condition]:
    patience_ms = 1000 * world.settings.alert_decision_seconds
    for question in open_questions(tx, now) if patience_ms else ():
        if question.kind is not QuestionKind.ATTENTION and now - question.asked_ms >= patience_ms:
            who = _who(question.session, question.agent)
            yield Condition(
                rule="stale_decision",
                subject=question.id,
                severity=Severity.WARNING,
                text=f"{question.id} of {who} waits for an answer for {_minutes(now - question.asked_ms)}",
                session=question.session,
                agent=question.agent,
                project=question.project,
                agents=(question.session,),
            )


def _end_stale(tx: Transaction, alert: Alert, _world: World, _now: int) -> End | None:
    question = tx.get(keys.question(number_of(alert.subject)), Question)
    if question is None or question.state is not QuestionState.WITHDRAWN:
        return _right("it was answered" if question and question.answer else "nobody answered in time")
    if question.withdrawn_by == question.session:
        return _wrong("its session withdrew it")
    return _right(question.end_reason)


RULES = {
    "stuck_agent": Rule(Severity.WARNING, _find_stuck, _end_stuck),
    "context_pressure": Rule(Severity.CRITICAL, _find_full_contexts, _end_full_context),
    "duplicate_file_edit": Rule(Severity.WARNING, _find_duplicates, _end_duplicate),
    "idle_agents_ready_tasks": Rule(Severity.INFO, _find_idle, _end_idle),
    "stale_decision": Rule(Severity.WARNING, _find_stale, _end_stale),
}
"""Every rule by its name."""
