"""`python -m bench.contender PEER URL REPOSITORY SESSION ROUNDS`: one of the processes that want one lock.

It says when it is ready, begins when it is told to, and prints when it asked, got and gave back each time.
"""

import json
import sys
from pathlib import Path
from time import monotonic

from bench.children import ready
from bench.lock_peers import Peer, Rival


def contend(peer: Peer, rounds: int) -> list[tuple[float, float, float]]:
    """Take and give back, again and again; return the moments (the clock is the same in all processes)."""
    turns = []
    for _ in range(rounds):
        asked = monotonic()
        peer.acquire()
        granted = monotonic()
        peer.release()
        turns.append((asked, granted, monotonic()))
    return turns


def main(name: str, url: str, repository: str, session: str, rounds: str) -> None:
    peer = Rival(name, url).open(Path(repository), session)
    ready()
    turns = contend(peer, int(rounds))
    peer.close()
    print(json.dumps(turns))


if __name__ == "__main__":
    main(*sys.argv[1:])
