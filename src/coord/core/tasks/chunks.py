"""Large results: the data is stored in chunks, and the record of the result names its digest.

    blob/<digest>        the size, the number of chunks stored, the number of results that refer to the data
    blob/<digest>/<n>    one chunk

A client sends the chunks in order, one commit each, and then submits the result, which adds a reference.
The sweep removes data a day after its last use if no result refers to it: the submission was rejected or
never came, or the results were deleted. A client that sends the same data again continues after the chunks
that are stored.
"""

import msgspec

from coord.core import keys
from coord.core.errors import Corrupt, Invalid, LimitReached
from coord.core.limits import DAY_MS, limits_of, result_bytes_max
from coord.core.tasks.commands import GetChunks, PutChunk
from coord.core.tasks.schema import Blob, Chunk
from coord.core.transaction import Transaction

CHUNK_BYTES = 192 * 1024 - 96
"""As base64 in a record, this stays just below the limit of 256 KiB."""
KEPT_MS = DAY_MS
REMOVE_MAX = 16
"""The number of chunks that one sweep removes: each has to be loaded first."""


def chunk_count(size: int) -> int:
    """Return the number of chunks of data of this size."""
    return -(-size // CHUNK_BYTES)


def chunk_reads(command: PutChunk) -> list[str]:
    """Return the keys that storing a chunk reads."""
    return [keys.LIMITS, keys.blob(command.digest), keys.chunk(command.digest, command.number)]


def put_chunk(tx: Transaction, command: PutChunk, now: int) -> int:
    """Store the next chunk; return the number of chunks stored, which is where the client continues."""
    key = keys.blob(command.digest)
    blob = tx.get(key, Blob) or Blob(size=command.size)
    limit = result_bytes_max(limits_of(tx, command.tenant))
    if command.size > limit:
        raise LimitReached(f"the result has {command.size} bytes; the limit is {limit}")
    length = min(CHUNK_BYTES, command.size - command.number * CHUNK_BYTES)
    if blob.size != command.size or len(command.data) != length:
        raise Invalid(
            f"chunk {command.number} does not fit into data of {blob.size} bytes", hint="split the data again"
        )
    if command.number == blob.chunks:
        tx.put(keys.chunk(command.digest, command.number), Chunk(data=command.data))
        blob = msgspec.structs.replace(blob, chunks=blob.chunks + 1)
        _put(tx, key, blob, now)
    elif not blob.references and blob.until_ms < now + KEPT_MS // 2:
        _put(tx, key, blob, now)
    return blob.chunks


def _put(tx: Transaction, key: str, blob: Blob, now: int) -> None:
    """Write the head of large data; without references it expires in a day."""
    until_ms = 0 if blob.references else now + KEPT_MS
    tx.put(
        key, msgspec.structs.replace(blob, until_ms=until_ms), "" if blob.references else keys.due(until_ms)
    )


def add_reference(tx: Transaction, digest: str, size: int, now: int) -> bool:
    """Count a result that refers to the data; return False if chunks are missing."""
    key = keys.blob(digest)
    blob = tx.get(key, Blob)
    if blob is None or blob.size != size or blob.chunks != chunk_count(size):
        return False
    _put(tx, key, msgspec.structs.replace(blob, references=blob.references + 1), now)
    return True


def drop_reference(tx: Transaction, digest: str, now: int) -> None:
    """Count off a result that referred to the data."""
    key = keys.blob(digest)
    blob = tx.get(key, Blob)
    if blob is not None and blob.references:
        _put(tx, key, msgspec.structs.replace(blob, references=blob.references - 1), now)


def remove_unreferenced(tx: Transaction, key: str, now: int) -> None:
    """Remove data without references, the last chunks first; the next sweep continues."""
    blob = tx.get(key, Blob)
    if blob is None or blob.references:
        return
    digest = keys.parts(key)[-1]
    left = max(0, blob.chunks - REMOVE_MAX)
    for number in range(left, blob.chunks):
        tx.delete(keys.chunk(digest, number))
    if left:
        until_ms = now + 1
        tx.put(key, msgspec.structs.replace(blob, chunks=left, until_ms=until_ms), keys.due(until_ms))
    else:
        tx.delete(key)


def get_chunks(tx: Transaction, command: GetChunks, _now: int) -> list[bytes]:
    """Return consecutive chunks, all of them or an error."""
    numbers = range(command.first, command.first + command.limit)
    tx.prefetch(*(keys.chunk(command.digest, number) for number in numbers))
    found = [tx.get(keys.chunk(command.digest, number), Chunk) for number in numbers]
    if not all(found):
        raise Corrupt(
            f"chunk {command.first + found.index(None)} of {command.digest} is missing",
            hint="the result is lost; reset its task",
        )
    return [chunk.data for chunk in found if chunk is not None]
