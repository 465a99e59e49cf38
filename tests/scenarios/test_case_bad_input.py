"""Bad input through the library: refused at the edge with what would be right, and nothing is written."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coord import CoordError, Invalid, NotFound
from tests.support.client_harness import ClientHarness
from tests.support.git_folders import added_submodule

TEN_KB = "x" * 10_000
DEEP: dict[str, Any] = {}
for _ in range(2000):
    DEEP = {"deeper": DEEP}


class RefusalHarness:
    """A session at work in an office, and the proof that what it asks is refused."""

    def __init__(self, clients: ClientHarness) -> None:
        self.clients = clients
        self.ann = clients.client("ann")
        self.ann.register()
        assert self.ann.acquire("src/app.py").ok

    def refuse(self, call: Callable[..., object], *given: Any, **named: Any) -> CoordError:
        """Prove that a call is refused as invalid."""
        return self.refuse_as(Invalid, call, *given, **named)

    def refuse_as(
        self, kind: type[CoordError], call: Callable[..., object], *given: Any, **named: Any
    ) -> CoordError:
        """Prove that a call is refused with a hint, and that the log did not grow."""
        before = self.clients.head
        with pytest.raises(kind) as caught:
            call(*given, **named)
        assert caught.value.hint, f"{caught.value} says nothing of what to do"
        assert "defect" not in caught.value.hint, caught.value
        assert len(str(caught.value)) < 1000, "a message repeats no book"
        assert self.clients.head == before
        return caught.value


@pytest.fixture
def harness(clients: ClientHarness) -> RefusalHarness:
    """A session that holds one lock."""
    return RefusalHarness(clients)


RESOURCES = {
    "above the repository": "../x",
    "above it in the middle": "src/../../x",
    "absolute, outside": "/etc/passwd",
    "inside the git directory": ".git/config",
    "the same in capitals": ".GIT/hooks/pre-commit",
    "NUL": "a\0b",
    "newline": "a\nb",
    "escape character": "a\x1bb",
    "half a character": "a\udc80b",
    "10 kB": TEN_KB,
    "a long path": "/".join(["directory"] * 100),
    "empty": "",
    "no path after the scheme": "file:",
    "an open class": "src/[a-",
    "an open brace": "src/{a,b",
    "a class that runs backwards": "src/[z-a]",
    "a hundred alternatives": "src/{" + ",".join(map(str, range(100))) + "}",
    "a hundred wildcards": "*a" * 100,
    "a trailing backslash": "src\\",
    "an empty name": "name:",
    "a name of 10 kB": f"name:{TEN_KB}",
    "a name with a newline": "name:a\nb",
    "a name with NUL": "name:a\0b",
    "a name of space": "name: ",
    "an empty project": "project:",
    "a project above": "project:../x",
    "an area with a slash": "project:shop:a/b",
    "an empty area": "project:shop:",
    "two areas": "project:shop:a:b",
}


def test_resources(harness: RefusalHarness) -> None:
    """CFL-4: what escapes, cannot be shown, is too long or malformed is no resource, for any command."""
    ann = harness.ann
    for resource in RESOURCES.values():
        harness.refuse(ann.acquire, resource)
        harness.refuse(ann.acquire, ["src/ok.py", resource])
        harness.refuse(ann.acquire, resource, wait_s=10)
        harness.refuse(ann.check, resource)
        harness.refuse(ann.unlock, [resource])
        harness.refuse(ann.renew, [resource])
        harness.refuse(ann.steal, resource, force=True, reason="why")
        harness.refuse(ann.preempt, resource, priority=5, reason="why")


def test_what_is_no_list_of_resources(harness: RefusalHarness) -> None:
    """An empty list, things that are no text, and more than can be meant."""
    ann = harness.ann
    for nothing in (list[str](), ()):
        harness.refuse(ann.acquire, nothing)
        harness.refuse(ann.check, nothing)
        harness.refuse(ann.steal, nothing)
        harness.refuse(ann.unlock, nothing)
        harness.refuse(ann.renew, nothing)
        harness.refuse(ann.preempt, nothing, priority=5, reason="why")
    for no_text in ([7], [None], [b"src"], [["src"]], 7):
        harness.refuse(ann.acquire, no_text)
        harness.refuse(ann.check, no_text)
        harness.refuse(ann.unlock, no_text)
    harness.refuse(ann.acquire, [f"src/{number}.py" for number in range(65)])
    harness.refuse(ann.lock().begin)


LEADING_OUT = ["out", "out/key", "out/*", "src/up/x", "inside/config", "loop", "loop/x", "vendor/src/app.py"]


def test_paths_that_lead_out(harness: RefusalHarness, tmp_path: Path) -> None:
    """A symlink out of the tree, into the git directory, to itself; and the inside of a submodule."""
    root = harness.clients.repository
    (tmp_path / "secrets").mkdir()
    os.symlink(tmp_path / "secrets", root / "out")
    os.symlink("../..", root / "src/up")
    os.symlink(".git", root / "inside")
    os.symlink("loop", root / "loop")
    added_submodule(root, tmp_path / "library", "vendor")
    for path in LEADING_OUT:
        harness.refuse(harness.ann.acquire, path)
        harness.refuse(harness.ann.check, path)


def test_durations(harness: RefusalHarness) -> None:
    """A lease, a wait or a lifetime is a number of seconds in measure."""
    ann = harness.ann
    senseless = (-1, float("nan"), float("inf"), 10**9, 10**400, "300", True)
    for seconds in (*senseless, 0, 0.5):
        harness.refuse(ann.acquire, "src/b.py", ttl_s=seconds)
        harness.refuse(ann.renew, "src/app.py", ttl_s=seconds)
        harness.refuse(ann.send, "ann", "status", "hello", ttl_s=seconds)
        harness.refuse(ann.steal, "src/b.py", force=True, reason="why", ttl_s=seconds)
    for seconds in (*senseless, -0.001):
        harness.refuse(ann.acquire, "src/b.py", wait_s=seconds)
        harness.refuse(ann.recv, wait_s=seconds)
        harness.refuse(ann.preempt, "src/b.py", priority=1, reason="why", grace_s=seconds)


def test_priorities(harness: RefusalHarness) -> None:
    """A priority is a whole number from -100 to 100."""
    ann = harness.ann
    for priority in (101, -101, 1.5, "5", True, None, 10**400):
        harness.refuse(ann.acquire, "src/b.py", priority=priority)
        harness.refuse(ann.preempt, "src/b.py", priority=priority, reason="why")
        harness.refuse(ann.send, "ann", "status", "hello", priority=priority)
    assert ann.acquire("src/b.py", priority=-100).ok


def test_kinds(harness: RefusalHarness) -> None:
    """MSG-2: kinds are an open set of short words."""
    for kind in ("", "Status", "two words", "a/b", "a\nb", "x" * 33, "7up", "é", None, 7):
        harness.refuse(harness.ann.send, "ann", kind, "hello")
        harness.refuse(harness.ann.broadcast, kind, "hello")
    assert harness.ann.send("ann", "x" * 32, "hello").id


BLOBS = {
    "a list": [1, 2],
    "text": "notes",
    "a number": 7,
    "a set inside": {"a": {1, 2}},
    "bytes inside": {"a": b"x"},
    "not a number": {"a": float("nan")},
    "a key that is no text": {1: "a"},
    "half a character": {"a": "\udc80"},
    "too big": {"a": "x" * 40_000},
    "too deep": DEEP,
}


def test_blobs(harness: RefusalHarness) -> None:
    """PRB-26: a blob is a JSON object in measure; whatever is in it is kept as it is."""
    ann = harness.ann
    for blob in BLOBS.values():
        harness.refuse(ann.send, "ann", "status", "hello", blob=blob)
        harness.refuse(ann.broadcast, "status", "hello", blob=blob)
        harness.refuse(ann.register, blob=blob)
        harness.refuse(ann.update, blob=blob)
        harness.refuse(ann.update, merge_blob=blob)
        harness.refuse(ann.update, owned=blob)


def test_a_blob_that_grows_by_merging(harness: RefusalHarness) -> None:
    """Merging stays in measure, too: pieces that fit do not add up to what does not."""
    ann = harness.ann
    ann.update(merge_blob={"a": "x" * 30_000})
    harness.refuse(ann.update, merge_blob={"b": "x" * 30_000})
    ann.update(owned={"a": "x" * 30_000})
    harness.refuse(ann.update, owned={"b": "x" * 30_000})
    assert ann.update(merge_blob={"a": "small again"}).blob == {"a": "small again"}


def test_lines_of_text(harness: RefusalHarness) -> None:
    """A subject or a reason is one printable line in measure."""
    ann = harness.ann
    for text in ("a\nb", "a\0b", "x" * 501, 7, b"x"):
        harness.refuse(ann.send, "ann", "status", text)
        harness.refuse(ann.update, task=text)
        harness.refuse(ann.register, phase=text)
        harness.refuse(ann.acquire, "src/b.py", reason=text)
    harness.refuse(ann.send, "ann", "status", None)


def test_bodies(harness: RefusalHarness) -> None:
    """A body is text of at most 64 KiB, to all of at most 8."""
    for body in ("a\0b", "\ud800", "x" * 65_537, "é" * 32_769, None, b"x"):
        harness.refuse(harness.ann.send, "ann", "status", "hello", body=body)
        harness.refuse(harness.ann.broadcast, "status", "hello", body=body)
    harness.refuse(harness.ann.broadcast, "status", "hello", body="x" * 8193)
    assert harness.ann.send("ann", "status", "hello", body="x" * 65_536).id


def test_words_that_do_not_exist(harness: RefusalHarness) -> None:
    """An unknown mode or profile names the known ones."""
    ann = harness.ann
    for mode in ("shared", "READ", "w", "\0", ["read"]):
        assert "exclusive" in harness.refuse(ann.acquire, "src/b.py", mode=mode).hint
        assert "exclusive" in harness.refuse(ann.check, "src/b.py", mode=mode).hint
    for profile in ("tickets", "File", "*"):
        assert "ticket" in harness.refuse(ann.acquire, "src/b.py", profile=profile).hint


def test_fences(harness: RefusalHarness) -> None:
    """A fence is what a lock was granted with; zero is none."""
    ann = harness.ann
    for fence in (0, -1, 1.5, "7", True, 2**53):
        harness.refuse(ann.unlock, "src/app.py", fence=fence)
        harness.refuse(ann.renew, "src/app.py", fence=fence)
        harness.refuse(ann.check, "src/app.py", fence=fence)
    assert [lock.owner for lock in ann.locks()] == ["ann"]


def test_session_ids(harness: RefusalHarness) -> None:
    """Ids from outside are checked before they become keys."""
    ann = harness.ann
    for session in ("a/b", "a b", "../x", "a\0b", "a\nb", "~2", "x" * 129, "é", 7):
        harness.refuse(ann.send, session, "status", "hello")
        harness.refuse(ann.dereg, session)
        harness.refuse(ann.register, replaces=session)
        harness.refuse(ann.show, session)
        harness.refuse(ann.locks, session)
        harness.refuse(harness.clients.client, session)
    harness.refuse(ann.send, "", "status", "hello")


def test_what_is_not_there(harness: RefusalHarness) -> None:
    """A peer, a lock or a message that does not exist is told apart from a malformed one."""
    ann = harness.ann
    harness.refuse_as(NotFound, ann.send, "nobody", "status", "hello")
    harness.refuse_as(NotFound, ann.dereg, "nobody")
    harness.refuse_as(NotFound, ann.show, "nobody")
    harness.refuse_as(NotFound, ann.locks, "nobody")
    harness.refuse_as(NotFound, ann.unlock, "src/free.py")
    harness.refuse_as(NotFound, ann.renew, "src/free.py")
    harness.refuse_as(NotFound, ann.steal, "src/free.py")
    harness.refuse_as(NotFound, ann.preempt, "src/free.py", priority=5, reason="why")
    harness.refuse_as(NotFound, ann.ack, "1-1")


def test_orders_that_need_a_reason(harness: RefusalHarness) -> None:
    """Force and preemption are audited, so they say why; and one cannot drain and only look."""
    bob = harness.clients.client("bob")
    bob.register()
    harness.refuse(bob.steal, "src/app.py", force=True)
    harness.refuse(bob.preempt, "src/app.py", priority=5, reason="")
    harness.refuse(bob.recv, drain=True, peek=True)
    harness.refuse(bob.acquire, ["name:claude-config", "src/b.py"])
    assert [lock.owner for lock in bob.locks()] == ["ann"]
