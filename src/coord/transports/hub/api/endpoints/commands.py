"""The table of commands: the route of each public one, and why the others are internal.

The types of requests are generated from the fields of a command, without those that say who asks and those
that only a process beside the files can know.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec

from coord.core.commands import Command, SessionCommand
from coord.core.errors import Invalid
from coord.core.identity import Caller
from coord.core.ids import is_id
from coord.core.locks.resources import TENANT_WIDE
from coord.core.messages.work_mode import Mode, SetWorkMode
from coord.core.questions.schema import QuestionKind
from coord.core.tasks.commands import ReleaseClaim
from coord.core.tasks.types import ReleaseReason
from coord.sdk.remote.wire import command_types
from coord.transports.hub.api import replies
from coord.transports.hub.api.endpoint import BODIES, Asking, Endpoint, role_of, variables_of
from coord.transports.hub.api.fields import IN_QUERIES, Line, OptionalId, PublicBody, checked, public_type
from coord.transports.hub.api.resources import read_resources


class Public(NamedTuple):
    """The route of a command; `hides` are more fields that a request does not have."""

    command: str
    method: str
    path: str
    hides: tuple[str, ...] = ()
    types: Mapping[str, Any] = {}
    """Fields that have another type here than elsewhere."""


HIDDEN = frozenset(
    (
        *("caller", "tenant", "repository", "exact", "readings", "wait_id", "waiter", "leased", "worktree"),
        *("use", "user", "by", "hash", "registered", "runner", "stubs", "peers", "max_agents"),
    )
)
"""Fields that no request has: they state who asks, or what a process saw beside the files."""
RELEASE_REASON = Literal["VOLUNTARY", "ERROR", "PREEMPTED"]
QUESTION_KIND = Literal["ask", "decision"]
"""The kinds of question that anybody may ask; hooks ask the others."""
WORK_MODE = Literal["on", "paused", "draining", "stopped"]
TASK = "/v1/projects/{project}/tasks/{task}"
SESSION = "/v1/sessions/{session}"
PUBLIC = (
    Public("CheckLocks", "GET", "/v1/locks/check", ("limit",)),
    Public("GetLocks", "GET", "/v1/locks"),
    Public("ReleaseLocks", "POST", "/v1/locks/release"),
    Public("ReleaseLocks", "DELETE", "/v1/locks"),
    Public("RenewLocks", "POST", "/v1/locks/renew"),
    Public("StealLock", "POST", "/v1/locks/steal"),
    Public("PreemptLock", "POST", "/v1/locks/preempt"),
    Public("Handoff", "POST", "/v1/handoffs", types={"project": OptionalId, "task": OptionalId}),
    Public("ListLockPeriods", "GET", "/v1/locks/history", ("space",)),
    Public("ListLockRequests", "GET", "/v1/locks/requests"),
    Public("WhyLock", "GET", "/v1/locks/why", types={"resource": Line, "project": OptionalId}),
    Public("ListWaits", "GET", "/v1/waits"),
    Public("Register", "POST", "/v1/sessions", types={"task": Line | None}),
    Public("GetSession", "GET", SESSION),
    Public("UpdateSession", "PATCH", SESSION, types={"task": Line | None}),
    Public("Deregister", "DELETE", SESSION, ("to_parent", "read")),
    Public("Heartbeat", "POST", f"{SESSION}/heartbeat"),
    Public("GetSessionMemory", "GET", f"{SESSION}/memory"),
    Public("GetStatus", "GET", f"{SESSION}/status"),
    Public("GetBrief", "GET", f"{SESSION}/brief", types={"lead": bool | None}),
    Public("GetSessionClaims", "GET", f"{SESSION}/claims", types={"project": OptionalId}),
    Public("WhySession", "GET", f"{SESSION}/why", types={"project": OptionalId}),
    Public("PeekMessages", "GET", f"{SESSION}/inbox"),
    Public("ReceiveMessages", "POST", f"{SESSION}/inbox"),
    Public("AckMessages", "POST", f"{SESSION}/inbox/ack"),
    Public("ListHung", "GET", "/v1/hung"),
    Public("SendMessage", "POST", "/v1/messages", types={"to": OptionalId}),
    Public("FindRecipients", "GET", "/v1/recipients"),
    Public("ListGroups", "GET", "/v1/groups"),
    Public("ShowGroup", "GET", "/v1/groups/{name}"),
    Public("JoinGroup", "PUT", "/v1/groups/{name}/members/{session}"),
    Public("LeaveGroup", "DELETE", "/v1/groups/{name}/members/{session}"),
    Public("ListDelegations", "GET", "/v1/delegations"),
    Public("AddDelegation", "POST", "/v1/delegations", types={"task": Line}),
    Public("EndDelegation", "POST", "/v1/delegations/{id}/end"),
    Public("ListQuestions", "GET", "/v1/questions"),
    Public("AskQuestion", "POST", "/v1/questions", ("wait_ms", "call"), types={"kind": QUESTION_KIND}),
    Public("GetQuestion", "GET", "/v1/questions/{id}"),
    Public("AnswerQuestion", "POST", "/v1/questions/{id}/answer"),
    Public("WithdrawQuestion", "POST", "/v1/questions/{id}/withdraw"),
    Public("GetUsage", "GET", "/v1/usage", types={"project": OptionalId}),
    Public("ListAlerts", "GET", "/v1/alerts", types={"project": OptionalId}),
    Public("CloseAlert", "POST", "/v1/alerts/{id}/close"),
    Public("NeedsYou", "GET", "/v1/needs", types={"project": OptionalId}),
    Public("GetTasks", "GET", "/v1/projects/{project}/tasks"),
    Public("FindSimilarTasks", "GET", "/v1/projects/{project}/similar"),
    Public("GetQueue", "GET", "/v1/projects/{project}/queue"),
    Public("GetStuck", "GET", "/v1/projects/{project}/stuck"),
    Public("GetOverview", "GET", "/v1/projects/{project}/overview"),
    Public("GetAgents", "GET", "/v1/projects/{project}/agents"),
    Public("EnableAgent", "PUT", "/v1/projects/{project}/agents/{agent}"),
    Public("SetTrack", "PUT", "/v1/projects/{project}/tracks/{track}"),
    Public("ClaimNamed", "POST", f"{TASK}/claim"),
    Public("RenewLease", "POST", f"{TASK}/renew"),
    Public("ReleaseClaim", "POST", f"{TASK}/release", types={"reason": RELEASE_REASON}),
    Public("ResetTask", "POST", f"{TASK}/reset"),
    Public("SkipTask", "POST", f"{TASK}/skip"),
    Public("RetryTask", "POST", f"{TASK}/retry"),
    Public("SplitTask", "POST", f"{TASK}/split"),
    Public("AssignTask", "POST", f"{TASK}/assign"),
    Public("GetTaskState", "GET", f"{TASK}/state"),
    Public("GetClaimHistory", "GET", f"{TASK}/history"),
    Public("WhyTask", "GET", f"{TASK}/why"),
    Public("ListExpiredClaims", "GET", "/v1/claims/expired"),
    Public("ListStuck", "GET", "/v1/stuck"),
    Public("ListFollowers", "GET", "/v1/followers"),
    Public("CountTasks", "GET", "/v1/counts"),
    Public("GetLimits", "GET", "/v1/limits"),
    Public("GetSettings", "GET", "/v1/settings", types={"project": OptionalId}),
    Public("Sweep", "POST", "/v1/sweep"),
    Public("DecideReaction", "POST", "/v1/reactions/dead/{id}", ("session", "agent")),
    Public("GetWorkMode", "GET", "/v1/work-mode"),
    Public("SetWorkMode", "PUT", "/v1/work-mode", ("session", "agent"), {"mode": WORK_MODE}),
    Public("ListTokens", "GET", "/v1/tokens"),
    Public("RevokeToken", "DELETE", "/v1/tokens/{id}"),
)
"""Commands whose request follows from their fields."""
BY_HAND = {
    "ListSessions": "GET /v1/sessions",
    "AcquireLocks": "POST /v1/locks",
    "AddTasks": "POST /v1/projects/{project}/tasks",
    "ClaimNext": "POST /v1/projects/{project}/next",
    "SubmitResult": f"POST {TASK}/submit",
    "GetResult": f"GET {TASK}/result",
    "ClaimTask": "POST /v1/tenants/{tenant}/projects/{project}/tasks/{task}/claim",
    "ClaimTasks": "POST /v1/batch/claims",
    "SubmitResults": "POST /v1/batch/submissions",
    "GetTaskStates": "POST /v1/batch/states",
    "SetLimits": "PATCH /v1/limits",
    "ChangeSettings": "PATCH /v1/settings",
    "CreateToken": "POST /v1/tokens",
    "RotateToken": "POST /v1/tokens/{id}/rotate",
}
"""Commands whose route does more than run them, and that route."""
INTERNAL = {
    "FindToken": "only the hub looks tokens up",
    "MarkTokenUsed": "only the hub marks tokens",
    "ListLocks": "GetLocks lists the same, page by page",
    "ConfirmWait": "POST /v1/locks waits itself",
    "PeekWait": "POST /v1/locks waits itself",
    "WithdrawWait": "POST /v1/locks waits itself",
    "EndTaskWait": "POST /v1/projects/{project}/next waits itself",
    "CheckFences": "git hooks check the fences of a commit; CheckLocks with a fence checks one lock",
    "WatchLocks": "for the process that guards a running command",
    "BeginToolCall": "for hooks beside the files",
    "EndToolCall": "for hooks beside the files",
    "RecordBrief": "for hooks, which give an agent its brief",
    "BeginEpoch": "for hooks, which see that a context begins again",
    "ReleaseHookLocks": "for hooks beside the files",
    "RecordCommit": "for git hooks beside the files",
    "RecordMerge": "for git beside the files",
    "RecordCommitRefusal": "for git hooks beside the files",
    "RecordRestore": "for hooks beside the files",
    "FindSession": "finds a session by its processes; over the network a request names it",
    "SendElsewhere": "between the stores of one machine",
    "DeliverMessage": "between the stores of one machine",
    "AsSession": "wraps commands that have routes",
    "PutChunk": "a part of a large result; submit takes it whole",
    "GetChunks": "a part of a large result; the result's route returns it whole",
    "RecordUsage": "agent tools report their telemetry: POST /v1/logs, POST /v1/metrics",
    "GetSpent": "for coord work; GetUsage returns the same by task",
    "SaveFollower": "for followers of the log",
    "ReadFollower": "for followers of the log",
    "LeadFollower": "for followers of the log",
    "FailFollower": "for followers of the log",
    "ForgetFollower": "for followers of the log",
    "RebuildFollower": "for followers of the log",
    "CheckAlerts": "the hub checks every minute",
    "ListWatched": "for processes beside the ones that are watched",
    "NoteReactions": "for followers of the log",
    "SendReactionMessage": "for followers of the log",
    "EndClaimOfLock": "only rules send it",
    "DeclareDead": "only rules send it",
    "IsWaiting": "only rules send it",
    "GrantAllWaiters": "only rules send it",
    "TokenMayAct": "only rules send it",
    "FindTaskOptions": "only rules send it",
}
"""Commands without a route, and why."""


@cache
def command_named(name: str) -> type[Command]:
    """Return the class of a command."""
    return next(kind for kind in command_types() if kind.__name__ == name)


def endpoints() -> list[Endpoint]:
    """Return the endpoints of the commands whose request follows from their fields."""
    return [_endpoint(public) for public in PUBLIC]


def _endpoint(public: Public) -> Endpoint:
    kind = command_named(public.command)
    name = public.command if public.method != "DELETE" or "Locks" not in public.command else "DeleteLocks"
    body = request_type(kind, public)
    required = any(field.required for field in msgspec.structs.fields(body))

    async def handle(asking: Asking) -> Any:
        command = build(kind, asking)
        return replies.answer(await asking.ask(command))

    in_body = public.method in BODIES
    return Endpoint(
        public.method,
        public.path,
        name[0].lower() + name[1:],
        handle,
        summary=(kind.__doc__ or "").strip().splitlines()[0],
        tag=tag_of(public.path),
        role=role_of(kind),
        body=body if in_body else None,
        query=None if in_body else body,
        body_required=required,
        replies=replies.replies_of(kind.reply),
    )


def tag_of(path: str) -> str:
    """Return the noun of a path."""
    return path.rstrip("/").split("/")[2]


def request_type(kind: type[Command], public: Public, name: str = "") -> Any:
    """Return the type of a command's request; its name is unique in the OpenAPI document."""
    hidden = HIDDEN | set(public.hides) | set(variables_of(public.path))
    fields: list[Any] = []
    for field in msgspec.structs.fields(kind):
        if field.name in hidden:
            continue
        special = public.types if public.method in BODIES else {**IN_QUERIES, **public.types}
        public_kind = special.get(field.name) or public_type(field.name, field.type)
        default = _default(field)
        fields.append((field.name, public_kind) if default is ... else (field.name, public_kind, default))
    if issubclass(kind, SessionCommand):
        taken = {field[0] for field in fields} | hidden
        own = {"session": OptionalId, "agent": OptionalId}
        if kind.__name__ == "Register":
            own |= {"project": OptionalId, "parent": OptionalId}
        fields += [(name, each, "") for name, each in own.items() if name not in taken]
    name = name or f"{kind.__name__}{'Query' if public.method not in BODIES else 'Request'}"
    return msgspec.defstruct(name, fields, bases=(PublicBody,), frozen=True, kw_only=True)


def _default(field: Any) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return ...


def build(kind: type[Command], asking: Asking) -> Command:
    """Return the command that a request means."""
    return build_from(kind, asking, {**msgspec.structs.asdict(asking.values), **asking.path})


def build_from(kind: type[Command], asking: Asking, given: Mapping[str, Any]) -> Command:
    """Return a command from its public fields."""
    names = kind.__struct_fields__
    fields = {name: checked(name, given[name]) for name in names if name in given}
    if "session" in names:
        fields["session"] = asking.identity.check_session(given.get("session", ""))
    if issubclass(kind, SessionCommand):
        # By force somebody else ends a session: its name is not that of the caller.
        named = {**given, "session": ""} if fields.get("force") and kind.__name__ in ACT_ON_OTHERS else given
        fields["caller"] = caller_of(asking, named, kind)
        if kind.__name__ in ACT_ON_OTHERS and not fields.get("force"):
            del fields["session"]
    elif "session" in names and not kind.reads_only:
        require_session(fields["session"])
    if "tenant" in names:
        fields["tenant"] = asking.tenant
    if "repository" in names:
        fields["repository"] = asking.repository
    if "resources" in names:
        repository = asking.repository if "repository" in names else TENANT_WIDE  # to read them only
        fields["resources"] = read_resources(given["resources"], repository)
    if "project" in names:
        fields["project"] = asking.identity.check_project(fields.get("project", ""))
    if kind is SetWorkMode:
        fields["mode"] = Mode(fields["mode"])
    if kind is ReleaseClaim:
        fields["reason"] = ReleaseReason(fields["reason"])
    if kind.__name__ == "AskQuestion" and "kind" in fields:
        fields["kind"] = QuestionKind(fields["kind"])
    return kind(**fields)


ACT_ON_OTHERS = frozenset(("AckMessages", "Deregister"))
"""Commands whose own `session` names another one than the caller's; over the network it is the caller's."""


def caller_of(asking: Asking, given: Mapping[str, Any], kind: type[Command]) -> Caller:
    """Return the caller that a request states, as far as its token allows it; a browser is its person."""
    identity, own = asking.identity, kind.__struct_fields__
    session = identity.check_session(given.get("session", ""))
    agent = "" if "agent" in own else checked("agent", given.get("agent", ""))
    if not kind.reads_only and kind.__name__ not in BY_TOKEN:
        if not session and identity.person_session:
            session, agent = identity.person_session, identity.user if is_id(identity.user) else "person"
        require_session(session)
    return Caller(
        session,
        agent=agent,
        role=checked("role", given.get("role") or ""),
        project=identity.check_project(given.get("project") or ""),
        parent=given.get("parent", ""),
        repository=asking.repository,
        tenant=asking.tenant,
    )


BY_TOKEN = frozenset(
    (
        *("CreateToken", "RotateToken", "RevokeToken", "ListTokens", "AnswerQuestion", "CloseAlert"),
        *("SetWorkMode", "DecideReaction"),
    )
)
"""Commands that ask for the rights of a token, and for no session."""


def require_session(session: str) -> str:
    """Return the session that a request names; refuse one that acts for nobody."""
    if not session:
        raise Invalid("the request names no session", hint='add "session": the id of your session')
    return session
