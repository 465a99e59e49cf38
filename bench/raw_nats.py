"""The raw limit of NATS: the very bytes of the store's entries, each put at the place it expects.

One plain connection; per commit one message to a stream of the same settings, and its answer. No fold, no
question for what others did, no ring.
"""

from time import perf_counter

from bench.workload import TENANT
from coord.stores.contract import Commit
from coord.stores.nats.address import Address
from coord.stores.nats.entries import encode_entry, new_token
from coord.stores.nats.jetstream import NatsServer
from coord.stores.nats.protocol import Question


class RawNats:
    """One connection to one stream."""

    def __init__(self, url: str) -> None:
        address = Address(url)
        self._server = NatsServer(address)
        self._server.create(address.log_stream(TENANT), [address.log_subject(TENANT)], 1)
        self._subject = address.log_subject(TENANT)
        self._place = 0

    def play(self, commits: list[Commit]) -> float:
        prepared = [self._question(commit) for commit in commits]
        connection = self._server.connected()
        began = perf_counter()
        for question in prepared:
            connection.ask(question)
        return perf_counter() - began

    def _question(self, commit: Commit) -> Question:
        expected = {"Nats-Expected-Last-Sequence": str(self._place)}
        self._place += 1
        data = encode_entry(new_token(), new_token(), self._place, commit)
        return Question(self._subject, data, expected)

    def close(self) -> None:
        self._server.close()
