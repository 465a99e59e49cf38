"""Large results: the data lies in chunks of its own, and the record of the result only names its digest.

    blob/<digest>        how long the data is, how many of its chunks are there, how many results refer to it
    blob/<digest>/<n>    one chunk

Chunks come in commits of their own and in order, before the commit that refers to them; that one counts the
reference. What nobody refers to leaves a day after it was last touched: data whose submission was refused or
never came, and that of results which were forgotten. Whoever sends the same data again meanwhile, after a
crash or for another task, goes on from what is there.
"""

import msgspec

from coord.core import keys
from coord.core.errors import Corrupt, Invalid, LimitReached
from coord.core.limits import DAY_MS, limits_of, result_bytes_max
from coord.core.tasks.commands import GetChunks, PutChunk
from coord.core.tasks.schema import Blob, Chunk
from coord.core.transaction import Transaction

CHUNK_BYTES = 192 * 1024 - 96
"""In base64, with what a record has around it, this is just below the 256 KiB of a record."""
KEPT_MS = DAY_MS
REMOVED_AT_ONCE = 16
"""How many chunks one sweep removes: to be expected they have to be loaded."""


def chunk_count(size: int) -> int:
    """Return how many chunks data of this size has."""
    return -(-size // CHUNK_BYTES)


def chunk_reads(command: PutChunk) -> list[str]:
    """Return what taking in a chunk is going to read."""
    return [keys.LIMITS, keys.blob(command.digest), keys.chunk(command.digest, command.number)]


def put_chunk(tx: Transaction, command: PutChunk, now: int) -> int:
    """Take in the next chunk; return how many are there, so that whoever sends knows how to go on."""
    key = keys.blob(command.digest)
    blob = tx.get(key, Blob) or Blob(size=command.size)
    limit = result_bytes_max(limits_of(tx, command.tenant))
    if command.size > limit:
        raise LimitReached(f"the data has {command.size} bytes; the limit is {limit}")
    length = min(CHUNK_BYTES, command.size - command.number * CHUNK_BYTES)
    if blob.size != command.size or len(command.data) != length:
        raise Invalid(f"chunk {command.number} is not of data of {blob.size} bytes", hint="cut it anew")
    if command.number == blob.chunks:
        tx.put(keys.chunk(command.digest, command.number), Chunk(data=command.data))
        blob = msgspec.structs.replace(blob, chunks=blob.chunks + 1)
        _put(tx, key, blob, now)
    elif not blob.references and blob.until_ms < now + KEPT_MS // 2:
        _put(tx, key, blob, now)
    return blob.chunks


def _put(tx: Transaction, key: str, blob: Blob, now: int) -> None:
    """Write what is known of data; if nobody refers to it, it has a day from now on."""
    until_ms = 0 if blob.references else now + KEPT_MS
    tx.put(
        key, msgspec.structs.replace(blob, until_ms=until_ms), "" if blob.references else keys.due(until_ms)
    )


def add_reference(tx: Transaction, digest: str, size: int, now: int) -> bool:
    """Count a record that refers to the data from now on; False if the data is not all there."""
    key = keys.blob(digest)
    blob = tx.get(key, Blob)
    if blob is None or blob.size != size or blob.chunks != chunk_count(size):
        return False
    _put(tx, key, msgspec.structs.replace(blob, references=blob.references + 1), now)
    return True


def drop_reference(tx: Transaction, digest: str, now: int) -> None:
    """Count a record off that referred to the data."""
    key = keys.blob(digest)
    blob = tx.get(key, Blob)
    if blob is not None and blob.references:
        _put(tx, key, msgspec.structs.replace(blob, references=blob.references - 1), now)


def remove_unreferenced(tx: Transaction, key: str, now: int) -> None:
    """Remove data that nobody referred to for a day, the last chunks first; the next sweep goes on."""
    blob = tx.get(key, Blob)
    if blob is None or blob.references:
        return
    digest = keys.parts(key)[-1]
    left = max(0, blob.chunks - REMOVED_AT_ONCE)
    for number in range(left, blob.chunks):
        tx.delete(keys.chunk(digest, number))
    if left:
        until_ms = now + 1
        tx.put(key, msgspec.structs.replace(blob, chunks=left, until_ms=until_ms), keys.due(until_ms))
    else:
        tx.delete(key)


def get_chunks(tx: Transaction, command: GetChunks, _now: int) -> list[bytes]:
    """Return some chunks in a row, all of them or none."""
    numbers = range(command.first, command.first + command.limit)
    tx.prefetch(*(keys.chunk(command.digest, number) for number in numbers))
    found = [tx.get(keys.chunk(command.digest, number), Chunk) for number in numbers]
    if not all(found):
        raise Corrupt(
            f"chunk {command.first + found.index(None)} of {command.digest} is missing",
            hint="the result cannot be read any more: reset its task",
        )
    return [chunk.data for chunk in found if chunk is not None]
