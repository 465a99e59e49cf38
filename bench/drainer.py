"""One process that drains a queue: `python -m bench.drainer NAME URL REPOSITORY SESSION`."""

import sys
from pathlib import Path
from time import perf_counter

from bench.queue_peers import QUEUES


def main(name: str, url: str, repository: str, session: str) -> None:
    queue = QUEUES[name](url, Path(repository), session)
    print("ready", flush=True)
    sys.stdin.readline()
    taken = queue.drain()
    print(taken, perf_counter(), flush=True)
    queue.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
