"""The form of hooks that Claude Code sends by HTTP, shared by the setup and by the hub."""

PATH = "/v1/hook/claude"
GIT_DIRECTORY = "git"
"""The parameter of the URL with the git directory for which the hook was set up."""
EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
"""The events around a call. Claude Code sends no start of a session by HTTP, and the others are rare."""
FORWARDED = (
    *("COORD_SESSION_ID", "COORD_AGENT", "COORD_ROLE", "COORD_PROJECT", "COORD_PARENT_SESSION"),
    "COORD_TENANT",
)
"""The variables that a header names: settings of Claude Code may change them after its start."""


def header_of(variable: str) -> str:
    """Return the header that carries a variable.

    >>> header_of("COORD_SESSION_ID")
    'Coord-Session-Id'
    """
    return "-".join(part.capitalize() for part in variable.split("_"))
