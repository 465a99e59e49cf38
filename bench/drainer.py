"""A process that drains a queue: `python -m bench.drainer NAME URL REPOSITORY WORKERS SESSION`."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.children import ready
from bench.queue_ours import OURS
from bench.queue_peers import PEERS

QUEUES: Mapping[str, Callable[[str, Path, str], Any]] = {**OURS, **PEERS}


def main(name: str, url: str, repository: str, workers: str, session: str) -> None:
    queue = QUEUES[name](url, Path(repository), session)
    ready()
    print(json.dumps(queue.drain(int(workers))), flush=True)
    queue.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
