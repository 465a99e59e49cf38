"""`coord commit`."""

from types import SimpleNamespace

from coord.core import commands
from coord.core.errors import CoordError, Invalid
from coord.host.config import configuration_file, read_configuration
from coord.integrations.git.commit.commit import commit as commit_held
from coord.sdk.client.client import Client
from coord.transports.arguments import duration
from coord.transports.cli.output import Answer, fields_of, say


def commit(client: Client, given: SimpleNamespace) -> Answer:
    """Commit what this session holds."""
    timeout_s = given.hooks_timeout or _configured_timeout(client)
    done = commit_held(client, given.m, given.file, fence=given.fence, hooks_timeout_s=timeout_s, tell=say)
    fields = fields_of(done)
    for warning in done.warnings:
        say(f"Warning: {warning}")
    if given.unlock:
        fields["unlocked"] = _unlocked(client, done.locks)
    return Answer(fields, f"Committed ✓ {done.commit[:12]} {done.subject}")


def _configured_timeout(client: Client) -> float | None:
    """Return how long hooks may take by `coord.toml`; None: as long as they want."""
    file = configuration_file(client.place.repository)
    table = read_configuration(file).get("commit", {})
    text = table.get("hooks_timeout") if isinstance(table, dict) else table
    if text is None:
        return None
    if not isinstance(text, str | int) or isinstance(text, bool):
        raise Invalid(f"hooks_timeout in {file} is {text!r}", hint='[commit] hooks_timeout = "10m"')
    return duration(str(text))


def _unlocked(client: Client, resources: list[str]) -> list[str]:
    """Give locks back; one that was lost meanwhile is no reason to say that the commit failed."""
    try:
        command = commands.ReleaseLocks(client.caller, client.place.repository_id, tuple(resources))
        return list(client.call(command).released)
    except CoordError as error:
        say(f"Warning: {error.message}")
        return []
