"""What a client says of the files it asks for: a file is locked alone, all else with what is below."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client_harness import ClientHarness, open_client_harness
from tests.support.git_folders import added_worktree, made_repository

GLOB = "**/*.py"


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[ClientHarness]:
    root = tmp_path / "repository"
    made_repository(root)
    (root / "docs" / "deep").mkdir(parents=True)
    for path in ("README.md", "docs/deep/a.md", "docs/deep/x[1].md", "docs/b.py"):
        (root / path).write_text("x\n")
    (root / "docs" / "link.md").symlink_to("../README.md")
    (root / "linked").symlink_to("docs")
    with open_client_harness("memory:", root, tmp_path / "state") as clients:
        yield clients


@pytest.mark.parametrize(
    "word", ["README.md", "docs/deep/a.md", "docs/link.md", "new.md", "docs/b.py", "docs"]
)
def test_a_path_may_be_a_folder(clients: ClientHarness, word: str) -> None:
    """LCK-76, issue 15: a path covers what is below it, so the glob meets it, whatever is on the disk."""
    ann, bob = clients.client("ann"), clients.client("bob")
    ann.acquire(GLOB)
    assert not bob.check(word).free
    assert not bob.acquire(word).ok
    ann.unlock()
    assert bob.acquire(word).ok
    assert not ann.acquire(GLOB).ok


def test_where_the_client_is(clients: ClientHarness, tmp_path: Path) -> None:
    """CFL-4: a file is looked for from where the client is, also in another worktree of the repository."""
    other = tmp_path / "other"
    added_worktree(clients.repository, other)
    inside = clients.client("bob", cwd=clients.repository / "docs")
    assert inside.acquire("deep/a.md").locks[0].resource == "file:docs/deep/a.md"
    assert inside.acquire(str(other / "README.md")).locks[0].resource == "file:README.md"
    assert inside.acquire("../README.md").locks[0].refreshed


def test_steal_and_preempt_take_no_glob(clients: ClientHarness) -> None:
    """LCK-28, LCK-49: a thief of one file leaves the glob beside it to its holder; in a folder, too."""
    ann, bob, cid = (
        clients.client("ann"),
        clients.client("bob"),
        clients.client("cid", cwd=clients.repository / "docs"),
    )
    ann.acquire("docs/**/*.py")
    bob.acquire("README.md")
    assert cid.steal("../README.md", force=True, reason="needed").ok
    dan = clients.client("dan", cwd=clients.repository / "docs")
    reply = dan.preempt("../README.md", priority=3, reason="urgent", grace_s=0)
    assert {(lock.resource, lock.owner) for lock in ann.locks()} == {
        ("file:docs/**/*.py", "ann"),
        ("file:README.md", "dan"),
    }
    assert reply.locks[0].resource == "file:README.md"


def test_fence_is_believed_when_the_file_is_gone(clients: ClientHarness) -> None:
    """Who holds a file under a fence still does when it removed the file, whatever globs are held."""
    bob = clients.client("bob")
    fence = bob.acquire("README.md").locks[0].fence
    assert clients.client("ann").acquire("docs/**/*.py").ok
    (clients.repository / "README.md").unlink()
    assert bob.check("README.md", fence=fence).free


def test_block_in_a_folder(clients: ClientHarness) -> None:
    """A block renews and gives back what it took, wherever in the repository its client is.

    LCK-24, SDK-5.
    """
    inside = clients.client("bob", cwd=clients.repository / "docs")
    with inside.lock("b.py") as held:
        held.check()
        assert [lock.resource for lock in inside.locks()] == ["file:docs/b.py"]
    assert inside.locks() == []


def test_task_locks_its_files(clients: ClientHarness) -> None:
    """CLM-12: the files of a task are locked as paths, whether or not they existed when it was added."""
    ann, bob = clients.client("ann", project="shop"), clients.client("bob", project="shop")
    ann.acquire("docs/**/*.py")
    ann.add_task("T1", files=["LICENSE"])
    ann.add_task("T2", files=["docs/deep"])
    found = bob.next_task()
    assert [(lock.resource, lock.exact) for lock in found.locks] == [("file:LICENSE", False)]
    assert bob.next_task().task is None
