"""Submit and read results of any size over HTTP: large ones are stored in chunks, as by every client."""

import os

import msgspec

from coord.core.errors import Unavailable
from coord.core.ids import work_product_ref
from coord.core.limits import RECORD_RESULT_BYTES
from coord.core.tasks.commands import GetResult, SubmitResult
from coord.core.tasks.types import SubmissionReason, SubmissionResult, TaskResult, derived_uuid
from coord.sdk.client.results import TRIES, digest_of, send, whole_result
from coord.transports.hub.api.endpoint import Asking
from coord.transports.hub.identity import check_command

Key = tuple[str, str, str]


def submission(key: Key, session: str, generation: int, data: bytes, command_id: str) -> SubmitResult:
    """Return the command that submits a result; the data of a large one goes ahead of it."""
    unique = derived_uuid("command", command_id) if command_id else os.urandom(16).hex()
    product = work_product_ref(key[2], generation, unique)
    if len(data) <= RECORD_RESULT_BYTES:
        return SubmitResult(*key, session, generation, data, product)
    return SubmitResult(*key, session, generation, b"", product, digest_of(data), len(data))


async def submit(
    asking: Asking, key: Key, session: str, generation: int, data: bytes, command_id: str | None = None
) -> SubmissionResult:
    """Submit a result; large data is stored only after all other checks passed."""
    name = asking.command_id if command_id is None else command_id
    command = submission(key, session, generation, data, name)
    for _ in range(TRIES):
        reply: SubmissionResult = await asking.ask(command, command_id=name)
        if reply.reason is not SubmissionReason.DATA_MISSING:
            return reply
        await asking.hub.stores.run(send, await asking.engine(), asking.tenant, command.digest, data)
    raise Unavailable("the data of the result was removed while it was sent", hint="submit it again")


async def read_result(asking: Asking, command: GetResult) -> TaskResult:
    """Return the accepted result of a task with all its data."""
    allowed = check_command(asking.identity, command)
    result, data = await asking.hub.stores.run(whole_result, await asking.engine(), allowed)
    found: TaskResult = result
    if data is None:
        return found
    return msgspec.structs.replace(found, result_data=msgspec.Raw(data))
