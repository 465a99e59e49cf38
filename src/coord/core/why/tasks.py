"""Why a task is not done yet: dependencies, its claim, files and track, and the agents that may take it."""

from coord.core import keys
from coord.core.errors import NotFound
from coord.core.ids import part_ids
from coord.core.locks.locks import LockAt, require_lock
from coord.core.locks.schema import LockRequest, Mode
from coord.core.locks.table import blocking_locks, load_table
from coord.core.messages.quoting import quote, quote_name
from coord.core.plans.assignment import kept_for_another
from coord.core.plans.idle import tasks_in_progress
from coord.core.routing.commands import AgentInfo, GetAgents
from coord.core.routing.pool import get_agents
from coord.core.sessions.schema import Liveness, Session
from coord.core.settings import AGENTS_MAX, ProjectAgents
from coord.core.tasks.agent_record import EFFICIENCY_MIN, UNAVAILABLE_STATES
from coord.core.tasks.dependencies import FINISHED
from coord.core.tasks.planned import track_full_reason
from coord.core.tasks.schema import ACTIVE, EXPIRED, STUCK_STATES, UNCLAIMED, Spec, Task, Track, as_of
from coord.core.tasks.types import TaskStatus
from coord.core.transaction import Transaction
from coord.core.why.chain import ENABLE, REPEAT, SILENT, START, TAKE, WIDEN, Chain
from coord.core.why.commands import WhyReply, WhyTask

AGENTS_SHOWN = 20
WORKING = (Liveness.LIVE, Liveness.SUSPECT)


def why_task(tx: Transaction, command: WhyTask, now: int) -> WhyReply:
    """Say why a task is not done yet."""
    project, name = command.project, command.task
    if tx.get(keys.task(project, name), Task) is None and tx.get(keys.spec(project, name), Spec) is None:
        raise NotFound(f"project {project} has no task {name}", hint="coord task list prints them")
    chain = Chain(tx, now, project)
    return chain.reply(f"{quote_name(name)} {_explain(chain, project, name, 0)}")


def _explain(chain: Chain, project: str, name: str, depth: int) -> str:
    """Add why a task is not done; return its state in words."""
    tx, now = chain.tx, chain.now
    task = as_of(tx.get(keys.task(project, name), Task) or UNCLAIMED, now)
    spec = tx.get(keys.spec(project, name), Spec) or Spec()
    if task.state in FINISHED:
        return f"is {task.state.value.lower()}"
    if not chain.follow("task", name, depth):
        return "is explained above"
    if task.state in STUCK_STATES:
        return _explain_failure(chain, name, task, depth)
    if task.claim is ACTIVE:
        return _explain_claim(chain, name, task, depth)
    if task.claim is EXPIRED:
        text = f"the lease of {chain.who(task.session, task.agent)} expired"
        chain.add("claim", text, depth, subject=("session", task.session), since_ms=task.expires_ms)
    if _explain_dependencies(chain, project, name, spec, depth):
        return "waits for other tasks"
    if task.retry_ms > now:
        text = f"it is tried again after failure {task.retries}: {quote(task.note)}"
        chain.add("retry", text, depth, until_ms=task.retry_ms)
        return "waits for its next attempt"
    return _explain_ready(chain, project, name, spec, depth)


def _explain_failure(chain: Chain, name: str, task: Task, depth: int) -> str:
    times = f" after {task.retries} attempts" if task.retries else ""
    note = f": {quote(task.note)}" if task.note else ""
    word = task.state.value.lower()
    text = f"{quote_name(name)} {word}{times}{note}"
    chain.add("task", text, depth, subject=("task", name), since_ms=task.ended_ms)
    chain.offer(REPEAT, depth, f"Retry {quote_name(name)}; skip it if nobody needs it", "task", "retry", name)
    return word


def _explain_claim(chain: Chain, name: str, task: Task, depth: int) -> str:
    who = chain.who(task.session, task.agent)
    text = f"{who} works on {quote_name(name)}, generation {task.generation}"
    times = {"since_ms": task.claimed_ms, "until_ms": task.expires_ms}
    chain.add("claim", text, depth, subject=("session", task.session), **times)
    chain.explain_session(task.session, depth + 1)
    if chain.life(task.session) in SILENT:
        words = ("task", "reset", name, "--reason", "REASON")
        chain.offer(TAKE, depth - 1, f"Take {quote_name(name)} from {who}, which is silent", *words)
    return "is in progress"


def _explain_dependencies(chain: Chain, project: str, name: str, spec: Spec, depth: int) -> bool:
    """Add the tasks that a task waits for; return whether there is one."""
    parts = part_ids(name, spec.parts) if spec.parts else ()
    names = [*spec.depends_on, *parts]
    chain.tx.prefetch(*(key(project, each) for each in names for key in (keys.task, keys.spec)))
    waits = False
    for other in names:
        task = as_of(chain.tx.get(keys.task(project, other), Task) or UNCLAIMED, chain.now)
        if task.state in FINISHED:
            continue
        waits = True
        word = "waiting" if task.state is TaskStatus.PENDING else task.state.value.lower().replace("_", " ")
        noun = "its part" if other in parts else "it depends on"
        text = f"{noun} {quote_name(other)}, which is {word}"
        chain.add("task", text, depth, subject=("task", other))
        _explain(chain, project, other, depth + 1)
    return waits


def _explain_ready(chain: Chain, project: str, name: str, spec: Spec, depth: int) -> str:
    """Add why nobody has taken a task that is ready."""
    if chain.explain_stop(depth, claims=True):
        return "is ready, but no agent gets a task"
    held = _explain_files(chain, name, spec, depth)
    full = _explain_track(chain, project, spec, depth)
    if held or full:
        return "is ready, but its files are locked" if held else "is ready, but its track is full"
    kept = kept_for_another(chain.tx, spec, Session(), chain.now)
    if kept:
        subject = ("agent", spec.assignee)
        text = f"it is kept for {quote_name(spec.assignee)}"
        chain.add("assignment", text, depth, subject=subject, until_ms=spec.assigned_until_ms)
    free = _explain_agents(chain, project, name, spec, depth)
    return "is ready: an agent may take it now" if free else "is ready, but no agent can take it"


def _explain_files(chain: Chain, name: str, spec: Spec, depth: int) -> bool:
    """Add the locks of others on the files of a task; return whether there is one."""
    if not spec.files:
        return False
    request = LockRequest(
        repository=spec.repository, resources=tuple(spec.files), mode=Mode.WRITE, exact=spec.exact
    )
    table = load_table(chain.tx, request, chain.now)
    found = blocking_locks(table, chain.now)
    for lock_at in found:
        explain_holder(chain, lock_at, depth, f"for {quote_name(name)}")
    return bool(found)


def explain_holder(chain: Chain, lock_at: LockAt, depth: int, purpose: str = "") -> None:
    """Add who holds a lock, what that session waits for, and what frees the lock."""
    lock = require_lock(chain.tx, lock_at.key)  # with its fence
    who, resource = chain.who(lock.owner, lock.agent), quote_name(lock.resource.removeprefix("file:"))
    note = f": {quote(lock.reason)}" if lock.reason else ""
    text = f"{who} holds {resource} ({lock.mode.value}, fence {lock.fence}){note}"
    times = {"since_ms": lock.acquired_ms, "until_ms": lock.expires_ms}
    chain.add("lock", text, depth, subject=("lock", lock.resource), **times)
    held_up = chain.explain_session(lock.owner, depth + 1)
    life = chain.life(lock.owner)
    why = f" {purpose}".rstrip()
    if life in SILENT:
        words = ("steal", lock.resource, "--force", "--reason", "REASON")
        chain.offer(TAKE, depth - 1, f"Take {resource} from {who}, which is silent{why}", *words)
    elif not held_up:
        chain.offer_to_ask(lock.resource, who, depth)


def _explain_track(chain: Chain, project: str, spec: Spec, depth: int) -> bool:
    """Add the agents that fill the track of a task; return whether it is full."""
    full = track_full_reason(chain.tx, project, spec.track, "")
    if not full:
        return False
    record = chain.tx.get(keys.track(project, spec.track), Track) or Track()
    chain.add("track", f"{full} (at most {record.agents_max})", depth, subject=("track", spec.track))
    for name, task in tasks_in_progress(chain.tx, project).items():
        if task.claim is ACTIVE and task.track == spec.track:
            _explain(chain, project, name, depth + 1)
    words = ("track", spec.track, "--agents", str(record.agents_max + 1))
    chain.offer(WIDEN, depth, f"Let one more agent work on track {quote_name(spec.track)}", *words)
    return True


def _explain_agents(chain: Chain, project: str, name: str, spec: Spec, depth: int) -> bool:
    """Add why each agent of the project does not take a task; return whether one may."""
    agents = [
        each for each in get_agents(chain.tx, GetAgents(project), chain.now) if each.liveness in WORKING
    ]
    free = 0
    for agent in agents[:AGENTS_SHOWN]:
        why, enables = _refusal(agent, spec)
        subject = ("agent", agent.name)
        if why:
            text = f"{quote_name(agent.name)}: {why}"
            chain.add("agent", text, depth, subject=subject, until_ms=agent.until_ms)
        else:
            free += 1
            chain.add("free", f"{quote_name(agent.name)} may take it", depth, subject=subject)
        if enables:
            words = ("agent", "enable", agent.name)
            chain.offer(ENABLE, depth, f"Let {quote_name(agent.name)} take tasks again", *words)
    if not agents:
        chain.add("agent", f"no agent works in project {quote_name(project)}", depth)
    if not free:
        _offer_more(chain, project, name, depth)
    return bool(free)


def _offer_more(chain: Chain, project: str, name: str, depth: int) -> None:
    """Offer another agent: a higher limit if it is reached, or a claim by hand."""
    record = chain.tx.get(keys.count_agents(project), ProjectAgents) or ProjectAgents()
    counted = [each for each in record.sessions or () if chain.life(each) in WORKING]
    if record.max_agents and len(counted) >= record.max_agents:
        text = f"project {quote_name(project)} has {len(counted)} agents and may have {record.max_agents}"
        chain.add("limit", text, depth)
        if record.max_agents < AGENTS_MAX:
            words = ("limits", "set", f"max_agents={record.max_agents + 1}")
            chain.offer(WIDEN, depth, "Allow one more agent, and start it", *words)
            return
    chain.offer(START, depth, "Take it yourself, or start another agent", "task", "claim", name)


def _refusal(agent: AgentInfo, spec: Spec) -> tuple[str, bool]:
    """Return why an agent does not take a task, and whether enabling it helps."""
    missing = sorted(need for need in spec.needs if agent.capabilities.get(need, 0) < EFFICIENCY_MIN)
    if agent.blocked_reason:
        return agent.blocked_reason, True
    if agent.state in UNAVAILABLE_STATES:
        return f"its state is {agent.state}", False
    if spec.role and agent.role and spec.role != agent.role:
        return f"the task is for a {quote_name(spec.role)}, it is a {quote_name(agent.role)}", False
    if missing:
        return f"it lacks {', '.join(map(quote_name, missing))}", False
    if spec.type and agent.capabilities.get(spec.type, 1) < EFFICIENCY_MIN:
        return f"it cannot do {quote_name(spec.type)}", False
    return ("it works on something else", False) if agent.claims else ("", False)
