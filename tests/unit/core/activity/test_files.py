"""Files that a session read: the ledger gets each once a minute, and no commit is made for it."""

from typing import Any

import msgspec
import pytest

from coord.core import keys
from coord.core.activity.files import KEPT_MAX, NAMED_MAX, QUIET_MS
from coord.core.lifecycle.commands import Deregister
from coord.core.locks.commands import BeginToolCall, EndToolCall, EndToolCallReply
from coord.core.records import decode
from coord.core.sessions.identify import HEARTBEAT_QUIET_MS
from coord.core.sessions.schema import Session
from tests.support.lock_harness import REPOSITORY, LockHarness


class ReadHarness(LockHarness):
    """A lock harness whose sessions read files."""

    def report(self, name: str, *files: str, call: str = "read-1") -> bool:
        """Report files after a call that only read, of which nothing is known; return whether they count."""
        reply: EndToolCallReply = self.engine.call(EndToolCall(self.who(name), call, read=files))
        return reply.reads_logged

    def write(self, name: str, *files: str, call: str = "c1") -> bool:
        """Report files after a call that wrote, whose end is a commit."""
        self.engine.call(BeginToolCall(self.who(name), REPOSITORY, (), call=call, lease_ms=1000))
        return self.report(name, *files, call=call)

    def reads(self) -> list[tuple[str, str]]:
        return [(each["session"], each["resource"]) for each in self.events("file.read")]


@pytest.fixture
def harness() -> ReadHarness:
    found = ReadHarness()
    found.report("ada")
    return found


def test_a_read_waits_for_a_commit(harness: ReadHarness) -> None:
    """AUD-5: file_read, without a commit of its own."""
    before = harness.store.seen.offset
    assert not harness.report("ada", "file:a.py")
    assert harness.store.seen.offset == before
    assert harness.reads() == []
    assert harness.write("ada", "file:a.py")
    assert harness.reads() == [("ada", "file:a.py")]


def test_a_read_goes_with_the_end_of_a_call(harness: ReadHarness) -> None:
    before = harness.store.seen.offset
    harness.write("ada")
    plain = harness.store.seen.offset - before
    harness.write("ada", "file:a.py")
    assert harness.store.seen.offset - before == 2 * plain
    assert harness.reads() == [("ada", "file:a.py")]


def test_a_session_that_only_reads_is_logged_with_its_heartbeat(harness: ReadHarness) -> None:
    harness.now += HEARTBEAT_QUIET_MS
    assert harness.report("ada", "file:a.py")
    assert not harness.report("ada", "file:b.py")
    assert harness.reads() == [("ada", "file:a.py")]


def test_the_end_of_a_turn_logs_what_is_left(harness: ReadHarness) -> None:
    before = harness.store.seen.offset
    assert not harness.report("ada", call="")
    assert harness.store.seen.offset == before
    assert harness.report("ada", "file:a.py", call="")
    assert harness.reads() == [("ada", "file:a.py")]
    assert harness.report("ada", "file:a.py", call="")
    assert harness.store.seen.offset == before + 1, "all is known, so there is nothing to commit"


def test_a_busy_session_does_not_flood_the_log(harness: ReadHarness) -> None:
    """Once per session, file and minute; another session and another file count for themselves."""
    for _ in range(10):
        assert harness.write("ada", "file:a.py", "file:a.py")
        harness.now += QUIET_MS // 20
    harness.write("bob", "file:a.py")
    harness.write("ada", "file:b.py")
    assert harness.reads() == [("ada", "file:a.py"), ("bob", "file:a.py"), ("ada", "file:b.py")]
    harness.now += QUIET_MS
    harness.write("ada", "file:a.py")
    assert harness.reads()[-1] == ("ada", "file:a.py")
    assert len(harness.reads()) == 4


def test_many_files_are_one_number(harness: ReadHarness) -> None:
    files = [f"file:{number}" for number in range(NAMED_MAX + 1000)]
    harness.write("ada", *files)
    logged: list[dict[str, Any]] = harness.events("file.read")
    assert [each["resource"] for each in logged] == files[:NAMED_MAX]
    assert [each.get("others", 0) for each in logged] == [0] * (NAMED_MAX - 1) + [1000]


def test_what_a_session_remembers_is_bounded_and_short(harness: ReadHarness) -> None:
    for number in range(3 * KEPT_MAX // NAMED_MAX):
        harness.write("ada", *(f"file:{number}/{each}" for each in range(NAMED_MAX)))
    assert len(remembered(harness).read) == KEPT_MAX
    harness.now += QUIET_MS
    harness.write("ada", "file:x")
    assert len(remembered(harness).read) == 1
    assert remembered(harness).read_ms == harness.now


def remembered(harness: ReadHarness) -> Session:
    record = harness.store.load([keys.session("ada")])[keys.session("ada")]
    assert record.value is not None
    return decode(record.value, Session, "ada")


@pytest.mark.parametrize(
    "text",
    [
        *("name:release", "bob file:x", "", "file:", "file:/etc/passwd", "file:../x", "file:a/../../b"),
        *("file:a\nb", "file:\x1b[31mred", "file:" + "x" * 5000),
    ],
)
def test_only_files_are_read(harness: ReadHarness, text: str) -> None:
    assert harness.write("ada", text, "file:good")
    assert harness.reads() == [("ada", "file:good")]


def test_the_end_of_a_session_logs_what_is_left(harness: ReadHarness) -> None:
    harness.write("ada", "file:a.py")
    before = harness.store.seen.offset
    harness.engine.call(Deregister(harness.who("ada"), read=("file:a.py", "file:b.py")))
    assert harness.store.seen.offset == before + 1
    assert harness.reads() == [("ada", "file:a.py"), ("ada", "file:b.py")]


def test_nobody_reports_what_another_session_read(harness: ReadHarness) -> None:
    child = msgspec.structs.replace(harness.who("ada.sub"), parent="ada")
    harness.engine.call(EndToolCall(child))
    harness.engine.call(Deregister(harness.who("ada"), "ada.sub", read=("file:a.py",)))
    assert harness.events("session.ended")[-1]["session"] == "ada.sub"
    assert harness.reads() == []
