"""Observe which files a tool call changes, because no command line says what a program will write.

The state of the worktree is recorded before a shell call (`worktree_state.py`) and compared after it
(`compare.py`). Changed files that are free get a lock. A file that another session holds counts as
overwritten only with proof (`attribution.py`): its content is not the holder's last one (`saved_content.py`),
and neither a tool of the holder nor another shell ran at the same time (`call_log.py`).
"""

import time
from collections.abc import Sequence
from contextlib import suppress

from coord.core.errors import CoordError
from coord.integrations.shell_effects.call_log import CallFolder, CallText
from coord.integrations.shell_effects.watched_files import WATCHED
from coord.sdk.client.connection import Connection


def before_call(
    connection: Connection,
    worktree: str,
    session: str,
    call: str,
    *,
    shell: bool,
    wrote: Sequence[str] = (),
    timeout_s: float = 660.0,
    watched: Sequence[str] = WATCHED,
    settings: Sequence[str] = (),
) -> None:
    """Record a call that may write, and for a shell the state of the files; a failure stops nothing.

    `wrote`: the files of an editor. `settings`: the files with the hooks of tools.
    """
    with suppress(CoordError, OSError):
        folder = CallFolder(connection.location.folder, worktree)
        with folder.lock_calls() as calls:
            calls.begin(call, session, shell=shell, now_s=time.time(), timeout_s=timeout_s, paths=wrote)
        if shell:
            from coord.integrations.shell_effects.compare import ShellCall

            ShellCall(connection, worktree, session, call).record_state(watched, calls, settings)


def after_call(
    connection: Connection,
    worktree: str,
    session: str,
    call: str,
    *,
    shell: bool,
    wrote: Sequence[str] = (),
    watched: Sequence[str] = WATCHED,
    restore: bool = True,
    text: str = "",
    cwd: str = "",
    edited: list[str] | None = None,
) -> str:
    """Compare the files after a call and return the notes for its agent.

    `wrote`: the files of an editor. `text`, `cwd`: what the call says that it does, and where. What a shell
    changed is added to `edited`.
    """
    notes = ""
    try:
        folder = CallFolder(connection.location.folder, worktree)
        try:
            if shell:
                from coord.integrations.shell_effects.compare import ShellCall

                request = CallText(text, cwd)
                call_of = ShellCall(connection, worktree, session, call)
                notes = call_of.compare_state(watched, request, restore=restore)
                if edited is not None:
                    edited += call_of.edited
            elif wrote:
                from coord.integrations.git.run import Git
                from coord.integrations.shell_effects.saved_content import save_content

                save_content(Git(worktree), folder, session, wrote)
        finally:
            with folder.lock_calls() as calls:
                calls.end(call, session, time.time())
    except (CoordError, OSError) as error:
        notes = f"coord: the changes of this command could not be checked: {error}" if shell else ""
    return notes
