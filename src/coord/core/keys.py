"""Every key and line, built in one place. Ids hold no slash (see `ids.py`), so parts never run together."""


def task(project: str, task_id: str) -> str:
    """The task with its latest claim."""
    return f"task/{project}/{task_id}"


def by_session(session: str, project: str, task_id: str) -> str:
    """Index: the active claims of a session."""
    return f"by-session/{session}/{project}/{task_id}"


def by_session_prefix(session: str) -> str:
    return f"by-session/{session}/"


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


def rejected(project: str, task_id: str, generation: int, session: str) -> str:
    """A submission that was turned away."""
    return f"rejected/{project}/{task_id}/{generation:08d}/{session}"


def rejected_prefix(project: str, task_id: str) -> str:
    return f"rejected/{project}/{task_id}/"


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
_DUE_MS_13 = 10**12
DUE_MS_MAX = 10**13 - 1
"""The year 2286; with one more digit a later deadline would stand before an earlier one."""


def due(deadline_ms: int) -> str:
    """The line of everything that waits for a deadline, in the order of time."""
    if _DUE_MS_13 <= deadline_ms <= DUE_MS_MAX:  # any moment since 2001, and much faster to write
        return f"due/{deadline_ms}"
    return f"due/{min(deadline_ms, DUE_MS_MAX):013d}"


def due_ms(line: str) -> int:
    """The deadline in a line made by `due`."""
    return int(line[len(DUE_PREFIX) :])


def parts(key: str) -> list[str]:
    """A key's parts; the first names its kind."""
    return key.split("/")
