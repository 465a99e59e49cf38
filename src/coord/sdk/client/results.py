"""Results on their way into a store and out of it: large ones in chunks, whole or not at all."""

import os
from collections.abc import Iterable

import msgspec

from coord.core.errors import Corrupt, LimitReached, Unavailable
from coord.core.identity import Caller
from coord.core.ids import check_id, part_id, work_product_ref
from coord.core.limits import RECORD_RESULT_BYTES, RESULT_BYTES_MAX
from coord.core.tasks.chunks import CHUNK_BYTES, chunks_of
from coord.core.tasks.commands import AsSession, GetChunks, GetResult, PutChunk, SubmitResult, SubmitResults
from coord.core.tasks.result_records import merged
from coord.core.tasks.types import SubmissionReason, SubmissionResult, TaskResult, derived_uuid
from coord.engine.engine import Engine

AT_ONCE = 8
"""How many chunks are in memory at once besides the data, and travel in one commit where it has room."""
TRIES = 3
STEP_RESULTS, STEP_BYTES = 250, 1024 * 1024
"""How many results one step hands in, and how much of them."""


def submit(
    engine: Engine,
    names: tuple[str, str, str],
    by: str | Caller,
    generation: int,
    data: bytes,
    command_id: str,
) -> SubmissionResult:
    """Hand in a result as JSON, for a session or for that of a caller.

    Large data is sent only when all else is in order: who would be refused anyway is told before.
    """
    if command_id:  # nothing random: the same command must not differ when it is sent again
        unique = derived_uuid("command", check_id("command id", command_id))
    else:
        unique = os.urandom(16).hex()
    product = work_product_ref(names[2], generation, unique)
    session = by if isinstance(by, str) else ""
    if len(data) <= RECORD_RESULT_BYTES:
        command = SubmitResult(*names, session, generation, data, product)
    else:
        digest = _digest(data)
        command = SubmitResult(*names, session, generation, b"", product, digest, len(data))
    asked = command if isinstance(by, str) else AsSession(by, command)
    for _ in range(TRIES):
        reply: SubmissionResult = engine.call(asked, command_id=command_id)
        if reply.reason is not SubmissionReason.DATA_MISSING:
            return reply
        send(engine, names[0], command.digest, data)
    raise Unavailable("the data of the result is removed as fast as it comes", hint="submit it again")


def submit_all(
    engine: Engine, by: Caller, results: Iterable[tuple[tuple[str, str, str], int, bytes]]
) -> list[SubmissionResult]:
    """Hand in several results of a caller, as many in one commit as it holds; large ones one by one."""
    replies: list[SubmissionResult] = []
    step: list[SubmitResult] = []
    size = 0
    for names, generation, data in results:
        large = len(data) > RECORD_RESULT_BYTES
        if step and (large or size + len(data) > STEP_BYTES or len(step) == STEP_RESULTS):
            replies += _submit_step(engine, by, step)
            step, size = [], 0
        if large:
            replies.append(submit(engine, names, by, generation, data, ""))
            continue
        product = work_product_ref(names[2], generation, os.urandom(16).hex())
        step.append(SubmitResult(*names, "", generation, data, product))
        size += len(data)
    return replies + (_submit_step(engine, by, step) if step else [])


def _submit_step(engine: Engine, by: Caller, step: list[SubmitResult]) -> list[SubmissionResult]:
    """Hand in results in one commit; in two, if they change too much for one: many may wait for each task."""
    try:
        replies: list[SubmissionResult] = engine.call(SubmitResults(by, tuple(step)))
    except LimitReached:
        half = len(step) // 2
        if not half:
            raise
        return _submit_step(engine, by, step[:half]) + _submit_step(engine, by, step[half:])
    return replies


def send(engine: Engine, tenant: str, digest: str, data: bytes) -> None:
    """Bring large data into the store, going on from what is there of it."""
    there, size = 0, len(data)
    while there < chunks_of(size):
        # The first chunk by itself, as a question: an earlier attempt may have brought most of the others.
        numbers = range(there, min(there + AT_ONCE, chunks_of(size)) if there else 1)
        pieces = [data[at * CHUNK_BYTES : (at + 1) * CHUNK_BYTES] for at in numbers]
        replies: list[int] = engine.call_many(
            [PutChunk(tenant, digest, size, at, piece) for at, piece in zip(numbers, pieces, strict=True)]
        )
        there = replies[-1]


def whole_result(engine: Engine, command: GetResult) -> tuple[TaskResult, bytes | None]:
    """Return an accepted result; if its data is large, also that, as JSON."""
    result: TaskResult = engine.call(command)
    if result.size_bytes <= RECORD_RESULT_BYTES:
        return result, None
    if result.size_bytes > RESULT_BYTES_MAX:
        raise LimitReached(
            f"the parts of {command.task} have {result.size_bytes} bytes together",
            hint="look at the result of each part",
        )
    if not result.part_generations:
        return result, fetch(engine, command.tenant, result.digest, result.size_bytes)
    parts = [
        _part(engine, GetResult(command.tenant, command.project, part_id(command.task, number), generation))
        if generation
        else None
        for number, generation in enumerate(result.part_generations, 1)
    ]
    return result, merged(parts)


def _part(engine: Engine, command: GetResult) -> bytes:
    result, data = whole_result(engine, command)
    return msgspec.json.encode(result.result_data) if data is None else data


def fetch(engine: Engine, tenant: str, digest: str, size: int) -> bytes:
    """Return large data as it was sent, or raise `Corrupt`."""
    data = bytearray()
    count = chunks_of(size)
    for first in range(0, count, AT_ONCE):
        for piece in engine.call(GetChunks(tenant, digest, first, min(AT_ONCE, count - first))):
            data += piece
    if len(data) != size or _digest(data) != digest:
        raise Corrupt(
            f"the data {digest} is damaged: its content is not what its name says",
            hint="restore the store from a copy, or reset the task; nothing was changed",
        )
    return bytes(data)


def _digest(data: bytes | bytearray) -> str:
    from hashlib import sha256  # slow to import, and few results are large

    return sha256(data).hexdigest()
