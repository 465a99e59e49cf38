"""Why a session has a lock: by hand, for a running command, for a tool call, or for a claim.

A session has one lock per resource, and may need it for several things at once. The lock keeps each of
them as a *use*, and ends with the last one. So the first of two commands that ends releases nothing that
the second still needs.

    ""                                  taken by hand (`coord lock`)
    guard:<id>                          a running `coord guard`, or a `with` block
    hook                                a tool call; the lock has the worktree of the file
    task:<project>/<task>/<generation>  a claim; if the lock is lost, the claim ends with it
"""

from collections.abc import Collection

import msgspec

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.locks.schema import PROFILES, Expiry, Lock

BY_HAND = ""
HOOK = "hook"
_GUARD, _TASK = "guard:", "task:"
USES_MAX = 64
"""How many uses a lock may have: each is in its record."""


def guard_use(name: str) -> str:
    """Return the use of a running command."""
    return f"{_GUARD}{name}"


def task_use(project: str, task_id: str, generation: int) -> str:
    """Return the use of a claim."""
    return f"{_TASK}{project}/{task_id}/{generation}"


def check_use(use: str) -> str:
    """Return a use that a caller may ask for: by hand, or a running command."""
    if use and not (use.startswith(_GUARD) and 0 < len(use) - len(_GUARD) <= 64):
        raise Invalid(f"{short_repr(use)} is not a use of a lock", hint="omit it, or pass guard:<id>")
    return use


def claims_using(lock: Lock, ended: Collection[str] = ()) -> list[tuple[str, str, int]]:
    """Return the project, task and generation of each claim that needs a lock, except ended ones."""
    found = [use[len(_TASK) :].split("/") for use in lock.uses if is_claim(use) and use not in ended]
    return [(project, task_id, int(generation)) for project, task_id, generation in found]


def is_claim(use: str) -> bool:
    """Whether a use is a claim."""
    return use.startswith(_TASK)


def expiry_of(lock: Lock) -> Expiry:
    """Return what ends a lock besides its owner."""
    expiry = PROFILES[lock.profile].expiry
    return Expiry.AUTO if expiry is Expiry.STEAL_ONLY and BY_HAND not in lock.uses else expiry


def with_use(before: Lock | None, use: str) -> tuple[str, ...]:
    """Return the uses of a lock after one more request for it.

    Somebody who asks by hand for what a claim of the session has only refreshes it: it ends with the claim.
    """
    if before is None:
        return (use,)
    refreshed = use in before.uses or (use == BY_HAND and any(map(is_claim, before.uses)))
    return before.uses if refreshed else (*before.uses, use)


def without_uses(lock: Lock, ended: Collection[str]) -> Lock | None:
    """Return a lock without some of its uses; None if no use is left."""
    left = tuple(use for use in lock.uses if use not in ended)
    if not left:
        return None
    return msgspec.structs.replace(lock, uses=left, worktree=lock.worktree if HOOK in left else "")
