"""A process that increments shared counters and reports every acknowledged commit (url, name, how many)."""

import json
import random
import sys
import time

from coord.core.errors import Conflict, Unavailable
from coord.stores.contract import Commit, Put, Store
from coord.stores.open import open_store

COUNTERS = [f"counter/{number}" for number in range(4)]


def main(url: str, name: str, commits: int) -> None:
    choice = random.Random(name)
    tell("ready")
    sys.stdin.readline()
    database = open_store(url)
    tell("store", database.store_id)
    store: Store = database.log("local")
    for number in range(commits):
        keys = choice.sample(COUNTERS, 2)
        commit_id = f"{name}-{number}"
        began = time.monotonic_ns()
        offset = increment(store, keys, commit_id)
        ended = time.monotonic_ns()
        report = {"id": commit_id, "offset": offset, "keys": keys, "began": began, "ended": ended}
        tell("commit", json.dumps(report))
    database.close()
    tell("end")


def tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def increment(store: Store, keys: list[str], commit_id: str) -> int:
    """Add one to two counters; a third of the same log is only read, and expected all the same."""
    while True:
        try:
            found = store.load(COUNTERS)
            expected_versions = {
                key: record.version for key, record in found.items() if key in keys or key == COUNTERS[0]
            }
            puts = {key: Put(b"%d" % (int(found[key].value or b"0") + 1)) for key in keys}
            return store.commit(
                Commit(expected_versions, puts, [], [commit_id.encode()], 0, commit_id.encode())
            )
        except (Conflict, Unavailable):  # nothing happened: look again
            continue


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
