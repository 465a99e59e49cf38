"""A process that drains a queue: `python -m bench.drainer NAME URL REPOSITORY WORKERS SESSION`."""

import json
import sys
from pathlib import Path

from bench.children import ready
from bench.peers import QUEUES


def main(name: str, url: str, repository: str, workers: str, session: str) -> None:
    queue = QUEUES[name](url, Path(repository), session)
    ready()
    print(json.dumps(queue.drain(int(workers))), flush=True)
    queue.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
