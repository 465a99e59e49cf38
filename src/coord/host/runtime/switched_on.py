"""Which followers of the log a person switched on for a store, on this machine.

Commands look here when they end, so it is one small file beside the pin, which is usually absent.
"""

import os

FILE = "followers"
FILE_BYTES_MAX = 4096


MIRROR_PATHS = {
    "mirror-contract": tuple(
        f".contract/{each}/" for each in ("tickets", "status", "queue", "signals", "logs")
    ),
    "mirror-agent-claims": (
        ".claude/agent-claims.json",
        ".claude/agent-claims-expiry.json",
        ".claude/subagent-status/",
        ".claude/plans/task-status.json",
    ),
}
"""What the mirrors write below the top of a worktree; a folder ends with a slash."""


def is_mirror_path(folder: str, path: str) -> bool:
    """Whether a mirror that is switched on writes a path: nobody's work is there, so nobody locks it."""
    if not path.startswith((".contract/", ".claude/")):
        return False
    ours = [each for name in switched_on(folder) for each in MIRROR_PATHS.get(name, ())]
    return any(path == each or (each.endswith("/") and path.startswith(each)) for each in ours)


def switched_on(folder: str) -> tuple[str, ...]:
    """Return the names of the followers that are switched on."""
    try:
        with open(f"{folder}/{FILE}", "rb") as file:
            return tuple(file.read(FILE_BYTES_MAX).decode().split())
    except (OSError, UnicodeDecodeError):
        return ()


def switch(folder: str, name: str, *, on: bool) -> bool:
    """Switch a follower on or off; return whether that changed anything."""
    before = switched_on(folder)
    if on == (name in before):
        return False
    after = sorted({*before, name} if on else {*before} - {name})
    path = f"{folder}/{FILE}"
    if not after:
        os.remove(path)
        return True
    written = f"{path}.{os.getpid()}"
    with open(written, "w", encoding="utf-8") as file:
        file.write("".join(f"{each}\n" for each in after))
        file.flush()
        os.fsync(file.fileno())
    os.replace(written, path)
    return True
