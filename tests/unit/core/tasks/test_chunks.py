"""Large results in chunks: they arrive in order, are counted, and leave when no result refers to them."""

import pytest

from coord.core import keys
from coord.core.errors import Corrupt, Invalid, LimitReached
from coord.core.tasks.chunks import CHUNK_BYTES, KEPT_MS, REMOVE_MAX
from coord.core.tasks.commands import GetChunks, PutChunk
from coord.core.tasks.schema import Blob, Chunk
from tests.support.rule_harness import T0, RuleHarness

DIGEST = "d" * 64
SIZE = 2 * CHUNK_BYTES + 10


def put(harness: RuleHarness, number: int, *, size: int = SIZE, length: int = 0, now: int = T0) -> int:
    """Send a chunk; return how many there are."""
    data = b"x" * (length or min(CHUNK_BYTES, size - number * CHUNK_BYTES))
    count: int = harness.run(PutChunk(harness.tenant, DIGEST, size, number, data), now).reply
    return count


def test_chunks_arrive_in_order_and_once() -> None:
    """The reply says where to go on, also after a chunk was sent twice or too early."""
    harness = RuleHarness()
    assert [put(harness, number) for number in (0, 0, 2, 1, 2)] == [1, 1, 1, 2, 3]
    found = harness.run(GetChunks(harness.tenant, DIGEST, 0, 3)).reply
    assert sum(map(len, found)) == SIZE


def test_a_chunk_of_another_size_is_refused() -> None:
    harness = RuleHarness()
    put(harness, 0)
    with pytest.raises(Invalid, match="chunk 1 does not fit into data"):
        put(harness, 1, length=5)
    with pytest.raises(Invalid, match="chunk 1 does not fit into data"):
        put(harness, 1, size=SIZE + CHUNK_BYTES)
    assert harness.read(keys.blob(DIGEST), Blob).chunks == 1


def test_data_above_the_limit_is_refused_with_its_first_chunk() -> None:
    harness = RuleHarness("acme")
    harness.set_limits(max_result_size_bytes=SIZE - 1)
    with pytest.raises(LimitReached, match=f"the result has {SIZE} bytes"):
        put(harness, 0)
    assert harness.keys("blob/") == []


def test_a_missing_chunk_is_corruption() -> None:
    harness = RuleHarness()
    put(harness, 0)
    with pytest.raises(Corrupt, match="chunk 1 of"):
        harness.run(GetChunks(harness.tenant, DIGEST, 0, 2))


def test_data_that_no_result_refers_to_is_removed_after_a_day() -> None:
    """One sweep removes a part, the last chunks first; the next sweep removes the rest."""
    harness = RuleHarness()
    many = REMOVE_MAX + 2
    for number in range(many):
        put(harness, number, size=many * CHUNK_BYTES)
    harness.sweep(now=T0 + KEPT_MS - 1)
    assert harness.read(keys.blob(DIGEST), Blob).chunks == many
    harness.sweep(now=T0 + KEPT_MS)
    assert harness.read(keys.blob(DIGEST), Blob).chunks == 2
    assert harness.get(keys.chunk(DIGEST, 1), Chunk) is not None
    assert harness.get(keys.chunk(DIGEST, 2), Chunk) is None
    harness.sweep(now=T0 + KEPT_MS + 1)
    assert harness.keys("blob/") == []
