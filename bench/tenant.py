"""One tenant that claims in batches: `python -m bench.tenant URL TENANT SECONDS BATCH`."""

import json
import sys
from time import perf_counter

from bench.children import ready
from bench.workload import Workplace


def main(url: str, tenant: str, seconds: str, size: str) -> None:
    with Workplace(url, tenant=tenant) as place:
        place.claim_batch(int(size))
        ready()
        until, claims = perf_counter() + float(seconds), 0
        while not claims or perf_counter() < until:
            claims += len(place.claim_batch(int(size))[1])
        print(json.dumps([claims, perf_counter()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
