"""The files of each mirror, letter for letter as the founding documents have them."""

import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

import coord as sdk
from coord.core.plans.commands import QueueReply
from coord.followers.direct import log_source
from coord.followers.mirrors import switching
from coord.followers.mirrors.agent_claims import agent_claims_files
from coord.followers.mirrors.claude_coord import claude_coord_files
from coord.followers.mirrors.contract import contract_files
from coord.followers.mirrors.present import read_present
from coord.followers.mirrors.state import MirrorState, StateFile
from coord.followers.mirrors.writer import Tree, write_mirror
from coord.sdk.client.client import Client
from coord.sdk.validation.tasks import new_task as sdk_task
from tests.support.git_folders import git
from tests.support.hand_clock import HandClock

SESSION = "c87d1c5c-ee1c-480d-9384-ca2481aa143b"
PEER = "3443ca93-ee1c-480d-9384-ca2481aa143b"


@pytest.fixture
def clock() -> HandClock:
    clock = HandClock()
    clock.ms = 1_762_165_800_000  # 2025-11-03T10:30:00Z
    return clock


@pytest.fixture
def beatrice(repository: Path, clock: HandClock) -> Iterator[Client]:
    with sdk.connect(session=SESSION, agent="beatrice", clock=clock) as client:
        yield client


def switch_on(client: Client, name: str, folder: str = "") -> None:
    switching.mirror_on(client, name, client.project, folder=folder)


def only(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def test_a_ticket_is_that_of_the_first_document(beatrice: Client, repository: Path) -> None:
    """STA-6, CFL-1, CFL-4: fields, order, absolute path and times of the document; ticket_{id}.json."""
    beatrice.acquire("src/file.py", reason="enrich span sha256:abc...", priority=5)
    switch_on(beatrice, "contract")
    ticket = only(repository / ".contract/tickets")
    ticket_id = ticket.name.removeprefix("ticket_").removesuffix(".json")
    assert ticket.read_text() == dedent(f"""\
        {{
          "ticket_id": "{ticket_id}",
          "resource": "{repository}/src/file.py",
          "operation": "write",
          "owner": "beatrice",
          "pid": 0,
          "acquired_at": "2025-11-03T10:30:00Z",
          "expires_at": "2025-11-03T10:35:00Z",
          "priority": 5,
          "metadata": {{
            "task": "enrich span sha256:abc...",
            "session": "{SESSION}"
          }}
        }}
        """)
    assert len(ticket_id) == 36
    assert ticket_id[14] == "4"


def test_a_status_is_that_of_the_first_document(beatrice: Client, repository: Path, clock: HandClock) -> None:
    """STA-1, STA-2, STA-5, STA-6, STA-7, STA-8, STA-9: named after the agent, with its ticket."""
    beatrice.add_tasks([sdk_task("task-7", estimate_s=300)])
    beatrice.acquire("src/file.py")
    beatrice.claim_task("task-7")
    clock.pass_seconds(60)
    beatrice.heartbeat()
    switch_on(beatrice, "contract")
    ticket = json.loads(only(repository / ".contract/tickets").read_text())["ticket_id"]
    assert (repository / ".contract/status/beatrice.json").read_text() == dedent(f"""\
        {{
          "agent": "beatrice",
          "state": "working",
          "current_task": {{
            "ticket_id": "{ticket}",
            "started_at": "2025-11-03T10:30:00Z",
            "estimated_completion": "2025-11-03T10:35:00Z"
          }},
          "workload": {{
            "queue_depth": 0,
            "avg_task_duration_sec": 0
          }},
          "last_heartbeat": "2025-11-03T10:31:00Z"
        }}
        """)


def test_the_queue_is_that_of_the_first_document(beatrice: Client, repository: Path) -> None:
    """CFL-13, CFL-14: task-123 is task_123.json; a claimed task moves to claiming/, with its agent."""
    requirements = {"needs": "internet"}
    beatrice.add_tasks(
        [
            sdk_task(
                "task-123",
                description="Add email validation to signup form",
                type="code_gen",
                priority=5,
                requirements=requirements,
            )
        ]
    )
    switch_on(beatrice, "contract")
    expected = dedent("""\
        {
          "task_id": "task-123",
          "description": "Add email validation to signup form",
          "type": "code_gen",
          "priority": 5,
          "created_at": "2025-11-03T10:30:00Z",
          "requirements": {
            "needs": "internet"
          }
        }
        """)
    queue = repository / ".contract/queue"
    assert (queue / "task_123.json").read_text() == expected
    beatrice.claim_task("task-123")
    switch_on(beatrice, "contract")
    assert not (queue / "task_123.json").exists()
    claimed = json.loads((queue / "claiming/task_123.beatrice.json").read_text())
    more = {"generation": 1, "lease_expires_at": "2025-11-03T10:35:00Z"}
    assert claimed == {**json.loads(expected), **more}


def test_a_lock_that_is_asked_back_has_a_signal(beatrice: Client, repository: Path, clock: HandClock) -> None:
    """MSG-12, CFL-20: signals/<agent>_release_<ticket>, and `preempted_by` in the ticket."""
    beatrice.acquire("src/file.py")
    with sdk.connect(session="o-1", agent="otto", clock=clock) as otto:
        otto.preempt("src/file.py", priority=9, reason="urgent")
    switch_on(beatrice, "contract")
    ticket = json.loads(only(repository / ".contract/tickets").read_text())
    assert ticket["preempted_by"] == "otto"
    signal = only(repository / ".contract/signals")
    assert signal.name == f"beatrice_release_{ticket['ticket_id']}"
    assert json.loads(signal.read_text())["requested_by"] == "otto"


def test_claude_coord_is_that_of_the_third_document(
    beatrice: Client, tmp_path: Path, clock: HandClock
) -> None:
    """MSG-4, MSG-5, CFL-28: sessions, locks and inboxes with the fields of §3 in their order."""
    folder = tmp_path / "claude-coord"
    clock.ms = 1_775_576_520_000  # 2026-04-07T15:42:00Z
    beatrice.register()
    beatrice.update(task="TOD-406", phase="merging PR #34", status="in_progress", owned={"prs": [34, 35]})
    beatrice.acquire("name:main-branch", reason="merging PR #34 to main")
    beatrice.acquire("project:reverie:dream-runner")
    with sdk.connect(session=PEER, agent="peer", clock=clock) as peer:
        peer.send(
            SESSION, "handoff", "TOD-407 is unblocked", body="finished TOD-406 merge, TOD-407 is yours — go"
        )
    switch_on(beatrice, "claude-coord", str(folder))
    assert (folder / "schema").read_text() == "1\n"
    session = json.loads((folder / f"sessions/{SESSION}.json").read_text())
    assert list(session) == [
        *("schema", "session_id", "claude_pid", "claude_version", "cwd", "bin", "started_at"),
        *("last_heartbeat", "owned_resources", "current_task", "blob"),
    ]
    assert session["current_task"] == {
        "ticket": "TOD-406",
        "phase": "merging PR #34",
        "status": "in_progress",
    }
    assert list(session["owned_resources"]) == ["worktrees", "branches", "prs", "processes", "files"]
    assert session["owned_resources"]["prs"] == [34, 35]
    assert (folder / "locks/main-branch/owner").read_text() == f"{SESSION}\n"
    assert (folder / "locks/main-branch/record.json").read_text() == dedent(f"""\
        {{
          "schema": 1,
          "resource": "main-branch",
          "owner_session_id": "{SESSION}",
          "owner_pid": {session["claude_pid"]},
          "acquired_at": "2026-04-07T15:42:00Z",
          "expires_at": "2026-04-07T16:42:00Z",
          "reason": "merging PR #34 to main"
        }}
        """)
    area = json.loads((folder / "locks/project:reverie:dream-runner/record.json").read_text())
    assert (area["resource"], area["scope"]) == ("project:reverie:dream-runner", "project")
    message = folder / "messages/inbox-c87d1c5c/2026-04-07T15-42-00Z-001.json"
    assert message.read_text() == dedent(f"""\
        {{
          "schema": 1,
          "from_session_id": "{PEER}",
          "to_session_id": "{SESSION}",
          "sent_at": "2026-04-07T15:42:00Z",
          "kind": "handoff",
          "subject": "TOD-407 is unblocked",
          "body": "finished TOD-406 merge, TOD-407 is yours — go",
          "blob": {{}}
        }}
        """)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_claims_are_in_every_worktree(
    beatrice: Client, repository: Path, tmp_path: Path, clock: HandClock
) -> None:
    """LCK-84, LCK-85, GIT-24, STA-16, STA-18, STA-20: the same in each worktree, and git sees none."""
    git(repository, "commit", "-q", "--allow-empty", "-m", "first")
    git(repository, "worktree", "add", "-q", str(tmp_path / "second"))
    clock.ms = 1_770_301_800_000  # 2026-02-05T14:30:00Z
    with sdk.connect(session="w-1", agent="subagent-8-1", clock=clock) as worker:
        worker.acquire("src/components/community/posts/EditForm.tsx")
        worker.acquire("name:build")
        worker.acquire("README.md", mode="read")
        worker.add_tasks([sdk_task("8.2")])
        worker.claim_task("8.2")
    switch_on(beatrice, "agent-claims")
    for root in (repository, tmp_path / "second"):
        assert (root / ".claude/agent-claims.json").read_text() == dedent("""\
            {
              "claims": [
                {
                  "agent": "subagent-8-1",
                  "file": "src/components/community/posts/EditForm.tsx",
                  "claimed_at": "2026-02-05T14:30:00Z"
                }
              ]
            }
            """)
        assert (root / ".claude/subagent-status/subagent-8-1.json").read_text() == dedent("""\
            {
              "status": "working",
              "task_id": "8.2",
              "heartbeat": "2026-02-05T14:30:00Z",
              "current_file": ""
            }
            """)
        tasks = json.loads((root / ".claude/plans/task-status.json").read_text())["tasks"]
        assert [(task["task_id"], task["status"]) for task in tasks] == [("8.2", "in_progress")]
        assert git(root, "status", "--porcelain") == ""


def test_a_status_file_starts_and_follows_its_session(
    beatrice: Client, repository: Path, clock: HandClock
) -> None:
    """STA-17, STA-19: it starts with `starting`, has the newest heartbeat, and ends as completed."""
    beatrice.register()
    beatrice.update(task="8.2", status="starting")
    path = repository / ".claude/subagent-status/beatrice.json"
    switch_on(beatrice, "agent-claims")
    first = {"status": "starting", "task_id": "8.2", "heartbeat": "2025-11-03T10:30:00Z", "current_file": ""}
    assert json.loads(path.read_text()) == first
    clock.pass_seconds(30)
    beatrice.heartbeat()
    beatrice.update(status="working")
    switch_on(beatrice, "agent-claims")
    later = json.loads(path.read_text())
    assert (later["status"], later["heartbeat"]) == ("working", "2025-11-03T10:30:30Z")
    beatrice.dereg()
    switch_on(beatrice, "agent-claims")
    assert json.loads(path.read_text())["status"] == "completed"


def test_two_sessions_of_one_agent_share_a_status(
    beatrice: Client, repository: Path, clock: HandClock
) -> None:
    """STA-1: one file for each agent; of its sessions it shows the one that works."""
    beatrice.add_tasks([sdk_task("T1")])
    beatrice.claim_task("T1")
    clock.pass_seconds(1)
    with sdk.connect(session="two", agent="beatrice", clock=clock) as second:
        second.acquire("b.py")
    switch_on(beatrice, "contract")
    status = json.loads(only(repository / ".contract/status").read_text())
    assert (status["agent"], status["state"]) == ("beatrice", "working")


HOSTILE = ("..", ".", "../../up", "a/b", "a%2Fb", "a\nb", "\x1b[2J", "-->", "x" * 300, "x" * 301, "\u202eup")


def test_hostile_names_stay_inside(beatrice: Client, repository: Path, tmp_path: Path) -> None:
    """Whatever a name or a text contains: each has its own plain file in the mirror, and breaks no other."""
    beatrice.add_tasks([sdk_task("T1"), sdk_task("T2")])
    beatrice.claim_task("T1")
    beatrice.acquire("src/file.py")
    beatrice.send(SESSION, "warn", "hello")
    source, parts = log_source(beatrice), frozenset(("queue", "tasks", "messages"))
    found = read_present(source.engine, beatrice.project, 0, parts)
    replace = msgspec.structs.replace
    (lock,), (session,) = found.locks, found.sessions
    (working,), (ready,) = found.queue.working, found.queue.ready
    hostile = found._replace(
        locks=[
            replace(lock, resource=f"name:{each}", owner=each, agent=each, preempted_by=each)
            for each in HOSTILE
        ],
        sessions=[replace(session, session_id=each, agent=each, cwd=each) for each in HOSTILE],
        queue=QueueReply(
            [replace(working, task_id=f"w{each}", agent=each) for each in HOSTILE],
            [replace(ready, task_id=each, description=each) for each in HOSTILE],
            [],
        ),
        messages=dict.fromkeys(HOSTILE, found.messages[SESSION]),
    )
    folder = tmp_path / "inside"
    folder.mkdir()
    state = MirrorState("local", "shop")
    trees = [contract_files(hostile, "/top"), claude_coord_files(hostile), agent_claims_files(hostile)]
    files = {name: data for tree in trees for name, data in tree.files.items()}
    before = {path for path in tmp_path.rglob("*") if folder not in path.parents}
    write_mirror(StateFile(str(tmp_path), "x"), state, {str(folder): Tree(files)}, 0)
    written = [path for path in folder.rglob("*") if path.is_file()]
    outside = {path for path in tmp_path.rglob("*") if folder not in path.parents} - before
    assert {path.name for path in outside} == {"mirrors", "x", "state.json"}
    assert len(written) == len(files)
    names = [
        name
        for name in files
        if name.startswith(("sessions/", ".contract/status/", ".contract/queue/claiming/"))
    ]
    assert len(names) == 3 * len(HOSTILE)
    for path in written:
        text = path.read_text()
        assert path.name.isprintable()
        assert text.replace("\n", "").isprintable()
        if path.suffix == ".json":
            json.loads(text)
    write_mirror(StateFile(str(tmp_path), "x"), state, {str(folder): Tree()}, 0)
    assert not list(folder.iterdir())
