"""The chain of reasons: sessions are followed to the one that could go on.

A remedy is offered with its rank. The first rank wins, and among equals the one that is nearest to the
question: an answer that somebody waits for costs less than a lock that somebody loses.
"""

from functools import cached_property
from typing import NamedTuple

import msgspec

from coord.core import keys
from coord.core.identity import Caller
from coord.core.locks.commands import OTHER_TASK, ListWaits, SessionWait
from coord.core.locks.cycles import list_waits
from coord.core.messages.quoting import quote, quote_name, quote_names
from coord.core.messages.work_mode import words_of
from coord.core.questions.questions import open_questions
from coord.core.questions.schema import Question, QuestionKind
from coord.core.sessions.liveness import evidence_of, liveness, thresholds_of
from coord.core.sessions.queries import find_peer
from coord.core.sessions.schema import Liveness, Session
from coord.core.settings import STOPPED, held_work
from coord.core.tasks.agent_record import UNAVAILABLE_STATES, blocked_reason
from coord.core.tasks.commands import GetSessionClaims
from coord.core.tasks.queries import get_session_claims
from coord.core.tasks.schema import NO_RESTRICTIONS, AgentRecord
from coord.core.transaction import Transaction
from coord.core.why.commands import Reason, Remedy, WhyReply, WhySession

ANSWER, REPEAT, REAP, ENABLE, WIDEN, TAKE, ASK, START = range(8)
"""The ranks of remedies: answer a question, retry a task, end a dead session, enable an agent, raise a limit,
take from a silent session, ask a live one, start another."""
DEPTH_MAX, REASONS_MAX, NAMES_MAX = 12, 200, 3
SILENT = (Liveness.STALE, Liveness.HUNG)


class _Offer(NamedTuple):
    rank: int
    depth: int
    number: int
    remedy: Remedy


class Chain:
    """Reasons in the order of reading, and the remedies that they offer."""

    def __init__(self, tx: Transaction, now: int, project: str = "") -> None:
        """`project`: whose questions and tasks are named; a reader of one project does not read others."""
        self.tx, self.now, self._project = tx, now, project
        self.reasons: list[Reason] = []
        self._offers: list[_Offer] = []
        self._seen: set[tuple[str, str]] = set()

    def add(
        self,
        kind: str,
        text: str,
        depth: int,
        *,
        subject: tuple[str, str] = ("", ""),
        since_ms: int = 0,
        until_ms: int = 0,
    ) -> None:
        """Add a reason, unless there are too many of them already."""
        if len(self.reasons) < REASONS_MAX:
            kinds = {"subject_kind": subject[0], "subject": subject[1]}
            reason = Reason(kind=kind, text=text, depth=depth, since_ms=since_ms, until_ms=until_ms)
            self.reasons.append(msgspec.structs.replace(reason, **kinds))

    def offer(self, rank: int, depth: int, text: str, *command: str) -> None:
        """Offer what frees the reason at a depth."""
        self._offers.append(_Offer(rank, depth, len(self._offers), Remedy(text, list(command))))

    def follow(self, kind: str, name: str, depth: int) -> bool:
        """Whether to explain something: once each, and not too deep."""
        known = (kind, name) in self._seen
        self._seen.add((kind, name))
        return not known and depth <= DEPTH_MAX and len(self.reasons) < REASONS_MAX

    def reply(self, answer: str) -> WhyReply:
        """Return the chain with the best remedy."""
        best = min(self._offers, default=None)
        return WhyReply(self.now, answer, self.reasons, best.remedy if best else None)

    @cached_property
    def waits(self) -> dict[str, list[SessionWait]]:
        """Who waits, by session; a denied request does not wait."""
        found: dict[str, list[SessionWait]] = {}
        for wait in list_waits(self.tx, ListWaits(Caller("", project=self._project)), self.now):
            if not wait.denied:
                found.setdefault(wait.session, []).append(wait)
        return found

    @cached_property
    def questions(self) -> dict[str, list[Question]]:
        """The open questions, by session."""
        found: dict[str, list[Question]] = {}
        for question in open_questions(self.tx, self.now):
            found.setdefault(question.session, []).append(question)
        return found

    def life(self, name: str) -> Liveness:
        """Return how alive a session is."""
        session = self.tx.get(keys.session(name), Session)
        if session is None:
            return Liveness.ENDED
        return liveness(session, self.now, evidence_of(self.tx, session), thresholds_of(self.tx))

    def who(self, name: str, agent: str = "") -> str:
        """Return how to call a session: by its agent if it has one."""
        if not agent:
            session = self.tx.get(keys.session(name), Session)
            agent = session.agent if session is not None else ""
        return quote_name(agent or name)

    def explain_session(self, name: str, depth: int) -> bool:
        """Add why a session does not go on; return whether anything holds it up."""
        if not self.follow("session", name, depth):
            return True
        session = self.tx.get(keys.session(name), Session)
        if session is None or (session.ended_ms and session.end_reason != "dead"):
            self.add("session", f"{quote_name(name)} has ended", depth, subject=("session", name))
            return True
        before = len(self.reasons)
        self._explain_silence(session, depth)
        for question in self.questions.get(name, ()):
            self._explain_question(question, depth)
        for wait in self.waits.get(name, ()):
            self._explain_wait(wait, depth)
        return len(self.reasons) > before

    def _explain_silence(self, session: Session, depth: int) -> None:
        name, who, life = session.session_id, self.who(session.session_id), self.life(session.session_id)
        subject = ("session", name)
        if life is Liveness.DEAD:
            self.add(
                "session", f"the process of {who} is gone", depth, subject=subject, since_ms=session.beat_ms
            )
            self.offer(REAP, depth, f"End {who}: its locks and tasks become free", "dereg", name)
        elif life in SILENT:
            self.add(
                "session", f"{who} gives no sign of life", depth, subject=subject, since_ms=session.beat_ms
            )
            self.offer(TAKE, depth, f"Look at {who}, or take over from it", "register", "--replaces", name)

    def _explain_question(self, question: Question, depth: int) -> None:
        who, subject = self.who(question.session, question.agent), ("question", question.id)
        words = "asks for permission" if question.kind is QuestionKind.PERMISSION else "asks a person"
        times = {"since_ms": question.asked_ms, "until_ms": question.expires_ms}
        own = self._project in ("", question.project)
        text = quote(question.text) if own else f"{question.id} in another project"
        self.add("question", f"{who} {words}: {text}", depth, subject=subject, **times)
        if question.kind is not QuestionKind.ATTENTION:
            self.offer(ANSWER, depth, f"Answer {who}", "decide", question.id, "ANSWER")

    def _explain_wait(self, wait: SessionWait, depth: int) -> None:
        wants = _names(wait.wants) or "a task"
        ahead = f", position {wait.position} in the wait queue" if wait.position > 1 else ""
        text = f"{self.who(wait.session, wait.agent)} waits for {wants}{ahead}"
        subject = ("lock", wait.wants[0]) if wait.kind == "lock" and wait.wants else ("session", wait.session)
        self.add("wait", text, depth, subject=subject, since_ms=wait.since_ms)
        if wait.kind == "lock" and not (self.tx.get(keys.session(wait.session), Session) or Session()).person:
            self.explain_stop(depth + 1, claims=False)
        for blocker in dict.fromkeys(each.session for each in wait.blockers if each.session):
            by = [each for each in wait.blockers if each.session == blocker]
            self._explain_blocker(blocker, by[0].by, [each.what for each in by], depth + 1)

    def _explain_blocker(self, name: str, by: str, what: list[str], depth: int) -> None:
        text = f"{self.who(name)} {_BLOCKS.get(by, 'blocks')} {_names(what)}"
        if ("session", name) in self._seen:
            self.add("wait", f"{text}: see above", depth, subject=("session", name))
            return
        self.add("lock" if by == "lock" else "wait", text, depth, subject=("session", name))
        if not self.explain_session(name, depth + 1) and by == "lock" and what[0] != OTHER_TASK:
            self.offer_to_ask(what[0], self.who(name), depth)

    def explain_stop(self, depth: int, *, claims: bool) -> bool:
        """Add who holds up all agents: a stop keeps locks from them, and any of the modes claims."""
        found = held_work(self.tx)
        if found is None or not (claims or found.mode == STOPPED):
            return False
        self.add("limit", words_of(found), depth, since_ms=found.since_ms)
        self.offer(ENABLE, depth, "Let the agents go on", "resume")
        return True

    def offer_to_ask(self, resource: str, who: str, depth: int) -> None:
        """Offer to ask a live holder for its lock."""
        words = ("preempt", resource, "--priority", "9", "--reason", "REASON")
        self.offer(ASK, depth, f"Ask {who} to release {quote_name(resource.removeprefix('file:'))}", *words)


def _names(texts: list[str]) -> str:
    """Return the names of resources or tasks; those of another project have none."""
    if OTHER_TASK in texts:
        return OTHER_TASK
    return quote_names([each.removeprefix("file:") for each in texts], NAMES_MAX)


_BLOCKS = {"lock": "holds", "queue": "waits ahead for", "claim": "works on", "track": "has a place on"}


def why_session(tx: Transaction, command: WhySession, now: int) -> WhyReply:
    """Say why a session does not go on."""
    name, project = find_peer(tx, command.session), command.project
    chain = Chain(tx, now, command.project)
    session = tx.get(keys.session(name), Session) or Session()
    who = chain.who(name)
    if chain.explain_session(name, 0):
        return chain.reply(f"{who} is held up" if not session.ended_ms else f"{who} has ended")
    claims = get_session_claims(tx, GetSessionClaims("", name, project), now)
    for claim in claims:
        text = f"{who} works on {quote_name(claim.task_id)}, generation {claim.generation.generation}"
        chain.add("claim", text, 0, subject=("task", claim.task_id), until_ms=claim.expires_ms)
    agent = session.agent or name
    record = tx.get(keys.agent(session.project, agent), AgentRecord) or NO_RESTRICTIONS
    why, until_ms = blocked_reason(record, now)
    if session.state in UNAVAILABLE_STATES:
        why = f"its state is {session.state}"
    if why:
        text = f"{who} gets no task: {quote_name(why) if until_ms else why}"
        chain.add("agent", text, 0, subject=("agent", agent), until_ms=until_ms)
        chain.offer(ENABLE, 0, f"Let {who} take tasks again", "agent", "enable", agent)
    if not claims and not why and not session.person and chain.explain_stop(0, claims=True):
        return chain.reply(f"{who} gets no task")
    if claims or why:
        return chain.reply(f"{who} {'works' if claims else 'gets no task'}")
    chain.add("free", f"nothing holds {who} up: it has no task", 0, subject=("session", name))
    return chain.reply(f"{who} is idle")
