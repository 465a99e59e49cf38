"""`max_agents`: who counts in a project, who is refused, and that two cannot get the last place."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coord.core import keys
from coord.core.errors import LimitReached
from coord.core.identity import Caller, Evidence, Process, ProcessState
from coord.core.lifecycle.commands import Deregister, Register
from coord.core.sessions.commands import Heartbeat, ListSessions
from coord.core.sessions.liveness import STALE_MS, SUSPECT_MS
from coord.core.settings import ChangeSettings
from coord.engine.engine import Engine
from coord.stores.open import open_store
from tests.support.lock_harness import CountedDatabase, LockHarness
from tests.support.rule_harness import T0, Outcome, RuleHarness


class Project(RuleHarness):
    """A project with a limit in the store, or in the environment of those who come."""

    def __init__(self, limit: int = 0, environment: int = 0, tenant: str = "local") -> None:
        super().__init__(tenant)
        self.environment = environment
        self.life: dict[int, ProcessState] = {}
        if limit:
            self.run(ChangeSettings({"max_agents": limit}, "p"))

    def evidence(self, processes: Any) -> list[Evidence]:
        return [Evidence(self.life.get(each.pid, ProcessState.UNKNOWN), "probed") for each in processes]

    def caller(self, name: str, **fields: Any) -> Caller:
        return Caller(name, **{"project": "p", "max_agents": self.environment, **fields})

    def come(self, name: str, *, now: int = T0, replaces: str = "", **fields: Any) -> Outcome:
        forced: dict[str, Any] = {"force": True, "reason": "it hangs"} if replaces else {}
        return self.run(Register(caller=self.caller(name, **fields), replaces=replaces, **forced), now)

    def beat(self, name: str, *, now: int = T0, **fields: Any) -> Outcome:
        return self.run(Heartbeat(self.caller(name, **fields)), now)

    def go(self, name: str) -> Outcome:
        return self.run(Deregister(self.caller(name)))

    def full(self, name: str = "late", **fields: Any) -> bool:
        """Whether one more agent is refused; it leaves no trace."""
        before = dict(self.records)
        try:
            self.come(name, **fields)
        except LimitReached:
            assert self.records == before
            return True
        self.records = before
        return False


@pytest.mark.parametrize("tenant", ["local", "acme"])
@pytest.mark.parametrize("by", ["store", "environment"])
def test_one_above_the_limit_is_refused(tenant: str, by: str) -> None:
    """The next agent is told who is there and what helps, whether it registers or just begins to work.

    PRB-5, SUP-2, SUP-3, CFL-36.
    """
    project = Project(2, tenant=tenant) if by == "store" else Project(environment=2, tenant=tenant)
    project.come("s1", agent="otto")
    project.beat("s2")
    for ask in (project.come, project.beat):
        with pytest.raises(LimitReached) as refusal:
            ask("s3")
        assert refusal.value.message == "project p has 2 agents and may have 2: otto (s1), s2"
        raise_it = "coord limits set max_agents=3" if by == "store" else "MAX_AGENTS"
        assert raise_it in refusal.value.hint
    project.beat("s1")
    project.come("s2")
    project.go("s1")
    assert not project.full()


def test_the_store_wins_over_the_environment() -> None:
    """CFL-36: a number in the store holds for every process, whatever its environment says."""
    project = Project(1, environment=20)
    project.come("s1")
    assert project.full()
    project.run(ChangeSettings({"max_agents": 2}, "p"))
    assert not project.full()
    project.run(ChangeSettings({"max_agents": "default"}, "p"))
    project.environment = 1
    assert project.full()
    project.environment = 0
    assert not project.full(), "unset is unlimited"


def test_people_and_other_projects_do_not_count() -> None:
    """CFL-36: a person is never refused and takes no place; each project has its own places."""
    project = Project(1)
    project.come("ada@host:1-2", person=True)
    project.come("s1")
    project.come("s2", project="other")
    project.come("bob@host:1-2", person=True)
    assert project.full()
    assert not project.full(project="other")
    assert not project.full("eve@host:3-4", person=True)


def test_sub_agents_count() -> None:
    """PRB-5, SUP-3: an agent cannot start more sub-agents than there are places."""
    project = Project(2)
    project.come("lead")
    project.come("child", parent="lead")
    assert project.full("another", parent="lead")


def test_who_was_there_before_the_limit_counts() -> None:
    """CFL-36: a limit that is set later counts those that live, not those that ended, and refuses none."""
    project = Project()
    for name in ("s1", "s2", "s3"):
        project.come(name)
    project.go("s3")
    project.run(ChangeSettings({"max_agents": 1}, "p"))
    project.beat("s1", now=T0 + 20_000)
    assert project.full()
    project.go("s1")
    assert project.full()
    project.go("s2")
    assert not project.full()


def test_the_silent_and_the_dead_give_way() -> None:
    """CFL-36: no sweep has to run; a silent agent that speaks again is not refused, and counts again."""
    project = Project(1)
    project.come("s1")
    assert project.full(now=T0 + STALE_MS - 1)
    assert not project.full(now=T0 + STALE_MS)
    later = T0 + STALE_MS
    project.come("s2", now=later)
    project.beat("s1", now=later)
    project.beat("s1", now=later + SUSPECT_MS)
    assert project.full(now=later + STALE_MS), "s1 is live, s2 is not"
    dead = Project(1)
    dead.come("s1", process=Process(7, 1))
    assert dead.full()
    dead.life[7] = ProcessState.DEAD
    assert not dead.full()


def test_a_replacement_takes_the_place_of_its_predecessor() -> None:
    """CFL-36: `--replaces` needs no place of its own, unless there is nobody to replace."""
    project = Project(1)
    project.come("s1")
    project.come("s2", replaces="s1")
    assert project.full()
    with pytest.raises(LimitReached):
        project.come("s3", replaces="s1")
    with pytest.raises(LimitReached):
        project.come("s3", replaces="nobody")


def test_a_session_that_moves_to_a_full_project_counts_there() -> None:
    """CFL-36: whoever changes the project is counted where it is."""
    project = Project(1)
    project.come("s1", project="other")
    project.come("s1")
    assert project.full()


def test_what_it_costs() -> None:
    """DESIGN §3: without a limit one read when a session begins, nothing afterwards and no record.

    The other read is that of `crew/p`, which counts that an agent joins.
    """
    harness = LockHarness()

    def reads(command: Any) -> int:
        before = harness.store.reads
        harness.engine.call(command)
        return harness.store.reads - before

    harness.beat("warm-up")
    agent = Caller("s1", project="p")
    begins = reads(Heartbeat(agent))
    assert begins - reads(Heartbeat(msgspec.structs.replace(agent, session="s2", person=True))) == 2
    assert keys.count_agents("p") not in harness.store.written
    harness.engine.call(ChangeSettings({"max_agents": 5}, "p"))
    harness.pass_time(20_000)
    harness.engine.call(Heartbeat(agent))
    assert keys.count_agents("p") not in harness.store.expected


def test_two_that_begin_at_once_conflict() -> None:
    """CFL-36: a limit that is set at the same moment makes the commit run again."""
    database = CountedDatabase()
    engine = Engine(database, "local", clock=lambda: T0)  # type: ignore[arg-type]
    engine.call(Heartbeat(Caller("s1", project="p")))
    assert keys.count_agents("p") in database.store.expected
    assert keys.count_agents("p") not in database.store.written
    engine.call(Heartbeat(Caller("s2", project="p", max_agents=3)))
    assert keys.count_agents("p") in database.store.written, "another one that begins now conflicts"


@pytest.mark.parametrize("environment", [0, 3])
def test_many_begin_at_once_and_only_the_allowed_stay(tmp_path: Path, environment: int) -> None:
    """CFL-36, SUP-3: twelve engines on one file, three places: nine are refused, whatever the order."""
    url = f"sqlite:///{tmp_path}/store.db"
    database = open_store(url)
    first = Engine(database, "local")
    if not environment:
        first.call(ChangeSettings({"max_agents": 3}, "p"))

    def begin(number: int) -> bool:
        own = open_store(url)
        engine = Engine(own, "local")
        try:
            engine.call(Heartbeat(Caller(f"s{number}", project="p", max_agents=environment)))
        except LimitReached:
            return False
        finally:
            engine.close()
            own.close()
        return True

    with ThreadPoolExecutor(12) as pool:
        came = list(pool.map(begin, range(12)))
    there = first.call(ListSessions(Caller("ada@host:1-2"), everyone=True))
    first.close()
    database.close()
    assert sum(came) == 3
    assert sorted(each.session_id for each in there) == sorted(
        f"s{number}" for number, here in enumerate(came) if here
    )
