"""Report to `coord work` that its command makes progress.

A command of `coord work` finds a file in its environment. Whoever touches that file reports progress: the
agent's hooks, `coord heartbeat`, `coord update`, `coord task renew`, or the command itself.
"""

import os
from collections.abc import Mapping
from contextlib import suppress

VARIABLE = "COORD_PROGRESS_FILE"


def report_progress(environ: Mapping[str, str]) -> None:
    """Report progress, if this process runs below `coord work`."""
    path = environ.get(VARIABLE)
    if path:
        with suppress(OSError):  # the task has ended
            os.utime(path)
