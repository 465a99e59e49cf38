"""Commands about gates of git."""

from types import SimpleNamespace

from coord.sdk.client.client import Client
from coord.transports.cli.output import Answer


def gate(client: Client, given: SimpleNamespace) -> Answer:
    """Put the gate before a shared bare repository."""
    from coord.integrations.setup.shared_gate import share

    shared = share(client.place, given.folder, given.protect, tenant=client.tenant, by=client.caller.tool)
    return Answer(
        shared._asdict(), f"Pushes to {shared.folder} are judged by the locks and claims of this repository"
    )
