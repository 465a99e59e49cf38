"""What time alone changes in a mirror: a lock, a claim or a request whose deadline has passed is gone."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import coord as sdk
from coord.followers.direct import log_source
from coord.followers.mirrors import switching
from coord.followers.mirrors.mirror import AgentClaimsMirror, ClaudeCoordMirror, ContractMirror
from coord.followers.runner import Runner
from coord.sdk.client.client import Client
from coord.sdk.validation.tasks import new_task
from tests.support.hand_clock import HandClock

LEASE_S = 40


@pytest.fixture
def clock() -> HandClock:
    clock = HandClock()
    clock.ms = 1_762_165_800_000  # 2025-11-03T10:30:00Z
    return clock


@pytest.fixture
def ann(repository: Path, clock: HandClock) -> Iterator[Client]:
    with sdk.connect(session="s-ann", agent="ann", clock=clock) as client:
        yield client


def runner(client: Client, folder: Path) -> Runner:
    """Switch the mirrors on; return what a hub, or `coord follow`, runs."""
    for name in switching.NAMES:
        switching.mirror_on(
            client, name, client.project, folder=str(folder) if name == "claude-coord" else ""
        )
    return Runner(log_source(client), [ContractMirror, ClaudeCoordMirror, AgentClaimsMirror], "me")


def shown(repository: Path, folder: Path) -> dict[str, list[str]]:
    claims = json.loads((repository / ".claude/agent-claims.json").read_text())["claims"]
    expiries = json.loads((repository / ".claude/agent-claims-expiry.json").read_text())["claims"]
    assert [each["file"] for each in expiries] == [each["file"] for each in claims]
    return {
        "tickets": [path.name for path in (repository / ".contract/tickets").iterdir()],
        "claiming": [path.name for path in (repository / ".contract/queue/claiming").iterdir()],
        "signals": [path.name for path in (repository / ".contract/signals").iterdir()],
        "locks": [path.name for path in (folder / "locks").iterdir()],
        "claims": [each["file"] for each in claims],
    }


NOTHING: dict[str, list[str]] = {"tickets": [], "claiming": [], "signals": [], "locks": [], "claims": []}


def pass_deadlines(runner: Runner, clock: HandClock, until_ms: int) -> None:
    """Let the runner write whenever it says that something is due, and commit nothing."""
    while (due_ms := runner.step()) and due_ms <= until_ms:
        assert due_ms > clock.ms, "it is due at once, again and again"
        clock.ms = due_ms


def test_an_expired_lock_is_gone_at_its_deadline(
    ann: Client, repository: Path, clock: HandClock, tmp_path: Path
) -> None:
    """Nobody commits anything: the runner says when it has to write again, and then the file is right."""
    (lock,) = ann.acquire("a.py", ttl_s=45).locks
    run = runner(ann, tmp_path / "cc")
    head = ann.log.seen.offset
    pass_deadlines(run, clock, lock.expires_ms - 1)
    assert shown(repository, tmp_path / "cc")["claims"] == ["a.py"]
    pass_deadlines(run, clock, lock.expires_ms)
    assert shown(repository, tmp_path / "cc") == NOTHING
    assert (clock.ms, ann.log.seen.offset) == (lock.expires_ms, head)


def test_a_lock_that_was_asked_back_is_gone_when_its_grace_ends(
    ann: Client, repository: Path, clock: HandClock, tmp_path: Path
) -> None:
    (lock,) = ann.acquire("a.py", ttl_s=600).locks
    with sdk.connect(session="o-1", agent="otto", clock=clock) as otto:
        otto.preempt("a.py", priority=9, reason="urgent")
    (asked,) = ann.locks()
    assert asked.preempted_by == "o-1"
    until_ms = clock.ms + round(1000 * asked.expires_in_s)
    assert until_ms < lock.expires_ms
    run = runner(ann, tmp_path / "cc")
    pass_deadlines(run, clock, until_ms - 1)
    assert shown(repository, tmp_path / "cc")["claims"] == ["a.py"]
    pass_deadlines(run, clock, until_ms)
    assert shown(repository, tmp_path / "cc") == NOTHING


def test_an_expired_claim_is_gone_at_its_deadline(
    ann: Client, repository: Path, clock: HandClock, tmp_path: Path
) -> None:
    ann.add_tasks([new_task("T1")])
    ann.claim_task("T1", lease_s=LEASE_S)
    run = runner(ann, tmp_path / "cc")
    until_ms = clock.ms + 1000 * LEASE_S
    pass_deadlines(run, clock, until_ms - 1)
    assert shown(repository, tmp_path / "cc")["claiming"] == ["task_T1.ann.json"]
    pass_deadlines(run, clock, until_ms)
    assert shown(repository, tmp_path / "cc") == NOTHING
    assert (repository / ".contract/queue/task_T1.json").exists()
    tasks = json.loads((repository / ".claude/plans/task-status.json").read_text())["tasks"]
    assert [task["status"] for task in tasks] == ["ready"]


def test_a_reader_can_tell_without_a_hub(
    ann: Client, repository: Path, clock: HandClock, tmp_path: Path
) -> None:
    """Without a hub time writes nothing, so a file says when each lock and claim ends."""
    ann.acquire("a.py", ttl_s=60)
    ann.acquire("name:build")
    runner(ann, tmp_path / "cc").step()
    (claim,) = json.loads((repository / ".claude/agent-claims-expiry.json").read_text())["claims"]
    assert claim == {"agent": "ann", "file": "a.py", "expires_at": "2025-11-03T10:31:00Z"}
    for path in (repository / ".contract/tickets").iterdir():
        assert json.loads(path.read_text())["expires_at"] > "2025-11-03T10:30:00Z"
    for path in (tmp_path / "cc/locks").rglob("record.json"):
        assert json.loads(path.read_text())["expires_at"] > "2025-11-03T10:30:00Z"
