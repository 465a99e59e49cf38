"""Several processes on one store at once: nothing is lost, and all see one order."""

import json
import threading
from collections import Counter
from typing import Any

from coord.core.errors import Conflict
from coord.stores.contract import Commit, Put, Store
from coord.stores.open import open_store
from tests.conftest import SOAK
from tests.support.stores.counter_child import COUNTERS
from tests.support.stores.processes import Child, children
from tests.support.stores.steps import PLENTY

PROCESSES = 6
COMMITS = 300 if SOAK else 25
Report = dict[str, Any]


def reports_of(child: Child) -> list[Report]:
    return [json.loads(line.removeprefix("commit ")) for line in child.lines if line.startswith("commit ")]


def run_counters(url: str) -> list[Child]:
    """Let the processes open the store and count, all at once."""
    with children(
        "counter_child", *((url, f"p{number}", str(COMMITS)) for number in range(PROCESSES))
    ) as started:
        for child in started:
            child.hear_until("ready")
        for child in started:
            child.say("go")
        assert [child.finish() for child in started] == [0] * PROCESSES
        return started


def test_processes_lose_no_update_and_share_one_order(shared_url: str) -> None:
    """Counters end where the acknowledged commits say; offsets are unique and without gaps, each commit is in
    the log once at the offset its process was told, and the order respects real time."""
    finished = run_counters(shared_url)
    reports = [report for child in finished for report in reports_of(child)]
    assert len(reports) == PROCESSES * COMMITS
    assert len({child.lines[1] for child in finished}) == 1, "all opened the same store"

    database = open_store(shared_url)
    store = database.log("local")
    counted = Counter(key for report in reports for key in report["keys"])
    assert {key: int(store.load([key])[key].value or b"0") for key in COUNTERS} == counted
    entries = store.tail(0, PLENTY)
    assert [entry.offset for entry in entries] == list(range(1, len(reports) + 1))
    told = {report["offset"]: report["id"] for report in reports}
    assert {entry.offset: entry.id.decode() for entry in entries} == told
    assert [entry.events for entry in entries] == [[entry.id] for entry in entries]
    database.close()
    check_real_time_order(reports)


def check_real_time_order(reports: list[Report]) -> None:
    """A commit that was answered before another was asked for has the lower offset, in any process."""
    by_offset = sorted(reports, key=lambda report: report["offset"])
    latest_begin = 0
    for report in by_offset:
        assert report["ended"] > latest_begin, f"{report['id']} was answered before an earlier commit began"
        latest_begin = max(latest_begin, report["began"])


def test_threads_of_one_store_object_lose_no_update(store: Store) -> None:
    """A store object may be used from several threads."""
    rounds = 200 if SOAK else 25

    def count() -> None:
        done = 0
        while done < rounds:
            record = store.load(["n"])["n"]
            put = Put(b"%d" % (int(record.value or b"0") + 1))
            try:
                store.commit(Commit({"n": record.version}, {"n": put}))
                done += 1
            except Conflict:
                continue

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.load(["n"])["n"].value == b"%d" % (6 * rounds)
    assert [entry.offset for entry in store.tail(0, PLENTY)] == list(range(1, 6 * rounds + 1))


def test_threads_of_two_tenants_do_not_meet(store_url: str) -> None:
    """Tenants commit side by side without conflicts."""
    database = open_store(store_url)
    conflicts: list[Conflict] = []

    def count(store: Store) -> None:
        version = 0
        for number in range(30):
            try:
                version = store.commit(Commit({"n": version}, {"n": Put(b"%d" % number)}))
            except Conflict as conflict:
                conflicts.append(conflict)

    threads = [threading.Thread(target=count, args=[database.log(f"tenant-{number}")]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    heads = [database.log(f"tenant-{number}").commit(Commit()) for number in range(4)]
    database.close()
    assert (heads, conflicts) == ([30] * 4, [])
