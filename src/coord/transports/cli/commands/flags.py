"""Flags and arguments that several commands share."""

from coord.transports.cli.spec import Argument, Flag

KINDS = ("handoff", "warn", "emergency", "status", "request", "reply")
"""The usual kinds of message; others are allowed."""
WELL_KNOWN = ("main-branch", "main-push", "pr-merge-queue", "cargo-build", "claude-config", "engram-serve")
"""Lock names with a meaning that everybody knows."""

GLOBAL_FLAGS = (
    Flag(
        "o",
        "the form of the answer (COORD_OUTPUT; wide cuts nothing)",
        "FORM",
        choices=("table", "json", "wide"),
        dest="output",
    ),
    Flag("json", "the same as -o json", excludes="o"),
    Flag("session", "the session to act as (COORD_SESSION_ID)", "ID", "name", completes="peers"),
    Flag("agent", "the agent's name (COORD_AGENT)", "NAME", "name", completes="agents"),
    Flag("role", "the agent's role (COORD_ROLE)", "NAME", "name"),
    Flag(
        "project",
        "the project (COORD_PROJECT; default: the repository)",
        "NAME",
        "name",
        completes="projects",
    ),
    Flag("tenant", "the tenant (COORD_TENANT; default: local)", "NAME", "name"),
    Flag(
        "parent", "the session that started this one (COORD_PARENT_SESSION)", "ID", "name", completes="peers"
    ),
    Flag("pid", "the process of the session, never that of a command", "PID", "number", default=None),
    Flag("url", "the store (COORD_URL; default: in the repository)", "URL", "name"),
)

RESOURCES = Argument(
    "resource",
    "a path, glob or name; or file:…, name:…, project:…",
    many=True,
    completes="files",
    dest="resources",
)
HELD = Argument("resource", "a locked path, glob or name", many=True, completes="own", dest="resources")
ONE_HELD = Argument("resource", "a locked path, glob or name", completes="held")
PROJECT = Argument("project", "the project's name", completes="projects")
AREA = Flag("area", "lock only this area, for example a module", "AREA")
LITERAL = Flag("literal", "the words are paths; no character is a wildcard")
MODE = Flag(
    "mode",
    "the lock mode (default: write; names: exclusive)",
    "MODE",
    choices=("read", "write", "exclusive"),
)
TTL = Flag("ttl", "how long the lock lasts unless you renew it", "DURATION", "duration", default=None)
REASON = Flag("reason", "why, in one line; shown to agents that wait for it", "TEXT")
PAGING = (
    Flag("limit", "list at most N; the answer says how to go on", "N", "number", default=None),
    Flag("after", "begin behind KEY, the `next` of an earlier answer", "KEY"),
)
PRIORITY = Flag("priority", "higher is served first (default: 0)", "N", "number", default=0)
TAKING = (
    TTL,
    REASON,
    Flag("wait", "wait up to DURATION, then exit 3", "DURATION", "duration or zero", default=None),
    Flag("no-wait", "do not wait; exit 1 if it is locked", excludes="wait"),
    PRIORITY,
    Flag(
        "profile",
        "how it expires: file, name, project, ticket, file-claim",
        "NAME",
        "name",
    ),
    Flag("preemptible", "let coord revoke it first to break a deadlock"),
    Flag("command-id", "run once, even if repeated with the same id", "ID", "name"),
)
BODY = Flag("body", "the text (-: read standard input)", "TEXT", "text or input")
BLOB = Flag("blob", "any JSON data (-: read standard input)", "JSON", "document", default=None)
SENDING = (
    BODY,
    BLOB,
    PRIORITY._replace(summary="higher is shown first (default: 0)"),
    Flag("ttl", "delete it if nobody reads it within DURATION", "DURATION", "duration", default=None),
    Flag("reply-to", "the message that this one answers", "ID", "name"),
)
KIND = Argument("kind", f"{', '.join(KINDS)}, …", completes="kinds")
SUBJECT = Argument("subject", "the subject, in one line")
TASK = (
    Flag("task", "the task it works on", "TEXT", default=None),
    Flag("phase", "the phase of the task", "TEXT", default=None),
    Flag("status", "its status: idle, working, blocked, …", "TEXT", default=None),
)
FENCE = Flag("fence", "act only if the lock has this fence", "N", "number", default=None)
CAPABILITIES = Flag(
    "capabilities",
    "task types it can do; 1 is normal, 0 means not at all",
    "TYPE[=X],...",
    "names",
    default=None,
)
