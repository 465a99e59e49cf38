"""The flags and words that several commands share."""

from coord.transports.cli.spec import Argument, Flag

KINDS = ("handoff", "warn", "emergency", "status", "request", "reply")
"""The usual kinds of message; others are allowed."""
WELL_KNOWN = ("main-branch", "main-push", "pr-merge-queue", "cargo-build", "claude-config", "engram-serve")
"""Names that everybody locks for the same purpose."""

GLOBAL_FLAGS = (
    Flag("json", "answer in JSON on a terminal too"),
    Flag("session", "the session to act as (COORD_SESSION_ID)", "ID", "name", completes="peers"),
    Flag("agent", "the agent's name (COORD_AGENT)", "NAME", "name"),
    Flag("role", "the agent's role (COORD_ROLE)", "NAME", "name"),
    Flag("project", "the project (COORD_PROJECT; default: the repository's name)", "NAME", "name"),
    Flag("tenant", "the tenant (COORD_TENANT; default: local)", "NAME", "name"),
    Flag(
        "parent", "the session that started this one (COORD_PARENT_SESSION)", "ID", "name", completes="peers"
    ),
    Flag("pid", "the process the session lives in, never that of a command", "PID", "number", default=None),
    Flag("url", "the store (COORD_URL; default: in the repository)", "URL", "name"),
)

RESOURCES = Argument(
    "resource",
    "a path, a glob, a name, or file:… name:… project:…",
    many=True,
    completes="files",
    dest="resources",
)
HELD = Argument("resource", "what is held", many=True, completes="held", dest="resources")
ONE_HELD = Argument("resource", "what is held", completes="held")
PROJECT = Argument("project", "the project's name")
AREA = Flag("area", "only this area of the project, often a module's name", "AREA")
MODE = Flag(
    "mode",
    "how (default: write; names and projects: exclusive)",
    "MODE",
    choices=("read", "write", "exclusive"),
)
TTL = Flag("ttl", "how long it holds without being renewed", "DURATION", "duration", default=None)
REASON = Flag("reason", "what for, shown to whoever is refused", "TEXT")
PRIORITY = Flag("priority", "higher goes first in line (default: 0)", "N", "number", default=0)
TAKING = (
    TTL,
    REASON,
    Flag("wait", "wait this long at most; then exit 3", "DURATION", "duration or zero", default=None),
    Flag("no-wait", "answer at once; exit 1 if it is held", excludes="wait"),
    PRIORITY,
    Flag(
        "profile",
        "file, name, project or ticket: how it ends by itself (default: by kind of resource)",
        "NAME",
        "name",
    ),
    Flag("preemptible", "may be taken away first in a deadlock"),
    Flag("command-id", "repeat with the same id, and it is done once", "ID", "name"),
)
BODY = Flag("body", "the text (- reads it from standard input)", "TEXT", "text or input")
BLOB = Flag("blob", "data kept as it is (- reads it from standard input)", "JSON", "document", default=None)
SENDING = (
    BODY,
    BLOB,
    PRIORITY._replace(summary="higher is shown first (default: 0)"),
    Flag("ttl", "forget it when it was not read for this long", "DURATION", "duration", default=None),
    Flag("reply-to", "the message this answers", "ID", "name"),
)
KIND = Argument("kind", f"what it is: {', '.join(KINDS)}, or another word", completes="kinds")
SUBJECT = Argument("subject", "one line")
TASK = (
    Flag("task", "what it works on", "TEXT", default=None),
    Flag("phase", "where in the task it is", "TEXT", default=None),
    Flag("status", "how it goes: idle, working, blocked, …", "TEXT", default=None),
)
FENCE = Flag("fence", "only if the lock has this fence", "N", "number", default=None)
CAPABILITIES = Flag(
    "capabilities",
    "types of task it does, and how well: 1 is usual, 0 says it cannot",
    "TYPE[=X],...",
    "names",
    default=None,
)
