"""Every key and line, built in one place. Ids hold no slash (see `ids.py`), so parts never run together."""

from functools import lru_cache

from coord.core.identity import Process


def task(project: str, task_id: str) -> str:
    """The task with its latest claim."""
    return f"task/{project}/{task_id}"


TASK_PREFIX = "task/"


def by_session(session: str, project: str, task_id: str) -> str:
    """Index: the active claims of a session."""
    return f"by-session/{session}/{project}/{task_id}"


BY_SESSION_PREFIX = "by-session/"


def by_session_prefix(session: str) -> str:
    return f"by-session/{session}/"


def lost(session: str, project: str, task_id: str) -> str:
    """A claim that a session lost, of each task the latest."""
    return f"lost/{session}/{project}/{task_id}"


def lost_prefix(session: str) -> str:
    return f"lost/{session}/"


def expired(expires_ms: int, project: str, task_id: str) -> str:
    """Index: claims whose lease ran out and that nobody took since."""
    return f"expired/{expires_ms:013d}/{project}/{task_id}"


EXPIRED_PREFIX = "expired/"


def history(project: str, task_id: str, generation: int) -> str:
    """An earlier generation of a task, as it ended."""
    return f"history/{project}/{task_id}/{generation:08d}"


def history_prefix(project: str, task_id: str) -> str:
    return f"history/{project}/{task_id}/"


def result(project: str, task_id: str, generation: int) -> str:
    """The accepted result of a generation."""
    return f"result/{project}/{task_id}/{generation:08d}"


def blob(digest: str) -> str:
    """Large data, apart from the record that refers to it."""
    return f"blob/{digest}"


def chunk(digest: str, number: int) -> str:
    """A piece of large data."""
    return f"blob/{digest}/{number:06d}"


def rejected(project: str, task_id: str, generation: int, session: str) -> str:
    """A submission that was turned away."""
    return f"rejected/{project}/{task_id}/{generation:08d}/{session}"


def rejected_prefix(project: str, task_id: str) -> str:
    return f"rejected/{project}/{task_id}/"


def spec(project: str, task_id: str) -> str:
    """What a task is, as it was added."""
    return f"spec/{project}/{task_id}"


def spec_prefix(project: str) -> str:
    return f"spec/{project}/"


def dependent(project: str, task_id: str, follower: str) -> str:
    """Index: the tasks that depend on one."""
    return f"dependent/{project}/{task_id}/{follower}"


def dependent_prefix(project: str, task_id: str) -> str:
    return f"dependent/{project}/{task_id}/"


def unfinished(project: str, task_id: str) -> str:
    """Index: the tasks that were added and are neither done nor skipped."""
    return f"unfinished/{project}/{task_id}"


def unfinished_prefix(project: str) -> str:
    return f"unfinished/{project}/"


def working(project: str, task_id: str) -> str:
    """Index: the tasks that somebody works on, or that are tried again after a pause."""
    return f"working/{project}/{task_id}"


def working_prefix(project: str) -> str:
    return f"working/{project}/"


def pending_update(project: str, task_id: str) -> str:
    """What depends on a task that has changed, and is yet to be computed anew."""
    return f"pending-update/{project}/{task_id}"


PENDING_UPDATE_PREFIX = "pending-update/"


def pending_update_prefix(project: str) -> str:
    return f"pending-update/{project}/"


def stuck(project: str, task_id: str) -> str:
    """Index: the tasks that failed or were tried too often, until somebody looks."""
    return f"stuck/{project}/{task_id}"


def stuck_prefix(project: str = "") -> str:
    return f"stuck/{project}/" if project else "stuck/"


def queue_class(project: str, name: str) -> str:
    """A class of tasks that may be taken by the same agents."""
    return f"class/{project}/{name}"


def queue_class_prefix(project: str) -> str:
    return f"class/{project}/"


def track(project: str, name: str) -> str:
    """Who works on a track."""
    return f"track/{project}/{name}"


def agent(project: str, name: str) -> str:
    """What stands against giving an agent work."""
    return f"agent/{project}/{name}"


def agent_prefix(project: str) -> str:
    return f"agent/{project}/"


def track_record(project: str, agent: str, session: str) -> str:
    """How an agent did in a session."""
    return f"record/{project}/{agent}/{session}"


def track_record_prefix(project: str) -> str:
    return f"record/{project}/"


def ready(project: str, queue_class: str, rank_ms: int) -> str:
    """The line of tasks that are ready, by class, in the order of their turn."""
    return f"ready/{project}/{queue_class}/{rank_ms:015d}"


def ready_prefix(project: str, queue_class: str) -> str:
    return f"ready/{project}/{queue_class}/"


LIMITS = "limits"
COUNT_CLAIMS = "count/claims"
COUNT_SESSIONS = "count/sessions"


def count_session(session: str) -> str:
    """How many active claims a session has."""
    return f"count/session/{session}"


def done(command_id: str) -> str:
    """The reply that a command id was given."""
    return f"done/{command_id}"


DUE_PREFIX = "due/"
DUE_MS_MAX = 10**13 - 1
"""The year 2286; with one more digit a later deadline would stand before an earlier one."""


@lru_cache(maxsize=64)
def due(deadline_ms: int) -> str:
    """The line of everything that waits for a deadline, in the order of time."""
    return f"due/{min(deadline_ms, DUE_MS_MAX):013d}"


def due_ms(index_key: str) -> int:
    """The deadline in a line made by `due`."""
    return int(index_key[len(DUE_PREFIX) :])


def parts(key: str) -> list[str]:
    """A key's parts; the first names its kind."""
    return key.split("/")


SESSION_PREFIX = "session/"


def session(session_id: str) -> str:
    """A session."""
    return f"session/{session_id}"


def process(of: Process) -> str:
    """Index: the sessions that live in a process."""
    return f"process/{of.machine}/{of.boot}/{of.namespace}/{of.pid}-{of.start}"


@lru_cache(maxsize=64)
def processes(process_ancestors: tuple[Process, ...]) -> tuple[str, ...]:
    """The keys of several processes: those of a caller are the same in each of its commands."""
    return tuple(process(each) for each in process_ancestors)


LOCK_PREFIX = "lock/"


def locks(space: str) -> str:
    """Where the holds of a space stand; `resource.py` says where below it."""
    return f"lock/{space}"


def guard(space: str) -> str:
    """What every change of locks in a space puts."""
    return f"guard/{space}"


def session_lock(session_id: str, lock_key: str) -> str:
    """Index: the locks of a session (its name is a digest, since the key of a lock may be long)."""
    return f"held/{session_id}/{digest(lock_key)}"


def session_lock_prefix(session_id: str) -> str:
    return f"held/{session_id}/"


def ended_lock(space: str, fence: int, lock_key: str) -> str:
    """A lock that ended: who had it, from when to when, and how it ended."""
    return f"ended/{space}/{fence:016d}/{digest(lock_key)}"


def ended_lock_prefix(space: str = "", fence: int = 0) -> str:
    """All locks that ended, those of a space, or those that one commit had granted there."""
    if fence:
        return f"ended/{space}/{fence:016d}/"
    return f"ended/{space}/" if space else "ended/"


def lost_hook_lock(session_id: str, lock_key: str) -> str:
    """A lock that a hook took and its session lost."""
    return f"lost-hook/{session_id}/{digest(lock_key)}"


WAIT_PREFIX = "wait/"


def wait(rank_ms: int, wait_id: str) -> str:
    """A request for locks that waits, in the order of its turn."""
    return f"wait/{rank_ms:015d}/{wait_id}"


def denied_request(session_id: str, places: str) -> str:
    """A request that was refused and did not wait."""
    return f"denied/{session_id}/{digest(places)}"


DENIED_PREFIX = "denied/"


def waits(session_id: str) -> str:
    """What a session waits or bids for now."""
    return f"waits/{session_id}"


def deadlock(cycle: str) -> str:
    """A cycle with bids in it, whose victim was told."""
    return f"deadlock/{digest(cycle)}"


def inbox(session_id: str, number: int) -> str:
    """A message that waits for its recipient."""
    return f"inbox/{session_id}/{number:012d}"


def inbox_prefix(session_id: str) -> str:
    return f"inbox/{session_id}/"


def mailbox(session_id: str) -> str:
    """A session's counters of messages: the next number, its cursor over broadcasts, its rate of sending."""
    return f"mailbox/{session_id}"


BROADCAST_HEAD = "broadcasts"


def broadcast(number: int) -> str:
    """A message to everybody who was there."""
    return f"broadcast/{number:012d}"


BROADCAST_PREFIX = "broadcast/"


def digest(text: str) -> str:
    """Return a short name for a long text."""
    # hashlib brings all of OpenSSL along; this lean module of Python's own is what `random` prefers, too.
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256

    name: str = sha256(text.encode()).hexdigest()[:32]
    return name
