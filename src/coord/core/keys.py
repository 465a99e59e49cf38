"""Build every key and every index key.

Ids contain no slash (see `ids.py`), so the parts of a key never run together.
`docs/reference/keyspace.md` says what each record holds and which commands write it.
"""

from functools import lru_cache

from coord.core.identity import Process


def task(project: str, task_id: str) -> str:
    """The task with its latest claim."""
    return f"task/{project}/{task_id}"


TASK_PREFIX = "task/"


def task_prefix(project: str) -> str:
    return f"task/{project}/"


def by_session(session: str, project: str, task_id: str) -> str:
    """Index: the active claims of a session."""
    return f"by-session/{session}/{project}/{task_id}"


BY_SESSION_PREFIX = "by-session/"


def by_session_prefix(session: str) -> str:
    return f"by-session/{session}/"


def lost(session: str, project: str, task_id: str) -> str:
    """The latest claim of a task that a session lost."""
    return f"lost/{session}/{project}/{task_id}"


def lost_prefix(session: str) -> str:
    return f"lost/{session}/"


def expired(expires_ms: int, project: str, task_id: str) -> str:
    """Index: expired claims of tasks that nobody has claimed since."""
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
    """The data of a large result; the record of the result refers to it."""
    return f"blob/{digest}"


def chunk(digest: str, number: int) -> str:
    """One chunk of the data of a large result."""
    return f"blob/{digest}/{number:06d}"


def rejected(project: str, task_id: str, generation: int, session: str, reason: str) -> str:
    """A refused claim, renewal, release or submission, by `operation:reason`."""
    return f"rejected/{project}/{task_id}/{generation:08d}/{session}/{reason}"


def rejected_prefix(project: str, task_id: str) -> str:
    return f"rejected/{project}/{task_id}/"


def spec(project: str, task_id: str) -> str:
    """The description of a task."""
    return f"spec/{project}/{task_id}"


def spec_prefix(project: str) -> str:
    return f"spec/{project}/"


def dependent(project: str, task_id: str, dependent_id: str) -> str:
    """Index: the tasks that depend on one."""
    return f"dependent/{project}/{task_id}/{dependent_id}"


def dependent_prefix(project: str, task_id: str) -> str:
    return f"dependent/{project}/{task_id}/"


def unfinished(project: str, task_id: str) -> str:
    """Index: the tasks that were added and are neither done nor skipped."""
    return f"unfinished/{project}/{task_id}"


def unfinished_prefix(project: str) -> str:
    return f"unfinished/{project}/"


def working(project: str, task_id: str) -> str:
    """Index: the tasks in work, and those that wait for their next try."""
    return f"working/{project}/{task_id}"


def working_prefix(project: str) -> str:
    return f"working/{project}/"


def pending_update(project: str, task_id: str) -> str:
    """The dependents of a changed task whose readiness is not computed yet."""
    return f"pending-update/{project}/{task_id}"


PENDING_UPDATE_PREFIX = "pending-update/"


def pending_update_prefix(project: str) -> str:
    return f"pending-update/{project}/"


def stuck(project: str, task_id: str) -> str:
    """Index: the tasks that failed or were tried too often, until somebody acts."""
    return f"stuck/{project}/{task_id}"


def stuck_prefix(project: str = "") -> str:
    return f"stuck/{project}/" if project else "stuck/"


def queue_class(project: str, name: str) -> str:
    """A class of tasks that the same agents may take."""
    return f"class/{project}/{name}"


def queue_class_prefix(project: str) -> str:
    return f"class/{project}/"


def track(project: str, name: str) -> str:
    """The agents that work on a track."""
    return f"track/{project}/{name}"


def agent(project: str, name: str) -> str:
    """The reasons to give an agent no work."""
    return f"agent/{project}/{name}"


AGENT_PREFIX = "agent/"


def agent_prefix(project: str) -> str:
    return f"agent/{project}/"


def track_record(project: str, agent: str, session: str) -> str:
    """The successes and failures of an agent in one session."""
    return f"record/{project}/{agent}/{session}"


def track_record_prefix(project: str) -> str:
    return f"record/{project}/"


def ready(project: str, queue_class: str, rank_ms: int) -> str:
    """Index key: sorts the ready tasks of a class by rank."""
    return f"ready/{project}/{queue_class}/{rank_ms:015d}"


def ready_prefix(project: str, queue_class: str = "") -> str:
    return f"ready/{project}/{queue_class}/" if queue_class else f"ready/{project}/"


def cursor(name: str) -> str:
    """How far a follower has read the log."""
    return f"cursor/{name}"


CURSOR_PREFIX = "cursor/"


def cursor_base(name: str) -> str:
    """The state of a follower before the first entry that is left of a trimmed log, or later."""
    return f"cursor_base/{name}"


LIMITS = "limits"
SETTINGS = "settings"
HELD_WORK = "work_mode/all"
"""Who pauses, drains or stops all agents."""
COUNT_CLAIMS = "count/claims"
COUNT_SESSIONS = "count/sessions"


def count_session(session: str) -> str:
    """The number of active claims of a session."""
    return f"count/session/{session}"


def count_agents(project: str) -> str:
    """The sessions of agents in a project, and how many it may have."""
    return f"count/agents/{project}"


def done(command_id: str) -> str:
    """The reply to a command with an id."""
    return f"done/{command_id}"


DUE_PREFIX = "due/"
DUE_MS_MAX = 10**13 - 1
"""The year 2286. With one more digit, a later deadline would sort before an earlier one."""


@lru_cache(maxsize=64)
def due(deadline_ms: int) -> str:
    """Index key: sorts records by deadline."""
    return f"due/{min(deadline_ms, DUE_MS_MAX):013d}"


def due_ms(index_key: str) -> int:
    """Return the deadline in an index key that `due` built."""
    return int(index_key[len(DUE_PREFIX) :])


def parts(key: str) -> list[str]:
    """A key's parts; the first names its kind."""
    return key.split("/")


SESSION_PREFIX = "session/"


def session(session_id: str) -> str:
    """A session."""
    return f"session/{session_id}"


def crew(project: str) -> str:
    """How often sessions of a project began or ended."""
    return f"crew/{project}"


def process(of: Process) -> str:
    """Index: the sessions that live in a process."""
    return f"process/{of.machine}/{of.boot}/{of.namespace}/{of.pid}-{of.start}"


@lru_cache(maxsize=64)
def processes(process_ancestors: tuple[Process, ...]) -> tuple[str, ...]:
    """Return the keys of several processes; all commands of a caller have the same ancestors."""
    return tuple(process(each) for each in process_ancestors)


LOCK_PREFIX = "lock/"


def locks(space: str) -> str:
    """The prefix of the locks of a space; `locks/resources.py` adds the rest of the key."""
    return f"lock/{space}"


def guard(space: str) -> str:
    """The guard of a space: every change of locks there writes it."""
    return f"guard/{space}"


def session_lock(session_id: str, lock_key: str) -> str:
    """Index: the locks of a session, by a digest, because the key of a lock may be long."""
    return f"held/{session_id}/{digest(lock_key)}"


def session_lock_prefix(session_id: str) -> str:
    return f"held/{session_id}/"


def ended_lock(space: str, fence: int, lock_key: str) -> str:
    """A lock that ended: its holder, its time and its end."""
    return f"ended/{space}/{fence:016d}/{digest(lock_key)}"


def ended_lock_prefix(space: str = "", fence: int = 0) -> str:
    """The prefix of all ended locks, of those of a space, or of those that one commit granted there."""
    if fence:
        return f"ended/{space}/{fence:016d}/"
    return f"ended/{space}/" if space else "ended/"


def space_of_ended_lock(key: str) -> str:
    """Return the space in the key of an ended lock."""
    return key.removeprefix("ended/").rsplit("/", 2)[0]


def lost_hook_lock(session_id: str, lock_key: str) -> str:
    """A lock that a hook took and its session lost."""
    return f"lost-hook/{session_id}/{digest(lock_key)}"


WAIT_PREFIX = "wait/"


def wait(rank_ms: int, wait_id: str) -> str:
    """A request in the wait queue, by rank."""
    return f"wait/{rank_ms:015d}/{wait_id}"


def wait_id(key: str) -> str:
    """Return the id of a request in the wait queue, which stays while its rank may change."""
    return key.rpartition("/")[2]


def denied_request(session_id: str, resources: str) -> str:
    """A request that was denied and did not wait."""
    return f"denied/{session_id}/{digest(resources)}"


DENIED_PREFIX = "denied/"


WAITS_PREFIX = "waits/"


def waits(session_id: str) -> str:
    """What a session waits for, and which of its sub-agents wait."""
    return f"waits/{session_id}"


def deadlock(cycle: str) -> str:
    """A cycle with a denied request, whose victim was warned."""
    return f"deadlock/{digest(cycle)}"


def inbox(session_id: str, number: int) -> str:
    """A message that waits for its recipient."""
    return f"inbox/{session_id}/{number:012d}"


def inbox_prefix(session_id: str) -> str:
    return f"inbox/{session_id}/"


def mailbox(session_id: str) -> str:
    """The message counters of a session: the next number, the last broadcast read, the send rate."""
    return f"mailbox/{session_id}"


def group(name: str) -> str:
    """The sessions in a group."""
    return f"group/{name}"


GROUP_PREFIX = "group/"

DELEGATION_PREFIX = "delegation/"


def delegation(session_id: str, delegation_id: str) -> str:
    """Work that one session asked another one to do."""
    return f"delegation/{session_id}/{delegation_id}"


def delegation_prefix(session_id: str) -> str:
    return f"delegation/{session_id}/"


BROADCAST_HEAD = "broadcasts"


def broadcast(number: int) -> str:
    """A message to several sessions."""
    return f"broadcast/{number:012d}"


BROADCAST_PREFIX = "broadcast/"


def token(token_id: str) -> str:
    """A token that admits requests over the network."""
    return f"token/{token_id}"


TOKEN_PREFIX = "token/"  # noqa: S105 - the beginning of a key


QUESTIONS = "questions"


def question(number: int) -> str:
    """A question to a person, open or closed."""
    return f"question/{number:08d}"


QUESTION_PREFIX = "question/"


def asking(session_id: str, number: int) -> str:
    """Index: the questions of a session that are not closed."""
    return f"asking/{session_id}/{number:08d}"


ASKING_PREFIX = "asking/"


def asking_prefix(session_id: str) -> str:
    return f"asking/{session_id}/"


def usage_day(day: int, session_id: str) -> str:
    """What a session used on a day."""
    return f"usage/{day:06d}/{session_id}"


USAGE_PREFIX = "usage/"
USAGE_HEAD = "usage-head"


def usage_state(session_id: str) -> str:
    """What a session reported so far, so that nothing counts twice."""
    return f"usage-state/{session_id}"


def spent(scope: str, project: str, name: str) -> str:
    """What a task or a crew used in all."""
    return f"spent/{scope}/{project}/{name}"


def over_budget(scope: str, project: str, name: str) -> str:
    """A task or a crew over its budget."""
    return f"over-budget/{scope}/{project}/{name}"


OVER_BUDGET_PREFIX = "over-budget/"
ALERTS = "alerts"
ALERT_WATCHES = "alert-watches"
OVERWRITES = "overwrites"


def alert(number: int) -> str:
    """An alert, open or closed."""
    return f"alert/{number:08d}"


ALERT_PREFIX = "alert/"


def digest(text: str) -> str:
    """Return a short name for a long text."""
    return sha256(text)[:32]


def sha256(text: str) -> str:
    """Return the hash of a text, 64 hexadecimal digits."""
    # hashlib imports OpenSSL; this small module of the standard library does not (`random` uses it too).
    try:
        from _sha256 import sha256 as hash_of  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256 as hash_of

    name: str = hash_of(text.encode()).hexdigest()
    return name
