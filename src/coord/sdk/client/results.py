"""Submit and fetch results; large ones travel in chunks and arrive whole or not at all."""

import os
from collections.abc import Iterable

import msgspec

from coord.core.errors import Corrupt, LimitReached, Unavailable
from coord.core.identity import Caller
from coord.core.ids import check_id, part_id, work_product_ref
from coord.core.limits import RECORD_RESULT_BYTES, RESULT_BYTES_MAX
from coord.core.tasks.chunks import CHUNK_BYTES, chunk_count
from coord.core.tasks.commands import AsSession, GetChunks, GetResult, PutChunk, SubmitResult, SubmitResults
from coord.core.tasks.schema import combine_results
from coord.core.tasks.types import SubmissionReason, SubmissionResult, TaskResult, derived_uuid
from coord.engine.engine import Engine

AT_ONCE = 8
"""The number of chunks in memory besides the data; they share a commit if they fit."""
TRIES = 3
STEP_RESULTS, STEP_BYTES = 250, 1024 * 1024
"""The number and the size of results that one step submits."""


def submit(
    engine: Engine,
    names: tuple[str, str, str],
    by: str | Caller,
    generation: int,
    data: bytes,
    command_id: str,
) -> SubmissionResult:
    """Submit a result as JSON, for a session id or for the session of a caller.

    Large data is sent only after all other checks passed, so that a refusal costs no transfer.
    """
    if command_id:  # not random: a repeated command must be identical
        unique = derived_uuid("command", check_id("command id", command_id))
    else:
        unique = os.urandom(16).hex()
    product = work_product_ref(names[2], generation, unique)
    session = by if isinstance(by, str) else ""
    if len(data) <= RECORD_RESULT_BYTES:
        command = SubmitResult(*names, session, generation, data, product)
    else:
        digest = digest_of(data)
        command = SubmitResult(*names, session, generation, b"", product, digest, len(data))
    asked = command if isinstance(by, str) else AsSession(by, command)
    for _ in range(TRIES):
        reply: SubmissionResult = engine.call(asked, command_id=command_id)
        if reply.reason is not SubmissionReason.DATA_MISSING:
            return reply
        send(engine, names[0], command.digest, data)
    raise Unavailable("the data of the result was removed while it was sent", hint="submit it again")


def submit_all(
    engine: Engine, by: Caller, results: Iterable[tuple[tuple[str, str, str], int, bytes]]
) -> list[SubmissionResult]:
    """Submit several results of a caller, as many per commit as fit; large ones one by one."""
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
    """Submit results in one commit, or in halves if their dependents make one commit too large."""
    try:
        replies: list[SubmissionResult] = engine.call(SubmitResults(by, tuple(step)))
    except LimitReached:
        half = len(step) // 2
        if not half:
            raise
        return _submit_step(engine, by, step[:half]) + _submit_step(engine, by, step[half:])
    return replies


def send(engine: Engine, tenant: str, digest: str, data: bytes) -> None:
    """Send large data to the store, continuing where an earlier attempt stopped."""
    there, size = 0, len(data)
    while there < chunk_count(size):
        # The first chunk goes alone: its reply says how many chunks an earlier attempt has sent.
        numbers = range(there, min(there + AT_ONCE, chunk_count(size)) if there else 1)
        chunks = [data[at * CHUNK_BYTES : (at + 1) * CHUNK_BYTES] for at in numbers]
        replies: list[int] = engine.call_many(
            [PutChunk(tenant, digest, size, at, chunk) for at, chunk in zip(numbers, chunks, strict=True)]
        )
        there = replies[-1]


def whole_result(engine: Engine, command: GetResult) -> tuple[TaskResult, bytes | None]:
    """Return an accepted result, and its data as JSON if it is large."""
    result: TaskResult = engine.call(command)
    if result.size_bytes <= RECORD_RESULT_BYTES:
        return result, None
    if result.size_bytes > RESULT_BYTES_MAX:
        raise LimitReached(
            f"the parts of {command.task} have {result.size_bytes} bytes in total",
            hint="fetch the result of each part",
        )
    if not result.part_generations:
        return result, fetch(engine, command.tenant, result.digest, result.size_bytes)
    parts = [
        _part(engine, GetResult(command.tenant, command.project, part_id(command.task, number), generation))
        if generation
        else None
        for number, generation in enumerate(result.part_generations, 1)
    ]
    return result, combine_results(parts)


def _part(engine: Engine, command: GetResult) -> bytes:
    result, data = whole_result(engine, command)
    return msgspec.json.encode(result.result_data) if data is None else data


def fetch(engine: Engine, tenant: str, digest: str, size: int) -> bytes:
    """Return large data exactly as it was sent, or raise `Corrupt`."""
    data = bytearray()
    count = chunk_count(size)
    for first in range(0, count, AT_ONCE):
        for chunk in engine.call(GetChunks(tenant, digest, first, min(AT_ONCE, count - first))):
            data += chunk
    if len(data) != size or digest_of(data) != digest:
        raise Corrupt(
            f"the data {digest} is damaged: it does not match its digest",
            hint="restore the store from a copy, or reset the task; nothing was changed",
        )
    return bytes(data)


def digest_of(data: bytes | bytearray) -> str:
    """Return the name of large data: its SHA-256."""
    from hashlib import sha256  # slow to import; few results are large

    return sha256(data).hexdigest()
