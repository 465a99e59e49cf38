"""Install the gate of a shared bare repository, which agents cannot bypass.

The gate uses the pin of the current repository, so it checks the same locks and claims. Clones that push
to it must use that store too. `coord uninstall` in the bare repository removes the gate.
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
from coord.integrations.git.gate.accepted import note_branches
from coord.integrations.git.gate.stubs import PROTECTED, SHARED_HOOK
from coord.integrations.git.run import Git
from coord.integrations.setup.changes import FORMER_SUFFIX
from coord.integrations.setup.installer import journal_folder, plan_repository
from coord.integrations.setup.journal import read_journal

_BRANCH = re.compile(r"[^\s~^:?\[\\]+")


class SharedGate(NamedTuple):
    """A bare repository and its gate."""

    folder: str
    hook: str
    former: str
    """The former hook, which runs after the gate; empty if there was none."""


def install_gate(
    location: StoreLocation, folder: str, protected: Sequence[str] = (), *, tenant: str = TENANT, by: str = ""
) -> SharedGate:
    """Install or renew the gate of a bare repository; an agent tool (`by`) cannot renew it."""
    for branch in protected:
        if not _BRANCH.fullmatch(branch):
            raise Invalid(f"{short_repr(branch)} is not a branch", hint="for example main, or release/*")
    target = find_repository(folder)
    if target is None or target.root is not None or target.commondir != os.path.realpath(folder):
        raise Invalid(f"{folder} is not a bare repository", hint="git clone --bare . FOLDER creates one")
    if location.repository is None or not location.pinned:
        raise Invalid("this repository has no store", hint="run coord init in the repository first")
    pinned = write_pin(location._replace(folder=f"{target.commondir}/coord", repository=target))
    if (pinned.store_id, pinned.repository_id) != (location.store_id, location.repository_id):
        raise Invalid(
            f"{folder} is pinned to the locks of another repository",
            hint=f"remove {pinned.folder}/coord.id and {target.commondir}/coord.id if that is an error",
        )
    protected = tuple(protected) or read_journal(journal_folder(target)).protected or PROTECTED
    plan = plan_repository(target, {}, (), protected=protected, tenant=tenant)
    try:
        plan.apply(by=by)
    except OSError as error:
        raise Unavailable(f"{folder}: {error.strerror}", hint="check its owner and permissions") from error
    note_branches(Git(target.commondir), target.commondir, tuple(protected))
    hook = f"{target.commondir}/hooks/{SHARED_HOOK}"
    former = f"{hook}{FORMER_SUFFIX}"
    return SharedGate(target.commondir, hook, former if os.path.lexists(former) else "")
