"""A process that works in a files store and is told what to do (path, deed, how many).

count     count one up in a small and in a large record, many times, with snapshots all the while
trim      trim up to the head, once for every line it hears
snapshot  write half a snapshot, and wait to be killed
"""

import sys

from coord.core.errors import Conflict
from coord.stores.contract import Commit, Put
from coord.stores.files.io import FileLayer
from coord.stores.files.store import FilesDatabase, FilesStore
from coord.stores.log import snapshot

PADDING = b"." * 5000


class HalfASnapshot(FileLayer):
    """Stops for ever in the middle of writing a snapshot."""

    def write(self, file: int, data: bytes) -> None:
        if data.startswith(b"coord-snapshot"):
            super().write(file, data[:8])
            tell("half")
            sys.stdin.readline()
        super().write(file, data)


def count(store: FilesStore, times: int) -> None:
    while times:
        found = store.load(["small", "large"])
        number = int(found["small"].value or b"0") + 1
        expected_versions = {key: record.version for key, record in found.items()}
        puts = {"small": Put(b"%d" % number), "large": Put(b"%d" % number + PADDING)}
        try:
            store.commit(Commit(expected_versions, puts, [], [b"%d" % number], number))
            times -= 1
        except Conflict:
            continue


def trim(store: FilesStore) -> None:
    for _ in sys.stdin:
        store.trim(1 << 40)
        tell("trimmed", str(store.seen.offset))


def tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def main(path: str, deed: str, times: int) -> None:
    snapshot.SNAPSHOT_AFTER_BYTES = 20_000 if deed == "count" else snapshot.SNAPSHOT_AFTER_BYTES
    database = FilesDatabase("child", path, HalfASnapshot() if deed == "snapshot" else None)
    store = database.log("local")
    tell("ready")
    match deed:
        case "count":
            count(store, times)
        case "trim":
            trim(store)
        case "snapshot":
            store._bytes_since_base = 1 << 40
            count(store, 1)
    database.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
