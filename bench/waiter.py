"""`python -m bench.waiter URL REPOSITORY`: waits for the lock whenever told to; prints when it got it."""

import sys
from pathlib import Path
from time import monotonic

from bench.repository import PATH, PATIENCE_S, open_client


def main(url: str, repository: str) -> None:
    with open_client(url, Path(repository), "waiter") as client:
        print("ready", flush=True)
        for _ in sys.stdin:
            assert client.acquire(PATH, wait_s=PATIENCE_S).ok
            granted = monotonic()
            client.unlock(PATH)
            print(granted, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
