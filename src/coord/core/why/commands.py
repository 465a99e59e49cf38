"""Questions about what holds something up, and their reply: the API."""

from coord.core.commands import Command, Reply


class Reason(Reply, frozen=True, kw_only=True):
    """A link of the chain; one at a greater `depth` explains the nearest one above it.

    `kind` is what holds it up: task, claim, lock, wait, question, session, agent, track, assignment, retry,
    limit or free. `subject` names what to look at next: a task, a resource, a session, a question or an
    agent, as `subject_kind` says. `since_ms` and `until_ms` are 0 if nobody knows.
    """

    kind: str
    text: str
    depth: int = 0
    subject_kind: str = ""
    subject: str = ""
    since_ms: int = 0
    until_ms: int = 0


class Remedy(Reply, frozen=True):
    """What frees it: a sentence, and the words of the command; a word in capitals is to be filled in."""

    text: str
    command: list[str]


class WhyReply(Reply, frozen=True):
    """The answer in one sentence, the chain of reasons, and the one action that frees it, if there is one."""

    now_ms: int
    answer: str
    reasons: list[Reason]
    remedy: Remedy | None = None


class WhyTask(Command, frozen=True):
    """Say why a task is not done yet: what it waits for, and what frees it."""

    rule = "coord.core.why.tasks:why_task"
    reply = WhyReply
    reads_only = True
    project: str
    task: str


class WhyLock(Command, frozen=True):
    """Say why a resource is locked: its holders, what these wait for, and what frees it."""

    rule = "coord.core.why.locks:why_lock"
    reply = WhyReply
    reads_only = True
    repository: str
    resource: str
    project: str = ""
    """Whose questions are quoted, and whose tasks are named: those of this project, or of all."""


class WhySession(Command, frozen=True):
    """Say why a session does not go on: what it waits for, and what frees it."""

    rule = "coord.core.why.chain:why_session"
    reply = WhyReply
    reads_only = True
    session: str
    project: str = ""
    """Whose questions are quoted, and whose tasks are named: those of this project, or of all."""
