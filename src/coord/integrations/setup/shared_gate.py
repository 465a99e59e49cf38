"""Putting the gate before a shared bare repository: the one place that agents cannot go round.

Its pin is the one of the repository at hand, so that it checks the same locks and claims. Clones that
push to it have to use that store, too. `coord uninstall` in it takes the gate out again.
"""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from coord.core.errors import Invalid, Unavailable
from coord.core.ids import short_repr
from coord.host.caller import TENANT
from coord.host.repository import find_repository
from coord.host.store_location import StoreLocation, write_pin
from coord.integrations.git.gate.stubs import PROTECTED, SHARED_HOOK
from coord.integrations.setup.changes import FORMER
from coord.integrations.setup.installer import plan_repository, record_folder
from coord.integrations.setup.journal import read_record

_BRANCH = re.compile(r"[^\s~^:?\[\\]+")


class Shared(NamedTuple):
    """A repository with a gate before it."""

    folder: str
    hook: str
    former: str
    """The hook that was there and now runs after the gate, or nothing."""


def share(
    location: StoreLocation, folder: str, protected: Sequence[str] = (), *, tenant: str = TENANT, by: str = ""
) -> Shared:
    """Put the gate before a bare repository; again renews it, and an agent tool (`by`) changes nothing."""
    for branch in protected:
        if not _BRANCH.fullmatch(branch):
            raise Invalid(f"{short_repr(branch)} is no branch", hint="for example main, or release/*")
    target = find_repository(folder)
    if target is None or target.root is not None or target.commondir != os.path.realpath(folder):
        raise Invalid(f"{folder} is no bare repository", hint="git clone --bare . FOLDER makes one")
    if location.repository is None or not location.pinned:
        raise Invalid("this is no repository with a store", hint="run coord init in the repository first")
    pinned = write_pin(location._replace(folder=f"{target.commondir}/coord", repository=target))
    if (pinned.store_id, pinned.repository_id) != (location.store_id, location.repository_id):
        raise Invalid(
            f"{folder} is pinned to the locks of another repository",
            hint=f"look at {pinned.folder}/coord.id, and remove it if that is an error",
        )
    protected = tuple(protected) or read_record(record_folder(target)).protected or PROTECTED
    plan = plan_repository(target, {}, (), protected=protected, tenant=tenant)
    try:
        plan.apply(by=by)
    except OSError as error:
        raise Unavailable(f"{folder}: {error.strerror}", hint="is it another user's?") from error
    hook = f"{target.commondir}/hooks/{SHARED_HOOK}"
    former = f"{hook}{FORMER}"
    return Shared(target.commondir, hook, former if os.path.lexists(former) else "")
