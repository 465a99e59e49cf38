"""Commands about work that was put aside."""

import os
from types import SimpleNamespace

from coord.agents.git import checkpoint
from coord.agents.git.run import Git
from coord.agents.git.salvage import kept
from coord.sdk.client import Client
from coord.transports.cli.output import Answer, say

COLUMNS = ("ref", "at", "why")


def list_(_options: SimpleNamespace, _given: SimpleNamespace) -> Answer:
    """List what was put aside."""
    rows = [each._asdict() for each in kept(Git(os.getcwd()))]
    return Answer({"salvage": rows}, f"{len(rows)} put aside", rows, COLUMNS)


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
