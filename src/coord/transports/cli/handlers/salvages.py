"""Commands about work that was put aside."""

import os
from types import SimpleNamespace

from coord.integrations.git.run import Git
from coord.integrations.git.salvage import checkpoint
from coord.integrations.git.salvage import drop as salvage_drop
from coord.integrations.git.salvage.salvage import kept
from coord.sdk.client.client import Client
from coord.transports.cli.output import Answer, fields_of, say

COLUMNS = ("ref", "at", "why")


def list_(_options: SimpleNamespace, _given: SimpleNamespace) -> Answer:
    """List what was put aside."""
    rows = [each._asdict() for each in kept(Git(os.getcwd()))]
    return Answer({"salvage": rows}, f"{len(rows)} put aside", rows, COLUMNS)


def show(_options: SimpleNamespace, given: SimpleNamespace) -> Answer:
    """Show one thing that was put aside."""
    found = salvage_drop.look(Git(os.getcwd()), given.ref)
    has = "a branch has all of it" if found.in_branch else "no branch has all of it"
    line = f"{found.ref}, {found.at}: {found.why}; {has}"
    return Answer({"salvage": fields_of(found)}, line, found.files, ("state", "path"))


def drop(_options: SimpleNamespace, given: SimpleNamespace) -> Answer:
    """Give up what some refs hold."""
    return _dropped(salvage_drop.drop(Git(os.getcwd()), given.ref, force=given.force))


def prune(_options: SimpleNamespace, given: SimpleNamespace) -> Answer:
    """Give up what is old, or in a branch."""
    git, older_s = Git(os.getcwd()), given.older_than
    found = salvage_drop.prune(git, older_s=older_s, merged=given.merged, dry_run=given.dry_run)
    return _dropped(found, "would be " if given.dry_run else "")


def _dropped(found: list[salvage_drop.PutAside], would: str = "") -> Answer:
    rows = [{"ref": each.ref, "commit": each.commit, "why": each.why} for each in found]
    if found and not would:
        say("Until git collects garbage: git update-ref REF COMMIT brings one back")
    return Answer({"dropped": rows}, f"{len(rows)} {would}dropped", rows, ("ref", "commit", "why"))


def keep(client: Client, given: SimpleNamespace) -> Answer:
    """Put a copy of what this session changed aside."""
    ref = checkpoint.keep_held(client, given.why)
    return Answer({"ref": ref}, f"Kept in {ref}" if ref else "Nothing that this session holds is changed")


def restore(client: Client, given: SimpleNamespace) -> Answer:
    """Bring files back."""
    restored, before = checkpoint.restore(client, given.ref, given.file)
    if before:
        say(f"What was there is in {before}")
    return Answer({"restored": restored, "before": before}, f"Restored {', '.join(restored)}")
