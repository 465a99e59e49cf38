"""A transaction reads through its own writes, weighs them, and can take all of them back."""

from coord.core.events import Event
from coord.core.limits import Count
from coord.core.records import encode
from coord.core.transaction import WRITE_BYTES, Transaction, Written
from tests.support.rule_harness import Kept, RuleHarness


class Counted(Event, frozen=True, tag="test.counted"):
    """An event of this test."""

    n: int


def source() -> RuleHarness:
    """Five records, numbered by key."""
    harness = RuleHarness()
    harness.records = {f"count/{n}": Kept(encode(Count(n=n)), f"due/{n}") for n in range(5)}
    return harness


def keys_in(tx: Transaction, limit: int = 10) -> list[str]:
    return [found.key for found in tx.scan("count/", limit=limit)]


def test_a_rule_sees_what_it_wrote_itself() -> None:
    tx = Transaction(source())
    tx.put("count/1", Count(n=10))
    tx.delete("count/2")
    found = [tx.get(f"count/{n}", Count) for n in range(3)]
    assert found == [Count(n=0), Count(n=10), None]
    assert keys_in(tx) == ["count/0", "count/1", "count/3", "count/4"]
    assert tx.version("count/1") == 0, "written by this command"
    assert tx.version("count/0") == 1


def test_only_reads_of_the_source_are_remembered() -> None:
    """They are what the commit has to find unchanged; an own write needs no such check."""
    tx = Transaction(source())
    tx.put("count/0", Count(n=7))
    tx.get("count/0", Count)
    tx.get("count/1", Count)
    tx.get("absent", Count)
    assert tx.reads == ["count/1", "absent"]


def test_what_the_batch_knows_is_not_asked_for() -> None:
    harness = source()
    harness.known = {"count/0": Written(Count(n=99), b"", "")}
    assert Transaction(harness).get("count/0", Count) == Count(n=99)


def test_pages_go_through_a_range_to_its_end() -> None:
    """Records of a page may be deleted before the next page is read; pages double in length."""
    tx = Transaction(source())
    seen = []
    for page in tx.pages("count/", limit=1):
        seen.append([found.key for found in page])
        for found in page:
            tx.delete(found.key)
    assert seen == [["count/0"], ["count/1", "count/2"], ["count/3", "count/4"]]
    assert keys_in(tx) == []


def test_the_size_counts_the_last_value_of_each_key() -> None:
    tx = Transaction(source())
    tx.put("a", Count(n=1_000_000), "due/1")
    tx.put("a", Count(n=1))
    data = len(encode(Count(n=1)))
    assert tx.size == len("a") + data + WRITE_BYTES
    tx.delete("b")
    tx.put_marker("c")
    assert tx.size == data + 3 * (1 + WRITE_BYTES)
    before = tx.size
    tx.emit(Counted(5))
    assert tx.size == before + len(tx.events[0])


def test_withdraw_takes_back_all_writes_and_keeps_the_reads() -> None:
    tx = Transaction(source())
    tx.get("count/0", Count)
    tx.put("count/0", Count(n=7))
    tx.emit(Counted(7))
    tx.withdraw()
    assert (tx.writes, tx.events, tx.size, tx.reads) == ({}, [], 0, ["count/0"])
    assert tx.get("count/0", Count) == Count(n=0)
