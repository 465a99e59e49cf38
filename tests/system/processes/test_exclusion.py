"""Real processes on one lock and on overlapping globs: nobody ever holds what another holds."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import SOAK
from tests.support.overlap_detector import OverlapDetector, UsedGrant, used_grants
from tests.support.process_group import (
    PATIENCE_S,
    LogReader,
    Member,
    ProcessGroup,
    finish,
    process_group,
    release,
)
from tests.support.servers.server import poll_until

PROCESSES = 8
GRANTS = 800 if SOAK else 24
OVERTAKEN_MOST = 2
"""Who was ahead in line has its turn; and once more, where both came within one millisecond."""
A, B, DEEP, LIB = "src/a.py", "src/b.py", "src/deep/c.py", "lib/a.py"
ONE_LOCK = [[A, "write", [A]]]
GLOBS = [
    [A, "write", [A]],
    ["src/*", "write", [A, B]],
    ["src/**", "write", [A, B, DEEP]],
    ["{src,lib}/a.py", "write", [A, LIB]],
]
SHARED = [[A, "read", [A]], [A, "read", [A]], ["src/*", "read", [A, B]], ["src/**", "write", [A, B, DEEP]]]


def contend(
    group: ProcessGroup, processes: int, wanted: list[Any], enough: int
) -> dict[str, list[UsedGrant]]:
    """Let processes contend until so many grants were used; return what the witness wrote down."""
    detector = group.folder / "witness"
    detector.mkdir()
    more = {"processes": processes, "wanted": wanted, "enough": enough, "witness": str(detector)}
    started = group.start("contender", [group.options("", more)])
    release(started)
    see_grants(started[0], OverlapDetector(detector, ""))
    finish(started[0])
    return used_grants(detector)


def see_grants(member: Member, detector: OverlapDetector) -> None:
    """Wait until it says something, as long as grants go on: how long all take is up to the machine."""
    while member.has_no_output():
        seen = detector.grants()

        def goes_on(seen: int = seen) -> bool:
            return not member.has_no_output() or detector.grants() > seen

        poll_until(goes_on, PATIENCE_S, f"nobody was granted anything after {seen} grants")


def check_fences_rise(grants: list[UsedGrant]) -> None:
    """A writer's fence is above all before it; a reader's above those of all writers before it."""
    newest = newest_written = 0
    for grant in grants:
        assert grant.fence > (newest_written if grant.mode == "read" else newest), grants
        newest = max(newest, grant.fence)
        if grant.mode != "read":
            newest_written = grant.fence


def check_all_had_a_turn(grants: list[UsedGrant], processes: int) -> None:
    """How even the shares are depends on who is quick to get in line, and is a matter for the benchmarks."""
    assert {grant.session for grant in grants} == {f"session-{number}" for number in range(processes)}


def check_in_turn(log: LogReader) -> int:
    """Nobody in line sees another one come and go again and again; return how many stood there."""
    waiting: dict[str, Counter[str]] = {}
    waits = 0
    for event in log.read():
        name = event.get("session", "")
        if event["event"] == "lock.waiting":
            waiting[name] = Counter()
            waits += 1
        elif event["event"] == "lock.acquired":
            waiting.pop(name, None)
            for others in waiting.values():
                others[name] += 1
                assert others[name] <= OVERTAKEN_MOST, f"{name} overtakes those in line: {waiting}"
    return waits


def test_eight_processes_share_one_lock(group: ProcessGroup) -> None:
    """One holds at a time, those in line have their turn, and fences rise.

    LCK-13, LCK-19, LCK-23, LCK-22, LCK-69, AMB-1, PRF-10, TEN-16.
    """
    grants = contend(group, PROCESSES, ONE_LOCK, GRANTS)["src%a"]
    assert len(grants) >= GRANTS
    check_fences_rise(grants)
    check_all_had_a_turn(grants, PROCESSES)
    waits = check_in_turn(group.log)
    if not group.on_a_server:  # there, the way into the line is a race; here, all come in turn to it, too
        assert waits >= PROCESSES


def test_thirty_two_processes_share_one_lock(make_url: Callable[[str], str], tmp_path: Path) -> None:
    """Four times as many processes, one lock: none is left out, none holds beside another."""
    with process_group(make_url("sqlite"), tmp_path) as group:
        enough = 800 if SOAK else 16  # more than that, since nobody goes without
        grants = contend(group, 32, ONE_LOCK, enough)["src%a"]
    check_fences_rise(grants)
    check_all_had_a_turn(grants, 32)


def test_eight_processes_on_overlapping_globs(group: ProcessGroup) -> None:
    """LCK-76: whatever two patterns have in common belongs to one holder, and only that."""
    found = contend(group, PROCESSES, GLOBS, GRANTS)
    assert set(found) == {"src%a", "src%b", "src%deep%c", "lib%a"}
    for grants in found.values():
        check_fences_rise(grants)
    check_all_had_a_turn(found["src%a"], PROCESSES)


def test_eight_processes_read_and_write(group: ProcessGroup) -> None:
    """LCK-14, LCK-18: whoever reads meets no writer, and whoever writes meets nobody."""
    found = contend(group, PROCESSES, SHARED, GRANTS)
    for grants in found.values():
        check_fences_rise(grants)
    modes = Counter(grant.mode for grant in found["src%a"])
    assert min(modes["read"], modes["write"]) > 0


def test_readers_hold_together_and_keep_a_writer_waiting(group: ProcessGroup) -> None:
    """LCK-16, LCK-17: two processes read at once; the writer comes when the last of them has left."""
    first, second, writer = group.scripted_sessions("first", "second", "writer")
    assert first.ask("acquire", A, mode="read", ttl_s=3_600)["outcome"] == "granted"
    assert second.ask("acquire", "src/*", mode="read", ttl_s=3_600)["outcome"] == "granted"
    writer.send("acquire", "src/**", mode="write", ttl_s=3_600, wait_s=60)
    group.log.until("lock.waiting", session="writer")
    first.ask("unlock", A)
    assert {lock["owner"] for lock in first.ask("locks")} == {"second"}
    assert first.ask("acquire", A, mode="read")["outcome"] == "held", "a new reader goes behind the writer"
    second.ask("unlock", "src/*")
    assert writer.receive()["outcome"] == "granted"
