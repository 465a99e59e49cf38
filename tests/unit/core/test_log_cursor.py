"""The cursor of a follower of the log."""

from coord.core import keys
from coord.core.log_cursor import Cursor, SetCursor
from tests.support.rule_harness import T0, RuleHarness


def test_a_cursor_only_moves_forwards() -> None:
    """A follower that starts again cannot take back what it has read; it can be removed."""
    harness = RuleHarness()
    assert [harness.run(SetCursor("ledger", offset)).reply for offset in (4, 9, 2)] == [4, 9, 9]
    assert harness.read(keys.cursor("ledger"), Cursor) == Cursor(9, T0)
    harness.run(SetCursor("ledger", -1))
    assert not harness.keys("cursor/")
