"""Mirrors as a user has them: on, current after each command, unimpressed by others, and gone again."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import coord as sdk
from coord.followers.direct import log_source
from coord.followers.mirrors import switching, text_logs
from coord.followers.mirrors.mirror import ContractMirror
from coord.followers.mirrors.switching import mirror_info, mirror_on
from coord.followers.runner import Runner
from coord.host.runtime.switched_on import switch, switched_on
from coord.sdk.client.client import Client
from coord.sdk.log_reader import logged_events
from coord.stores.local.safe_folder import DRAFT
from coord.transports.hub.followers.run import LogFollowers
from tests.support.cli import Coord
from tests.support.git_folders import git
from tests.support.hand_clock import HandClock
from tests.support.kill_points import count_changes, run_until


@pytest.fixture
def client(repository: Path) -> Iterator[Client]:
    with connected() as client:
        yield client


def connected(session: str = "s-ann", agent: str = "ann") -> Client:
    return sdk.connect(session=session, agent=agent, clock=HandClock())


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, but those of git."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


def tickets(repository: Path) -> list[str]:
    found = [json.loads(path.read_text()) for path in (repository / ".contract/tickets").iterdir()]
    return sorted(os.path.basename(each["resource"]) for each in found)


def test_a_mirror_is_current_when_the_command_ends(coord: Coord, repository: Path) -> None:
    """LCK-84, AUD-10, AUD-11, AUD-13: without a hub, each command leaves the files as the store is."""
    coord("ann mirror on contract")
    coord("ann lock a.py b.py")
    assert tickets(repository) == ["a.py", "b.py"]
    coord("ann unlock a.py")
    assert tickets(repository) == ["b.py"]
    coord("ann task add T1")
    coord("ann task claim T1")
    coord("ann task submit T1 1")
    log = (repository / ".contract/logs/coordination.log").read_text()
    assert [line.partition(" ")[2] for line in log.splitlines()] == [
        "Lock acquired: ann on a.py (write)",
        "Lock acquired: ann on b.py (write)",
        "Lock released: ann on a.py",
        "Task queued: T1",
        "Task assigned: T1 (agent ann, generation 1)",
        "Task completed: T1 by ann (generation 1)",
    ]
    assert (
        (repository / ".contract/logs/completed_tasks.log")
        .read_text()
        .endswith("Z Task completed: T1 by ann (generation 1)\n")
    )
    assert git(repository, "status", "--porcelain") == ""


def test_off_removes_what_coord_wrote_and_nothing_else(
    coord: Coord, repository: Path, tmp_path: Path
) -> None:
    """Removal takes every file and folder away, also the lines for git, and leaves those of others."""
    (repository / ".claude").mkdir()
    (repository / ".claude/settings.json").write_text("{}")
    exclude = repository / ".git/info/exclude"
    exclude.write_text("*.o")
    before = tree(tmp_path)
    folder = tmp_path / "cc"
    coord("ann mirror on contract")
    coord("ann mirror on agent-claims")
    coord("ann mirror on claude-coord", "--folder", str(folder))
    (repository / ".contract/mine.txt").write_text("mine")
    (repository / ".contract/tickets/theirs.json").write_text("{}")
    coord("ann lock a.py")
    assert (folder / "sessions/s-ann.json").exists()
    for name in ("contract", "agent-claims", "claude-coord"):
        said = coord(f"ann mirror off {name}")
        assert said.answer["removed"] > 0
    kept = {"shop/.contract/mine.txt", "shop/.contract/tickets/theirs.json"}
    assert {name for name in tree(tmp_path) if not name.startswith("state/")} == {*before, *kept}
    assert not folder.exists()
    assert not (repository / ".contract/status").exists()
    assert exclude.read_text().rstrip("\n") == "*.o"
    assert not (repository / ".git/coord/mirrors").exists()
    assert coord("ann mirror off contract").line == "contract was off"
    coord("ann unlock a.py")
    assert not (repository / ".contract/logs").exists()


def test_a_foreign_change_is_reported_and_overwritten(
    coord: Coord, repository: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A mirror is never obeyed: a changed, removed or replaced file comes back, and is said once."""
    coord("ann mirror on agent-claims")
    coord("ann lock a.py")
    claims = repository / ".claude/agent-claims.json"
    right = claims.read_bytes()
    claims.write_text('{"claims": [{"agent": "eve", "file": "b.py"}]}')
    status = repository / ".claude/subagent-status/ann.json"
    status.unlink()
    status.symlink_to(repository / "victim")
    (repository / "victim").write_text("untouched")
    assert coord("eve lock b.py --no-wait").code == 0
    assert json.loads(claims.read_text())["claims"][0] == json.loads(right)["claims"][0]
    assert not status.is_symlink()
    assert (repository / "victim").read_text() == "untouched"
    said = [record.getMessage() for record in caplog.records if "somebody else" in record.getMessage()]
    assert len(said) == 1
    assert "agent-claims.json" in said[0]
    coord("eve unlock b.py")
    assert len([each for each in caplog.records if "somebody else" in each.getMessage()]) == 1
    (mirror,) = [each for each in coord("ann mirror list").answer["mirrors"] if each["on"]]
    assert [os.path.basename(each["path"]) for each in mirror["changes"]] == ["agent-claims.json", "ann.json"]
    checks = {each["check"]: each for each in coord("ann doctor").answer["checks"]}
    assert checks["mirrors"]["state"] == "warn"
    assert "agent-claims.json" in checks["mirrors"]["message"]


def test_a_file_of_others_is_left_alone(
    coord: Coord, repository: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Switching on refuses to overwrite; what others make later is reported once, and never touched."""
    claims = repository / ".claude/agent-claims.json"
    claims.parent.mkdir()
    claims.write_text("theirs")
    said = coord("ann mirror on agent-claims")
    assert said.code != 0
    assert "agent-claims.json" in said.line
    assert claims.read_text() == "theirs"
    assert not switched_on(str(repository / ".git/coord"))
    claims.unlink()
    coord("ann mirror on agent-claims")
    theirs = repository / ".claude/subagent-status/bob.json"
    theirs.write_text("theirs")
    coord("bob lock b.py")
    coord("bob unlock b.py")
    assert theirs.read_text() == "theirs"
    assert sum("bob.json" in record.getMessage() for record in caplog.records) == 1
    coord("ann mirror off agent-claims")
    assert theirs.read_text() == "theirs"


def test_no_link_leads_out_of_the_mirror(coord: Coord, repository: Path, tmp_path: Path) -> None:
    """A folder that is replaced by a link is not followed: neither by writes nor by removals."""
    coord("ann mirror on contract")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "ann.json").write_text("precious")
    folder = repository / ".contract/status"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.symlink_to(outside)
    assert coord("ann lock a.py").code == 0
    assert tickets(repository) == ["a.py"]
    assert tree(outside) == {"ann.json": b"precious"}
    coord("ann mirror off contract")
    assert tree(outside) == {"ann.json": b"precious"}
    assert folder.is_symlink()
    (repository / ".claude").symlink_to(outside)
    assert coord("ann mirror on agent-claims").code != 0
    assert tree(outside) == {"ann.json": b"precious"}


@pytest.mark.parametrize("problem", ["link", "open", "file"])
def test_a_shared_folder_has_to_be_private(coord: Coord, tmp_path: Path, problem: str) -> None:
    """/tmp/claude-coord is everybody's name: a link, an open folder or a file there is refused."""
    folder = tmp_path / "cc"
    if problem == "link":
        (tmp_path / "real").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "real")
    elif problem == "open":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        folder.write_text("")
    assert coord("ann mirror on claude-coord", "--folder", str(folder)).code != 0
    assert [path.name for path in (tmp_path / "real").iterdir()] == [] if problem == "link" else True


def test_a_mirror_that_is_made_again_has_the_same_bytes(client: Client, repository: Path) -> None:
    """Rebuilding from nothing gives the same bytes: files from the store, text logs from its log."""
    mirror_on(client, "contract", client.project)
    client.acquire("a.py")
    client.acquire("b.py")
    client.unlock("a.py")
    switching._catch_up(log_source(client), switching._kind("contract"))
    first = tree(repository)
    switching.mirror_off(client.location, "contract", 0)
    assert tree(repository) == {}
    mirror_on(client, "contract", client.project)
    assert tree(repository) == first
    assert len(first) == 5


class KilledMirror:
    """A mirror that is one commit behind, and a process that catches up and is killed before a change."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        with connected() as client:
            mirror_on(client, "contract", client.project)
            client.acquire("a.py")
            client.acquire("b.py")
        with connected("s-bob", "bob") as other:
            other.acquire("c.py")
            self.location = other.location
            folder = Path(other.location.folder)
            files = [path for path in (folder / "mirrors").rglob("*") if path.is_file()]
            self._state = {path: path.read_bytes() for path in (*files, folder / "followers")}
            self._files = tree(repository)
            other._shared = True  # it ends as if it was killed before it could write
        self.points = count_changes(self.catch_up)

    @staticmethod
    def catch_up() -> None:
        with connected() as client:
            client.locks()

    def kill_at(self, point: int) -> None:
        """Kill a process before its change number `point`; the mirror was as at the beginning."""
        _put_back(self._repository, self._files, self._state)
        run_until(point, self.catch_up)


def test_a_killed_process_writes_each_line_once(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AUD-10: killed before any of its changes, the next one completes the mirror; nothing is doubled.

    No change of coord is taken for one of others, and nothing half written is left.
    """
    monkeypatch.setattr(text_logs, "PART_BYTES_MAX", 200)
    killed = KilledMirror(repository)
    folder = killed.location.folder
    expected = (tree(repository), mirror_info(folder, "contract").offset)
    assert killed.points > 8
    assert sum(name.startswith(".contract/tickets/") for name in expected[0]) == 3
    for point in range(1, killed.points + 1):
        killed.kill_at(point)
        killed.catch_up()
        assert (tree(repository), mirror_info(folder, "contract").offset) == expected, point
        assert mirror_info(folder, "contract").changes == [], point
        assert not list(repository.rglob(DRAFT)), point


def test_off_after_a_kill_leaves_nothing(repository: Path) -> None:
    """Whatever a killed process left, `off` knows that it is ours, and removes it."""
    killed = KilledMirror(repository)
    for point in range(1, killed.points + 1):
        killed.kill_at(point)
        switching.mirror_off(killed.location, "contract", 0)
        assert not (repository / ".contract").exists(), point


def _put_back(repository: Path, files: dict[str, bytes], state: dict[Path, bytes]) -> None:
    """Put the mirror back to a time; the manifest notices by the content that nothing was changed."""
    for name in tree(repository):
        (repository / name).unlink()
    for name, data in files.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_bytes(data)
    for path in (repository / ".git/coord/mirrors").rglob("*"):
        if path.is_file():
            path.unlink()
    for path, data in state.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def test_logs_are_bounded(client: Client, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AUD-10: a log that is full becomes `.1`, and what was there before is dropped."""
    monkeypatch.setattr(text_logs, "PART_BYTES_MAX", 200)
    mirror_on(client, "contract", client.project)
    for number in range(12):
        client.acquire(f"f{number}.py")
        mirror_on(client, "contract", client.project)
    logs = repository / ".contract/logs"
    assert sorted(path.name for path in logs.iterdir()) == [
        *("completed_tasks.log", "coordination.log", "coordination.log.1", "coordination_events.log")
    ]
    lines = [
        *(logs / "coordination.log.1").read_text().splitlines(),
        *(logs / "coordination.log").read_text().splitlines(),
    ]
    assert [line.split()[-2] for line in lines] == [f"f{number}.py" for number in range(12 - len(lines), 12)]
    assert all(path.stat().st_size <= 200 for path in logs.iterdir())
    parts = Path(client.location.folder, "mirrors/mirror-contract")
    assert len([path for path in parts.iterdir() if path.name.startswith("coordination.log.")]) == 2


def test_a_hub_writes_the_mirror_of_its_tenant_only(client: Client, repository: Path) -> None:
    """The hub runs the followers of each log; a mirror shows the tenant for which it was switched on."""
    mirror_on(client, "contract", client.project)
    hub = LogFollowers(log_source(client), asyncio.Event())
    hub.step()
    client.acquire("a.py")
    hub.step()
    assert tickets(repository) == ["a.py"]
    with sdk.connect(session="s-eve", tenant="acme") as other:
        foreign = LogFollowers(log_source(other), asyncio.Event())
        other.acquire("b.py")
        foreign.step()
    assert tickets(repository) == ["a.py"]
    switching.mirror_off(client.location, "contract", 0)
    client.acquire("c.py")
    hub.step()
    assert tree(repository) == {}


def test_two_processes_write_each_line_once(client: Client, repository: Path) -> None:
    """AUD-10: both have read the same entries; the second one finds that the first has written them."""
    mirror_on(client, "contract", client.project)
    runners = [Runner(log_source(client), [ContractMirror], f"r{number}") for number in range(2)]
    for runner in runners:
        runner.step()
    client.acquire("a.py")
    client.acquire("b.py")
    ahead, behind = (runner.runs[0] for runner in runners)
    page = client.log.tail(ahead.offset, 10)
    for run, entries in ((ahead, page), (behind, page[:1])):
        for entry in entries:
            run.feed(entry, list(logged_events([entry])))
    for run in (behind, ahead, behind):
        run.act(client.log.now())
    assert (repository / ".contract/logs/coordination.log").read_text().count("\n") == 2


def test_another_tenant_writes_nothing(client: Client, repository: Path) -> None:
    """A process of another tenant ends with the same store, and the mirror is none of its business."""
    mirror_on(client, "contract", client.project)
    before = tree(repository)
    with sdk.connect(session="s-eve", tenant="acme") as other:
        other.acquire("b.py")
    assert tree(repository) == before


def test_a_mirror_is_off_before_it_is_removed(client: Client) -> None:
    """A hub that looks in between sees it off, and begins nothing."""
    source = log_source(client)
    mirror_on(client, "contract", client.project)
    assert ContractMirror.wanted(source)
    switch(client.location.folder, ContractMirror.name, on=False)
    assert not ContractMirror.wanted(source)


def test_a_worktree_that_is_removed_is_forgotten(coord: Coord, repository: Path, tmp_path: Path) -> None:
    """GIT-24: a new worktree gets the files with the next change, a removed one is no error."""
    git(repository, "commit", "-q", "--allow-empty", "-m", "first")
    coord("ann mirror on agent-claims")
    git(repository, "worktree", "add", "-q", str(tmp_path / "second"))
    coord("ann lock a.py")
    assert (tmp_path / "second/.claude/agent-claims.json").exists()
    git(repository, "worktree", "remove", "--force", str(tmp_path / "second"))
    assert coord("ann unlock a.py").code == 0
    (mirror,) = [each for each in coord("ann mirror list").answer["mirrors"] if each["on"]]
    assert mirror["folders"] == [str(repository)]


def test_uninstall_takes_the_mirrors_away(coord: Coord, repository: Path) -> None:
    coord("ann mirror on contract")
    assert (repository / ".contract").is_dir()
    assert coord("ann uninstall").code == 0
    assert not (repository / ".contract").exists()


def test_a_lost_manifest_is_reported_and_nothing_is_guessed(coord: Coord, repository: Path) -> None:
    """Without the manifest no file is ours: doctor says so, and neither off nor on touches the files."""
    coord("ann mirror on agent-claims")
    state = repository / ".git/coord/mirrors/mirror-agent-claims/state.json"
    claims = repository / ".claude/agent-claims.json"
    before = claims.read_bytes()
    for text in (b"{", None):
        if text is None:
            state.unlink()
        else:
            state.write_bytes(text)
        assert coord("ann lock a.py").code == 0
        checks = {each["check"]: each for each in coord("ann doctor").answer["checks"]}
        assert checks["mirrors"]["state"] == "warn"
        assert "nobody knows" in checks["mirrors"]["message"]
        assert claims.read_bytes() == before
    assert coord("ann mirror off agent-claims").code == 0
    assert coord("ann mirror on agent-claims").code != 0
    assert claims.read_bytes() == before
