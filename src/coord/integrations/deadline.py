"""The deadline of a hook: the agent's tool, git and the watcher of the hook are given time by it."""

import os

DEADLINE_S, DEADLINE_MIN_S, DEADLINE_MAX_S = 7.0, 0.05, 600.0


def deadline_s() -> float:
    """Return after how many seconds a hook answers: `COORD_HOOK_DEADLINE`, or the default."""
    try:
        given = float(os.environ.get("COORD_HOOK_DEADLINE", "") or DEADLINE_S)
    except ValueError:
        return DEADLINE_S
    return given if DEADLINE_MIN_S <= given <= DEADLINE_MAX_S else DEADLINE_S
