"""What the log tells: one struct per event, in the past tense, and the founding documents' names for them."""

import msgspec


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="event"):
    """The base of every event; the entry around it has the offset and the time."""


class TaskEvent(Event, frozen=True):
    """Something happened to a claim."""

    project: str
    task: str
    generation: int
    session: str
    agent: str


class TaskClaimed(TaskEvent, frozen=True, tag="task.claimed"):
    """A claim was granted."""

    lease_ms: int
    previous_generation: int = 0
    previous_state: str = ""
    reason: str = ""


class TaskRenewed(TaskEvent, frozen=True, tag="task.renewed"):
    """A lease was renewed."""

    expires_ms: int


class TaskReleased(TaskEvent, frozen=True, tag="task.released"):
    """A claim ended without a result: given back, failed or reset."""

    reason: str
    note: str = ""


class TaskExpired(TaskEvent, frozen=True, tag="task.expired"):
    """A lease ran out."""

    expired_ms: int


class TaskSuperseded(TaskEvent, frozen=True, tag="task.superseded"):
    """A claim was taken over by force."""

    by_session: str
    reason: str


class TaskCompleted(TaskEvent, frozen=True, tag="task.completed"):
    """A result was accepted."""

    work_product: str
    result_bytes: int


class ResultRejected(TaskEvent, frozen=True, tag="task.result_rejected"):
    """A result was turned away."""

    reason: str
    current_generation: int
    work_lost: bool
    result_bytes: int


class TaskReset(Event, frozen=True, tag="task.reset"):
    """A task was opened again."""

    project: str
    task: str
    generation: int
    reason: str


class TaskAdded(Event, frozen=True, tag="task.added"):
    """A task was added, or what it is was changed."""

    project: str
    task: str
    state: str
    changed: tuple[str, ...] = ()


class TaskSplit(Event, frozen=True, tag="task.split"):
    """A task was split into parts; each is a task of its own."""

    project: str
    task: str
    parts: int


class TaskMerged(Event, frozen=True, tag="task.merged"):
    """All parts of a task are done or skipped, so it is done: its result is made of theirs."""

    project: str
    task: str
    generation: int
    parts: int
    skipped: int
    work_product: str
    result_bytes: int


class TaskSkipped(Event, frozen=True, tag="task.skipped"):
    """A task was passed over; those that depend on it may go on."""

    project: str
    task: str
    reason: str


class TaskFailed(Event, frozen=True, tag="task.failed"):
    """A task failed for good, until somebody retries it."""

    project: str
    task: str
    generation: int
    reason: str


class TaskRetried(Event, frozen=True, tag="task.retried"):
    """A task goes back to the queue, perhaps after a pause."""

    project: str
    task: str
    generation: int
    retries: int
    retry_ms: int = 0


class TaskErrored(Event, frozen=True, tag="task.errored"):
    """A task was tried too often: a person has to look."""

    project: str
    task: str
    generation: int
    retries: int
    reason: str


class HistoryForgotten(Event, frozen=True, tag="task.history_forgotten"):
    """An earlier generation passed its retention."""

    project: str
    task: str
    generation: int


class LimitsSet(Event, frozen=True, tag="limits.set"):
    """A tenant's limits were changed."""

    limits: dict[str, int]
    by: str = ""


class ClockAccepted(Event, frozen=True, tag="clock.accepted"):
    """Somebody confirmed the clock although the log was ahead of it."""

    newest_ms: int


class SessionRegistered(Event, frozen=True, tag="session.registered"):
    """A session began; `process_ancestors` says whether it was seen below a known process."""

    session: str
    agent: str
    parent: str = ""
    process_ancestors: str = ""
    on_the_way: bool = False


class SessionUpdated(Event, frozen=True, tag="session.updated"):
    """A session changed what it says of itself."""

    session: str
    state: str


class SessionEnded(Event, frozen=True, tag="session.ended"):
    """A session deregistered, was replaced, or was declared dead (then with the evidence)."""

    session: str
    agent: str
    end_reason: str
    evidence: str = ""
    successor: str = ""


class LockAcquired(Event, frozen=True, tag="lock.acquired"):
    """A lock was granted; the offset of this entry is its fence."""

    resource: str
    session: str
    agent: str
    mode: str
    expires_ms: int
    reason: str = ""
    waited_ms: int = 0


class LockRenewed(Event, frozen=True, tag="lock.renewed"):
    """The lease of a lock began anew."""

    resource: str
    session: str
    fence: int
    expires_ms: int


class LockEnded(Event, frozen=True, tag="lock.released"):
    """A lock came free: given back, run out, stolen, preempted, or its owner is gone."""

    resource: str
    session: str
    agent: str
    fence: int
    end_reason: str
    until_ms: int
    held_s: float
    by: str = ""
    note: str = ""


class LockMoved(Event, frozen=True, tag="lock.moved"):
    """A lock went to the session that replaces its owner."""

    resource: str
    session: str
    successor: str


class LockDenied(Event, frozen=True, tag="lock.denied"):
    """A request was refused; told once a minute per session and resources."""

    resources: tuple[str, ...]
    session: str
    agent: str
    holder: str


class LockWaiting(Event, frozen=True, tag="lock.waiting"):
    """A request got in line."""

    resources: tuple[str, ...]
    session: str
    agent: str
    holder: str
    priority: int


class LockWithdrawn(Event, frozen=True, tag="lock.withdrawn"):
    """A request left the line without a lock."""

    resources: tuple[str, ...]
    session: str
    reason: str


class PreemptionAsked(Event, frozen=True, tag="lock.preemption_asked"):
    """A holder was asked to give way."""

    resource: str
    session: str
    by: str
    reason: str
    until_ms: int


class DeadlockFound(Event, frozen=True, tag="lock.deadlock"):
    """Sessions waited for each other in a circle; `resolved`: the victim's locks were revoked."""

    cycle: tuple[str, ...]
    victim: str
    resolved: bool
    since_ms: int


class CommitMade(Event, frozen=True, tag="git.committed"):
    """A session committed files that it held, and the commit was verified; `files` are the first of them."""

    session: str
    agent: str
    commit: str
    branch: str
    subject: str
    files: tuple[str, ...]
    file_count: int
    fences: tuple[int, ...]


class BranchMerged(Event, frozen=True, tag="git.merged"):
    """A branch became part of another one: `commit` is what that one is since."""

    session: str
    agent: str
    branch: str
    into: str
    tip: str
    commit: str
    files: tuple[str, ...] = ()


class MergeRefused(Event, frozen=True, tag="git.merge_refused"):
    """A branch was not merged; `verdict` says why, `parties` who changed the same."""

    session: str
    agent: str
    branch: str
    into: str
    tip: str
    verdict: str
    files: tuple[str, ...] = ()
    parties: tuple[str, ...] = ()
    detail: str = ""


class MessageSent(Event, frozen=True, tag="message.sent"):
    """A message went to one session, or to all that were there."""

    id: str
    session: str
    to: tuple[str, ...]
    kind: str
    subject: str


class MessageDelivered(Event, frozen=True, tag="message.delivered"):
    """A message reached its recipient for good."""

    id: str
    session: str


class MessageLost(Event, frozen=True, tag="message.undelivered"):
    """A message will not be read any more: its time was up, or its recipient has gone."""

    id: str
    session: str
    sender: str
    reason: str


class AgentLimited(Event, frozen=True, tag="agent.limited"):
    """An agent reached a rate limit: until then it is given nothing."""

    project: str
    agent: str
    until_ms: int
    note: str = ""


class AgentEnabled(Event, frozen=True, tag="agent.enabled"):
    """An agent was taken out of a project's pool by hand, or back into it."""

    project: str
    agent: str
    enabled: bool
    reason: str = ""


SEED_NAMES = {
    "task.claimed": "CLAIM_ACQUIRED",
    "task.renewed": "LEASE_RENEWED",
    "task.released": "CLAIM_RELEASED",
    "task.expired": "CLAIM_EXPIRED",
    "task.superseded": "CLAIM_LOST",
    "task.completed": "RESULT_SUBMITTED",
    "task.result_rejected": "RESULT_REJECTED",
    "lock.acquired": "lock_acquired",
    "lock.released": "lock_released",
    "lock.denied": "lock_denied",
    "message.sent": "message_sent",
}
"""The names that the founding documents use for the same (CFL-23)."""


def event_names(base: type[Event] = Event) -> frozenset[str]:
    """Return the name of every event; bases have no name of their own."""
    own = {str(kind.__struct_config__.tag) for kind in base.__subclasses__()}
    below = [event_names(kind) for kind in base.__subclasses__()]
    return frozenset(name for name in own.union(*below) if "." in name)
