"""Commands about the brief of a session, and their replies: the API."""

from coord.core.commands import Reply, SessionCommand
from coord.core.messages.commands import DelegationInfo
from coord.core.sessions.commands import SessionWait


class AgentContextInfo(Reply, frozen=True, rename="camel"):
    """One agent of the crew, as the founding documents describe it (CTX-2).

    `task` is the id of its claim, or else what it reported. `status` is the state of its session in the words
    of those documents: `running` for working, `creating` for starting.
    """

    id: str
    role: str
    role_name: str
    status: str
    task: str
    parent_id: str
    model: str
    locked_files: list[str] = []


class Health(Reply, frozen=True):
    """A project in numbers: its plan, its agents, and the decisions that wait for a person.

    `completion` is the part of the plan that is done or skipped, in percent; None without a plan.
    """

    icon: str
    completion: int | None = None
    active: int = 0
    idle: int = 0
    done: int = 0
    decisions: int = 0
    oldest_decision_ms: int = 0
    blocked_tasks: int = 0
    failed_tasks: int = 0


class Brief(Reply, frozen=True, kw_only=True):
    """What a session has to know.

    `crew` are the other agents, those of the session first; `own` says how many. `ended` are those that ended
    last. `descriptions` are those of the tasks that agents work on. `digest` changes when a fact changes that
    is worth another message: times, and whether an agent runs or is idle, do not count. `epoch` counts how
    often the context of the session began again, by compaction for example.
    """

    now_ms: int
    session: str
    project: str
    lead: bool
    crew: list[AgentContextInfo]
    own: int = 0
    ended: list[AgentContextInfo] = []
    health: Health | None = None
    descriptions: dict[str, str] = {}
    messages: int = 0
    emergencies: int = 0
    waits: list[SessionWait] = []
    delegations: list[DelegationInfo] = []
    company: int = 0
    """How many of the crew live outside of the process of the session: its sub-agents may live inside."""
    locks: list[str] = []
    digest: str = ""
    epoch: int = 0


class RecordBrief(SessionCommand, frozen=True):
    """Record that a hook gave the calling session its brief; the reply says whether its epoch still holds."""

    rule = "coord.core.brief.delivery:record_brief"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = bool
    digest: str
    offset: int
    chars: int
    epoch: int = 0


class BeginEpoch(SessionCommand, frozen=True):
    """Note that the context of the calling session began again: by `compact`, `clear` or `resume`.

    With a `mark` the same beginning is noted once; the reply is the epoch.
    """

    rule = "coord.core.brief.delivery:begin_epoch"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = int
    why: str = ""
    mark: str = ""


class GetBrief(SessionCommand, frozen=True):
    """Return the brief of the calling session; `lead` None: it is a lead if it has sub-agents or says so.

    Without `health` only a lead's brief has it, because the plan has to be counted for it.
    """

    rule = "coord.core.brief.brief:get_brief"
    prefetch_keys = "coord.core.brief.brief:brief_keys"
    prefetch_ranges = "coord.core.brief.brief:brief_ranges"
    reply = Brief
    reads_only = True
    lead: bool | None = None
    health: bool = True
