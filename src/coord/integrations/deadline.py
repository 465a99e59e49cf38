"""The deadline of a hook: the agent's tool, git and the watcher of the hook are given time by it."""

from posix import environ  # `os` takes a hook through the hub a tenth of its time

DEADLINE_S, DEADLINE_MIN_S, DEADLINE_MAX_S = 7.0, 0.05, 600.0


def deadline_s() -> float:
    """Return after how many seconds a hook answers: `COORD_HOOK_DEADLINE`, or the default."""
    try:
        given = float(environ.get(b"COORD_HOOK_DEADLINE", b"") or DEADLINE_S)
    except ValueError:
        return DEADLINE_S
    return given if DEADLINE_MIN_S <= given <= DEADLINE_MAX_S else DEADLINE_S
