"""Open stores for the tests of the contract."""

from tests.support.stores.fixtures import database, open_database, relay, store, strace, thread, two_stores

__all__ = ["database", "open_database", "relay", "store", "strace", "thread", "two_stores"]
