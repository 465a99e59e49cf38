"""The environment for which this thread acts: that of its process, or that of a hook which a hub answers.

A hub answers hooks of many agents in its threads. The programs that it starts for one of them, and the
folders that it looks into, are those of the agent's environment and not those of the hub's.
"""

import os
from _thread import _local
from collections.abc import Callable, Mapping
from typing import TypeVar

Result = TypeVar("Result")
_of_thread = _local()


def environment() -> Mapping[str, str]:
    """Return the environment for which this thread acts."""
    given: Mapping[str, str] | None = getattr(_of_thread, "given", None)
    return os.environ if given is None else given


def acts_for_another() -> bool:
    """Return whether this thread acts for another process."""
    return getattr(_of_thread, "given", None) is not None


def act_for(environ: Mapping[str, str], work: Callable[[], Result]) -> Result:
    """Do work of this thread in the environment of another process of this user."""
    _of_thread.given = environ
    try:
        return work()
    finally:
        _of_thread.given = None
