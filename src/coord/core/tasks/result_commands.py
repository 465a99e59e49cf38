"""What can be asked about the data of results; handing one in stands in `commands.py`."""

from coord.core.commands import Command, TaskCommand
from coord.core.tasks import types


class PutChunk(Command, frozen=True):
    """Bring a piece of large data, which is named by the SHA-256 of all of it."""

    reply = int
    tenant: str
    digest: str
    size: int
    number: int
    data: bytes


class GetChunks(Command, frozen=True):
    """Ask for pieces of large data."""

    reply = list[bytes]
    reads_only = True
    tenant: str
    digest: str
    first: int
    most: int


class GetResult(TaskCommand, frozen=True):
    """Ask for the accepted result of a task, of an earlier generation where one is named."""

    reply = types.TaskResult
    reads_only = True
    generation: int = 0
