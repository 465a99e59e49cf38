"""Single files beside globs: a file that is locked alone is met only by a glob that matches it."""

from typing import Any

import pytest

from coord.core import keys
from coord.core.errors import Invalid
from coord.core.locks.commands import CheckFences, CheckLocks, Outcome, PreemptLock
from coord.core.settings import ChangeSettings
from tests.support.lock_harness import REPOSITORY, LockHarness

README, CODE, GLOB = "file:README.md", "file:src/a.py", "file:**/*.py"


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def exact(harness: LockHarness, name: str, resource: str, **options: Any) -> Any:
    """Lock one file, and nothing below it."""
    return harness.lock(name, resource, exact=(resource,), **options)


@pytest.mark.parametrize("glob_first", [True, False], ids=["glob first", "file first"])
@pytest.mark.parametrize(
    ("path", "single", "granted"),
    [(README, True, True), (README, False, False), (CODE, True, False), (CODE, False, False)],
)
def test_glob_and_file(
    harness: LockHarness, path: str, single: bool, granted: bool, glob_first: bool
) -> None:
    """LCK-76, CFL-19: a glob meets a single file only by matching it; a path may be a directory."""
    one, other = (GLOB, path) if glob_first else (path, GLOB)
    said = (path,) if single else ()
    assert harness.lock("ann", one, exact=said if one == path else ()).ok
    assert harness.lock("bob", other, exact=said if other == path else ()).ok is granted


@pytest.mark.parametrize(
    ("held", "wanted"), [("file:src", CODE), (CODE, "file:src"), (CODE, "file:src/a.py/b")]
)
def test_paths_meet_as_before(harness: LockHarness, held: str, wanted: str) -> None:
    """CFL-19: between two paths it counts for nothing that one is a file."""
    assert exact(harness, "ann", held).ok
    assert not exact(harness, "bob", wanted).ok


def test_check_steal_and_preempt_spare_a_glob(harness: LockHarness) -> None:
    """LCK-28, LCK-36, LCK-49: who asks for a file is not told of a glob beside it, and takes none of it."""
    harness.lock("ann", GLOB)
    wish = CheckLocks(harness.who("bob"), REPOSITORY, (README,), exact=(README,))
    assert harness.engine.call(wish).free
    harness.lock("cid", README, exact=(README,))
    stolen = harness.steal("bob", README, exact=(README,), force=True, reason="needed")
    assert (stolen.ok, stolen.locks[0].exact) == (True, True)
    asked = PreemptLock(
        harness.who("dan"), REPOSITORY, (README,), exact=(README,), priority=1, grace_ms=1000, reason="urgent"
    )
    assert harness.engine.call(asked).asked == ["bob"]
    assert harness.held() == {("ann", GLOB), ("bob", README)}


def test_who_waits_for_a_file_is_not_behind_a_glob(harness: LockHarness) -> None:
    """LCK-35: the line knows single files too: the file goes to the next one, whoever waits for a glob."""
    harness.lock("ann", CODE, exact=(CODE,))
    assert harness.wait("bob", GLOB).outcome is Outcome.WAITING
    assert exact(harness, "cid", README).ok
    assert not exact(harness, "cid", "file:b.py").ok, "bob is ahead"
    waiting = harness.wait("dan", README, exact=(README,))
    harness.release("cid", README)
    assert harness.confirm("dan", waiting).locks[0].exact


def test_widening_is_judged_anew(harness: LockHarness) -> None:
    """LCK-13: who holds a file and asks for it as a path is refused while another holds what is below."""
    first = exact(harness, "ann", "file:x").locks[0]
    harness.lock("bob", "file:x/*")
    refused = harness.lock("ann", "file:x")
    assert (refused.outcome, refused.holder.owner) == (Outcome.HELD, "bob")
    waiting = harness.wait("ann", "file:x")
    harness.release("bob", "file:x/*")
    wide = harness.confirm("ann", waiting).locks[0]
    assert wide.fence > first.fence
    assert not wide.exact
    assert not harness.lock("bob", "file:x/*").ok


def test_holder_that_widens_waits_its_turn(harness: LockHarness) -> None:
    """AMB-3: a holder goes ahead of those in line for what it holds, and not for more."""
    exact(harness, "ann", "file:x", mode="read")
    harness.lock("bob", "file:x/*", mode="read")
    harness.wait("cid", "file:x/*")
    assert exact(harness, "ann", "file:x", mode="read").ok
    assert harness.lock("ann", "file:x", mode="read").position == 2


def test_widening_is_judged_by_what_it_becomes(harness: LockHarness) -> None:
    """LCK-17: who writes to a file and asks to read what is below would write there too."""
    exact(harness, "ann", "file:x")
    harness.lock("bob", "file:x/*", mode="read")
    assert harness.lock("ann", "file:x", mode="read").holder.owner == "bob"


def test_fence_of_before_a_widening_stays_proven(harness: LockHarness) -> None:
    """CFL-19: a commit under a lock on a file counts as finished after the lock was widened."""
    fence = exact(harness, "ann", "file:x").locks[0].fence
    harness.lock("ann", "file:x")
    (shown,) = harness.engine.call(CheckFences(REPOSITORY, ((fence, "file:x", ""),)))
    assert (shown.owner, shown.end_reason, shown.superseded) == ("ann", "released", False)


def test_file_of_a_commit_is_superseded_by_what_matches_it(harness: LockHarness) -> None:
    """CFL-19: a glob that was granted to another since supersedes the fence of a file only by matching it."""
    fence = harness.lock("ann", "file:.").locks[0].fence
    harness.pass_time(400_000)
    harness.lock("bob", GLOB)
    files = tuple((fence, "file:.", part) for part in (README, CODE))
    assert [shown.superseded for shown in harness.engine.call(CheckFences(REPOSITORY, files))] == [
        False,
        True,
    ]


def test_asking_for_the_file_leaves_a_path_wide(harness: LockHarness) -> None:
    """LCK-79: what is held does not become less; if reading becomes writing, all of it is judged."""
    fence = harness.lock("ann", "file:x").locks[0].fence
    again = exact(harness, "ann", "file:x").locks[0]
    assert (again.fence, again.refreshed, again.exact) == (fence, True, False)
    harness.lock("bob", "file:y", mode="read")
    harness.lock("cid", "file:y/*", mode="read")
    assert exact(harness, "bob", "file:y", mode="write").holder.owner == "cid"


def test_sub_agent_under_a_glob(harness: LockHarness) -> None:
    """CFL-19: a sub-agent's file stands under its parent's glob if that matches it, and ends with it."""
    harness.parents["kid"] = "ann"
    harness.lock("ann", GLOB)
    exact(harness, "kid", README)
    exact(harness, "kid", CODE)
    harness.release("ann", GLOB)
    assert harness.held() == {("kid", README)}


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ((GLOB,), (GLOB,)),
        (("name:deploy",), ("name:deploy",)),
        (("file:.",), ("file:.",)),
        ((README,), (CODE,)),
    ],
    ids=["glob", "name", "all", "stranger"],
)
def test_only_a_path_is_a_file(
    harness: LockHarness, resources: tuple[str, ...], said: tuple[str, ...]
) -> None:
    """CFL-4: what cannot be a single file is refused, and changes nothing."""
    with pytest.raises(Invalid) as refused:
        harness.lock("ann", *resources, exact=said)
    assert refused.value.hint
    assert harness.held() == set()


def test_one_name_as_file_and_as_path_is_a_path(harness: LockHarness) -> None:
    """CFL-4: two spellings of one name are one lock, the wider one."""
    (lock,) = harness.lock("ann", README, "file:readme.md", exact=(README,)).locks
    assert not lock.exact


PROJECT, AREA, OTHER_AREA = "project:reverie", "project:reverie:dream", "project:reverie:code"
NESTING = [
    # held, wanted, granted with nesting off, with nesting on
    (PROJECT, PROJECT, False, False),
    (PROJECT, AREA, True, False),
    (AREA, PROJECT, True, False),
    (AREA, AREA, False, False),
    ("project:Reverie", "project:reverie:DREAM", True, False),
    (AREA, OTHER_AREA, True, True),
    (AREA, "project:reverie2", True, True),
    ("project:reverie2", AREA, True, True),
    (PROJECT, "project:reverie2:dream", True, True),
    (PROJECT, "name:reverie", True, True),
]


def nest(harness: LockHarness, value: str = "on") -> None:
    harness.engine.call(ChangeSettings({"project_lock_nesting": value}))


@pytest.mark.parametrize("nesting", ["off", "on"])
@pytest.mark.parametrize(("held", "wanted", "off", "on"), NESTING)
def test_projects_and_their_areas(
    harness: LockHarness, held: str, wanted: str, off: bool, on: bool, nesting: str
) -> None:
    """LCK-57, CFL-19: independent by default; with nesting a project excludes its areas, both ways.

    A lock, a check, a wait and its grant agree.
    """
    nest(harness, nesting)
    expected = on if nesting == "on" else off
    harness.lock("ann", held)
    check = CheckLocks(harness.who("bob"), REPOSITORY, (wanted,))
    assert harness.engine.call(check).free is expected
    assert harness.lock("bob", wanted).ok is expected
    if expected:
        return
    waiting = harness.wait("cid", wanted)
    assert (waiting.outcome, waiting.holder.owner) == (Outcome.WAITING, "ann")
    harness.release("ann")
    assert harness.confirm("cid", waiting).ok
    assert harness.held() == {("cid", wanted)}


def test_nested_requests_keep_their_order(harness: LockHarness) -> None:
    """LCK-57, CFL-19: a request for an area does not pass one for its project that waits before it."""
    nest(harness)
    harness.lock("ann", AREA)
    project = harness.wait("bob", PROJECT)
    area = harness.wait("cid", OTHER_AREA)
    assert (area.outcome, area.position) == (Outcome.WAITING, 2)
    assert not harness.lock("dan", OTHER_AREA).ok
    harness.release("ann")
    assert harness.confirm("bob", project).ok
    assert harness.confirm("cid", area).outcome is Outcome.WAITING
    harness.release("bob")
    assert harness.confirm("cid", area).ok


def test_nested_locks_of_a_family(harness: LockHarness) -> None:
    """DESIGN §5: a sub-agent takes an area under its parent's project, and it ends with that one."""
    nest(harness)
    harness.parents["child"] = "ann"
    harness.beat("ann")
    harness.lock("ann", PROJECT)
    assert harness.lock("child", AREA).ok
    assert not harness.lock("bob", AREA).ok
    harness.release("ann", PROJECT)
    assert harness.held() == set()


def test_steal_and_preempt_see_the_project(harness: LockHarness) -> None:
    """CFL-19: who takes an area by force takes it from the holder of the project."""
    nest(harness)
    harness.lock("ann", PROJECT)
    assert harness.preempt("bob", AREA, priority=1).asked == ["ann"]
    assert harness.steal("bob", AREA, force=True, reason="needed").ok
    assert harness.held() == {("bob", AREA)}


def test_nested_areas_close_a_deadlock(harness: LockHarness) -> None:
    """DLK-1: a cycle through a project and an area of it is found."""
    nest(harness)
    harness.lock("ann", AREA)
    harness.lock("bob", "project:other")
    harness.wait("ann", "project:other:x")
    reply = harness.wait("bob", PROJECT)
    assert harness.events("lock.deadlock") or reply.cycle


def test_a_change_of_nesting_holds_for_later_requests(harness: LockHarness) -> None:
    """CFL-19: what was granted stays; the next request is decided by the new value."""
    harness.lock("ann", PROJECT)
    assert harness.lock("bob", AREA).ok
    nest(harness)
    assert not harness.lock("cid", OTHER_AREA).ok
    assert not harness.lock("cid", PROJECT).ok
    nest(harness, "off")
    assert harness.lock("cid", OTHER_AREA).ok


def test_nesting_costs_other_locks_nothing(harness: LockHarness) -> None:
    """DESIGN §3: only a request that names a project reads the settings."""
    harness.lock("ann", "file:a.py")
    harness.lock("ann", "name:x")
    assert keys.SETTINGS not in harness.store.expected
    harness.lock("ann", PROJECT)
    assert keys.SETTINGS in harness.store.expected
