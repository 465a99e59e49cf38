"""`coord commit`."""

from types import SimpleNamespace

from coord.agents.git.commit import commit as commit_held
from coord.core import commands
from coord.core.errors import CoordError
from coord.sdk.client import Client
from coord.transports.cli.output import Answer, fields_of, say


def commit(client: Client, given: SimpleNamespace) -> Answer:
    """Commit what this session holds."""
    done = commit_held(client, given.m, given.file, fence=given.fence)
    fields = fields_of(done)
    for warning in done.warnings:
        say(f"Warning: {warning}")
    if given.unlock:
        fields["unlocked"] = _unlocked(client, done.locks)
    return Answer(fields, f"Committed ✓ {done.commit[:12]} {done.subject}")


def _unlocked(client: Client, resources: list[str]) -> list[str]:
    """Give locks back; one that was lost meanwhile is no reason to say that the commit failed."""
    try:
        command = commands.ReleaseLocks(client.caller, client.place.repository_id, tuple(resources))
        return list(client.call(command).released)
    except CoordError as error:
        say(f"Warning: {error.message}")
        return []
