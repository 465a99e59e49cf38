"""Connections whose peer does not read are dropped; slow readers are not."""

from typing import Any

from coord.transports.hub.protocols.stalled import PROGRESS_BYTES, StalledConnections


class Connection:
    """A connection, and how much its peer has left unread."""

    def __init__(self, unread: int) -> None:
        self.unread = unread
        self.aborted = False
        self.transport: Any = self

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.aborted = True


def test_only_those_that_do_not_read_are_dropped() -> None:
    idle, stuck, dripping, slow = Connection(0), Connection(10**6), Connection(10**6), Connection(10**6)
    everybody = [idle, stuck, dripping, slow]
    stalled = StalledConnections()
    assert stalled.drop(everybody) == 0
    dripping.unread -= 1
    slow.unread -= PROGRESS_BYTES
    assert stalled.drop(everybody) == 2
    assert [each.aborted for each in everybody] == [False, True, True, False]


def test_what_was_read_in_between_counts() -> None:
    one = Connection(500)
    stalled = StalledConnections()
    stalled.drop([one])
    one.unread = 0
    assert stalled.drop([one]) == 0
    one.unread = 500
    assert stalled.drop([one]) == 0
    assert stalled.drop([one]) == 1
