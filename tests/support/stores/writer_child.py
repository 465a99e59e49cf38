"""A process that commits until it is killed, telling before and after each commit (url, name, how many).

Every commit counts one up in all keys of a set and moves one key in and out of existence, so that whatever is
half applied shows.
"""

import sys

from coord.core.errors import Conflict, Unavailable, Unknown
from coord.stores.contract import Commit, Put, Record, Store
from coord.stores.open import open_store

SET = [f"set/{number}" for number in range(5)]
FLICKER = "flicker"


def main(url: str, name: str, commits: int) -> None:
    store: Store = open_store(url).log("local")
    tell("ready")
    done = 0
    while done < commits:
        try:
            done += commit_next(store, name)
        except Conflict:
            continue
        except (Unavailable, Unknown) as error:
            tell(error.code, str(error).replace("\n", " "))
            return
    tell("end")


def commit_next(store: Store, name: str) -> int:
    """Commit the next number; tell before and after."""
    found = store.load([*SET, FLICKER])
    number = int(found[SET[0]].value or b"0") + 1
    tell("begin", str(number))
    offset = store.commit(next_commit(found, number, f"{name}-{number}".encode()))
    tell("done", str(number), str(offset))
    return 1


def next_commit(found: dict[str, Record], number: int, commit_id: bytes) -> Commit:
    """Return the commit of a number: it is there when the number is odd, and gone when it is even."""
    index_key = f"line/{number % 3}"
    puts = {key: Put(b"%d" % number, index_key) for key in SET}
    deletes = [] if number % 2 else [FLICKER]
    if number % 2:
        puts[FLICKER] = Put(b"%d" % number)
    expected_versions = {key: record.version for key, record in found.items()}
    return Commit(expected_versions, puts, deletes, [b"%d" % number], number * 1000, commit_id)


def tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
