"""What shell commands do to files, caught by its effect: no command line tells what a program will write.

Before and after a shell tool the worktree is looked at (`worktree_state.py`). What the command changed is
locked after the fact where it is free (`effect_look.py`). A file that another session holds was stomped only
if that is proven (`effect_verdict.py`): its content is not the holder's last one (`effect_content.py`), none
of the holder's tools was under way, and no other shell ran beside this one (`effect_calls.py`). Otherwise
its author is unknown: that is told, and the file is left alone.
"""

import time
from collections.abc import Sequence
from contextlib import suppress

from coord.core.errors import CoordError
from coord.integrations.shell_effects.call_log import CallFolder
from coord.integrations.shell_effects.watched_files import WATCHED
from coord.sdk.client.connection import Connection


def before_call(
    connection: Connection,
    worktree: str,
    session: str,
    call: str,
    *,
    shell: bool,
    timeout_s: float = 660.0,
    watched: Sequence[str] = WATCHED,
) -> None:
    """Take note of a call that may write, and for a shell of how the files stand; a failure stops nothing."""
    with suppress(CoordError, OSError):
        folder = CallFolder(connection.location.folder, worktree)
        with folder.lock_calls() as calls:
            calls.begin(call, session, shell=shell, now_s=time.time(), timeout_s=timeout_s)
        if shell:
            from coord.integrations.shell_effects.compare import ShellCall

            ShellCall(connection, worktree, session, call).record_state(watched)


def after_call(
    connection: Connection,
    worktree: str,
    session: str,
    call: str,
    *,
    shell: bool,
    wrote: Sequence[str] = (),
    watched: Sequence[str] = WATCHED,
    restore: bool = False,
) -> str:
    """Look at what a call did, and return what its agent should know; `wrote`: what an editor has written."""
    notes = ""
    try:
        folder = CallFolder(connection.location.folder, worktree)
        try:
            if shell:
                from coord.integrations.shell_effects.compare import ShellCall

                notes = ShellCall(connection, worktree, session, call).compare_state(watched, restore=restore)
            elif wrote:
                from coord.integrations.git.run import Git
                from coord.integrations.shell_effects.saved_content import save_content

                save_content(Git(worktree), folder, session, wrote)
        finally:
            with folder.lock_calls() as calls:
                calls.end(call, session)
    except (CoordError, OSError) as error:
        notes = f"coord: what this command changed could not be looked at: {error}" if shell else ""
    return notes
