"""`coord log`, `coord metrics` and `coord migrate` as commands, and what they rest on."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coord
from coord.core.errors import Invalid
from coord.followers.direct import log_source
from coord.followers.metrics.counts import LABELS_MAX
from coord.followers.metrics.gauges import metrics
from coord.sdk import log_reader
from coord.sdk.client.client import Client
from coord.sdk.coordinator import TaskCoordinator
from coord.sdk.reports import activity
from coord.sdk.reports.activity import EventFilter, event_filter, lock_periods, newest_events, stats
from coord.transports.cli.main import main
from tests.support.docs.pages import blocks_in
from tests.support.git_folders import git

NOW = 1_700_000_000_000
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (\d+)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\[\\n"])*)"')


class Morning:
    """Three sessions in one repository, at a clock that the test turns."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.now = NOW
        self._folder = folder
        self._url = url
        self.clients = {name: self._connected(name) for name in ("ann", "bob", "cid")}

    def _connected(self, name: str) -> Client:
        environ = {"XDG_STATE_HOME": str(self._folder / "state"), "COORD_URL": self._url}
        return coord.connect(
            session=f"{name}-1", agent=name, cwd=str(self._folder), environ=environ, clock=lambda: self.now
        )

    def __getitem__(self, name: str) -> Client:
        return self.clients[name]

    def hold(self, name: str, resource: str, seconds: float) -> None:
        """Hold a lock for a while."""
        assert self[name].acquire(resource).ok
        self.now += round(seconds * 1000)
        self[name].unlock(resource)

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh repository, in which the commands of a test run."""
    made = tmp_path / "shop"
    made.mkdir()
    git(made, "init", "-q")
    monkeypatch.chdir(made)
    for name in [name for name in os.environ if name.startswith(("COORD_", "CLAUDE", "AI_AGENT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COORD_SESSION_ID", "ann-1")
    monkeypatch.setenv("XDG_STATE_HOME", str(made / "state"))
    return made


@pytest.fixture
def morning(folder: Path) -> Iterator[Morning]:
    made = Morning(folder)
    yield made
    made.close()


@pytest.fixture
def ran(capfd: pytest.CaptureFixture[str]) -> Any:
    """Run a command; return its exit code, its answer, and the line for people."""

    def run(*argv: str) -> tuple[int, Any, str]:
        capfd.readouterr()
        code = main(argv)
        out, err = capfd.readouterr()
        return code, json.loads(out) if out.startswith("{") else out, err

    return run


def names(found: activity.Activity) -> list[str]:
    return [happening.event for happening in found.events]


def busy(morning: Morning) -> None:
    """A lock, a refusal, a message, a lock on what was refused."""
    morning["ann"].acquire("src/*", reason="rework")
    morning["bob"].acquire("src/app.py")
    morning["cid"].acquire("docs/a.md")
    morning.now += 5000
    morning["ann"].unlock("src/*")
    morning["bob"].acquire("src/app.py")
    morning["bob"].send("ann-1", "status", "hi")


def test_the_newest_come_in_order(morning: Morning) -> None:
    """`log tail` shows the newest events, oldest first, with offset and time.

    CLI-18, AUD-16, PRB-22, MSG-17.
    """
    busy(morning)
    every = newest_events(morning["ann"], EventFilter(), 1000)
    assert [each.offset for each in every.events] == sorted(each.offset for each in every.events)
    assert names(every)[-1] == "message.sent"
    assert every.events[-1].at_ms == NOW + 5000
    assert newest_events(morning["ann"], EventFilter(), 3).events == every.events[-3:]
    assert (every.head, every.begins_at) == (every.events[-1].offset, 0)


def test_events_are_found_by_what_they_are(morning: Morning) -> None:
    """--op takes an event, a kind of event, or the founding documents' name; an unknown one is an error.

    AUD-5, CFL-23.
    """
    busy(morning)
    ann = morning["ann"]
    assert names(newest_events(ann, event_filter(ann, op="lock.denied"))) == ["lock.denied"]
    assert names(newest_events(ann, event_filter(ann, op="lock_denied"))) == ["lock.denied"]
    assert set(names(newest_events(ann, event_filter(ann, op="lock")))) == {
        "lock.acquired",
        "lock.denied",
        "lock.released",
    }
    with pytest.raises(Invalid, match="unknown event"):
        event_filter(ann, op="lock.stolen")


def test_events_are_found_by_who_and_what(morning: Morning) -> None:
    """--actor takes a session or an agent; --resource finds whatever meets it, globs included."""
    busy(morning)
    ann = morning["ann"]
    for actor in ("bob-1", "bob"):
        found = newest_events(ann, event_filter(ann, actor=actor))
        assert {"lock.denied", "lock.acquired"} <= set(names(found))
    assert all(
        each.details["session"] == "bob-1" for each in newest_events(ann, EventFilter(actor="bob-1")).events
    )
    on_file = newest_events(ann, event_filter(ann, resources=["src/app.py"]))
    assert names(on_file) == ["lock.acquired", "lock.denied", "lock.released", "lock.acquired"]
    assert names(newest_events(ann, event_filter(ann, resources=["src/else.py"]))) == [
        "lock.acquired",
        "lock.released",
    ]
    assert names(newest_events(ann, event_filter(ann, resources=["name:x"]))) == []


def test_events_are_found_by_when(morning: Morning) -> None:
    """--since leaves out what is older."""
    busy(morning)
    ann = morning["ann"]
    recent = newest_events(ann, EventFilter(since_ms=NOW + 5000))
    assert names(recent) == ["lock.released", "lock.acquired", "message.sent"]
    assert names(newest_events(ann, EventFilter(since_ms=NOW + 5001))) == []


def test_a_large_log_is_read_in_pages(morning: Morning, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages change nothing: the same events, numbers and holders come with pages of any size."""
    for number in range(20):
        morning.hold("ann", f"name:n{number}", 1)
    ann, which = morning["ann"], EventFilter(op="lock.released")
    answers = []
    for size in (2, 3, 500):
        monkeypatch.setattr(log_reader, "PAGE_ENTRIES", size)
        answers.append((newest_events(ann, which, 7), stats(ann, which), lock_periods(ann, EventFilter(), 9)))
    assert answers[0] == answers[1] == answers[2]
    assert [each.details["resource"] for each in answers[0][0].events] == [
        f"name:n{n}" for n in range(13, 20)
    ]


def test_holds_and_waits_have_percentiles(morning: Morning) -> None:
    """The p50, p95 and maximum of how long locks were held, and how they ended.

    OBS-23, AUD-17, AUD-11, OBS-10, OBS-26, CLI-27.
    """
    for seconds in range(1, 21):
        morning.hold("ann", "src/app.py", seconds)
    morning["ann"].acquire("src/app.py", ttl_s=2)
    morning.now += 10_000
    morning["bob"].acquire("src/app.py")
    found = stats(morning["ann"], EventFilter())
    assert (found.holds.count, found.holds.p50_s, found.holds.p95_s, found.holds.max_s) == (21, 10, 19, 20)
    assert found.endings == {"expired": 1, "released": 20}
    assert found.events["lock.acquired"] == 22
    assert found.waits.count == 0


def test_what_was_trimmed_is_said(morning: Morning) -> None:
    """A log without its beginning is read from where it begins, and the answer says so."""
    for number in range(10):
        morning.hold("ann", f"name:n{number}", 1)
    ann = morning["ann"]
    head = newest_events(ann, EventFilter()).head
    ann.database.log("local").trim(head - 3)
    found = newest_events(ann, EventFilter(), 1000)
    assert (found.begins_at, found.events[0].offset, len(found.events)) == (head - 3, head - 3, 4)
    assert stats(ann, EventFilter()).begins_at == head - 3
    assert stats(ann, EventFilter()).entries == 4
    assert len(lock_periods(ann, EventFilter())) == 10


def test_who_held_what_when(morning: Morning) -> None:
    """`log locks` joins what ended with what stands, for whatever meets a resource.

    CLI-18, AUD-18, LCK-8.
    """
    busy(morning)
    ann = morning["ann"]
    found = lock_periods(ann, event_filter(ann, resources=["src/app.py"]))
    assert [(each.resource, each.owner, each.end_reason) for each in found] == [
        ("file:src/*", "ann-1", "released"),
        ("file:src/app.py", "bob-1", ""),
    ]
    assert (found[0].from_ms, found[0].until_ms, found[0].reason) == (NOW, NOW + 5000, "rework")
    assert (found[1].from_ms, found[1].until_ms) == (NOW + 5000, 0)
    assert found[0].fence < found[1].fence
    assert [each.owner for each in lock_periods(ann, event_filter(ann, actor="cid-1"))] == ["cid-1"]


def test_the_commands_answer(morning: Morning, ran: Any) -> None:
    """CLI-18, AUD-19: each view is one JSON answer with a line for people."""
    busy(morning)
    code, answer, line = ran("log", "tail", "-n", "2", "--resource", "src/app.py")
    assert (code, [each["event"] for each in answer["events"]]) == (0, ["lock.released", "lock.acquired"])
    assert answer["events"][1]["at"] == "2023-11-14T22:13:25.000Z"
    assert line == "2 events\n"
    code, answer, line = ran("log", "stats")
    assert (code, answer["holds"]["max_s"]) == (0, 5)
    assert "lock times: once, p50 5 s" in line
    code, answer, line = ran("log", "locks", "src/app.py")
    assert (code, line, len(answer["locks"])) == (0, "0 current, 2 ended\n", 2)
    assert [each["end_reason"] for each in answer["locks"]] == [
        "released",
        "expired",
    ]  # years ago, at its deadline
    assert answer["locks"][1]["until_at"] == "2023-11-14T22:18:25.000Z"
    code, answer, _ = ran("log", "session", "bob-1", "--op", "lock")
    assert {each["session"] for each in answer["events"]} == {"bob-1"}
    code, answer, _ = ran("log", "session", "--op", "lock.acquired")
    assert [each["session"] for each in answer["events"]] == ["ann-1"]
    assert ran("log", "tail", "--since", "1h")[1]["events"] == []


@pytest.mark.parametrize(
    "argv",
    [
        ("log",),
        ("log", "head"),
        ("log", "tail", "-n", "0"),
        ("log", "tail", "-n", "many"),
        ("log", "tail", "word"),
        ("log", "tail", "--op", "nonsense"),
        ("log", "stats", "--follow"),
        ("log", "session", "bob-1", "--actor", "ann-1"),
        ("log", "locks", "../x"),
        ("metrics", "word"),
        ("migrate",),
        ("migrate", "--to-url", "mongodb://host/0"),
        ("migrate", "--to-url", "memory:"),
        ("migrate", "--to-url", "sqlite:///x.db", "--cancel"),
        ("migrate", "--to-url", "sqlite:///x.db", "--url", "sqlite:///y.db"),
    ],
)
def test_what_makes_no_sense_is_refused(argv: tuple[str, ...], morning: Morning, ran: Any) -> None:
    """Bad input is exit 2 with a hint, and nothing changes."""
    code, answer, _ = ran(*argv)
    assert code == 2
    assert answer["error"]["hint"]


def test_following_goes_on_until_nobody_reads(folder: Path) -> None:
    """--follow prints what happens as it happens, and ends when its reader is gone or a signal comes."""
    with coord.connect(session="ann-1", cwd=str(folder), environ={"XDG_STATE_HOME": str(folder)}) as ann:
        ann.acquire("name:first")
        for end_reason in ("signal", "closed"):
            program = [
                sys.executable,
                "-m",
                "coord.transports.cli.main",
                "log",
                "tail",
                "--follow",
                "-n",
                "1",
            ]
            with subprocess.Popen(
                program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as child:
                assert child.stdout is not None
                json.loads(child.stdout.readline())
                ann.acquire(f"name:{end_reason}")
                seen = json.loads(child.stdout.readline())
                assert (seen["event"], seen["resource"]) == ("lock.acquired", f"name:{end_reason}")
                if end_reason == "signal":
                    child.send_signal(signal.SIGTERM)
                    assert child.wait(60) == 128 + signal.SIGTERM
                else:
                    child.stdout.close()
                    ann.unlock("name:closed")
                    assert child.wait(60) == 0


def counted(morning: Morning, prefix: str = "coditect") -> str:
    return metrics(log_source(morning["ann"]), morning["ann"].caller, prefix)


def samples(text: str) -> dict[tuple[str, ...], int]:
    """Parse Prometheus text strictly: name and the values of the labels, to the value."""
    found: dict[tuple[str, ...], int] = {}
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# "):
            assert re.fullmatch(r"# (HELP|TYPE) [a-z_]+ .+", line)
            continue
        parsed = LINE.fullmatch(line)
        assert parsed, line
        labels = LABEL.findall(parsed[2] or "")
        values = [re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value) for _, value in labels]
        found[parsed[1], *values] = int(parsed[3])
    return found


def test_metrics_count_what_is_there(morning: Morning, ran: Any) -> None:
    """Live sessions, held locks by resource, messages; denials, bids, waiters.

    CLI-19, OBS-22, CFL-24, OBS-5, OBS-6, CLI-5.
    """
    busy(morning)
    morning["ann"].recv(drain=True)
    found = samples(counted(morning))
    assert found["coord_sessions_live",] == 3
    assert found["coord_locks_held", "file:src/app.py"] == 1
    assert found["coord_locks_held", "file:docs/a.md"] == 1
    assert ("coord_locks_held", "file:src/*") not in found
    assert found["coord_messages_sent_total",] == found["coord_messages_received_total",] == 2
    assert (found["coord_lock_denials_total",], found["coord_deadlocks_total",]) == (1, 0)
    assert (found["coord_lock_denied_requests",], found["coord_lock_waiters",]) == (0, 0)
    assert found["coord_events_total", "lock.acquired"] == found["coord_locks_acquired_total",] == 3
    morning.now += 400_000
    later = samples(counted(morning))
    assert later["coord_sessions_live",] == 0
    assert ("coord_locks_held", "file:docs/a.md") not in later
    code, text, _ = ran("metrics")
    assert code == 0
    assert "# TYPE coord_sessions_live gauge\n" in text


def test_metrics_know_tasks(morning: Morning) -> None:
    """Claims, results, renewals, expirations and generations by tenant and project.

    OBS-11, OBS-12, OBS-13, OBS-14, OBS-15, OBS-16, OBS-17, OBS-18, OBS-25, DOC-4.
    """
    tasks = TaskCoordinator(morning["ann"].database, clock=lambda: morning.now)
    for task in ("A-001-x", "A-002-y", "A-003-z"):
        claim = tasks.claim_task("local", "shop", task, "ann", "ann-1", lease_duration_seconds=60).claim
        assert claim is not None
    tasks.renew_lease("local", "shop", "A-001-x", "ann-1", 1)
    tasks.submit_result("local", "shop", "A-001-x", "ann-1", 1, {})
    tasks.submit_result("local", "shop", "A-002-y", "bob-1", 1, {})
    morning.now += 61_000
    tasks.claim_task("local", "shop", "A-002-y", "bob", "bob-1")
    tasks.submit_result("local", "shop", "A-002-y", "ann-1", 1, {})
    found = samples(counted(morning))
    where = ("local", "shop")
    assert found["coditect_claims_total", *where, "granted"] == 4
    assert found["coditect_results_total", *where, "accepted"] == 1
    assert found["coditect_results_total", *where, "session_mismatch"] == 1
    assert found["coditect_results_total", *where, "stale_generation"] == 1
    assert found["coditect_lease_renewals_total", *where, "renewed"] == 1
    assert found["coditect_lease_expirations_total", *where] == 2
    assert found["coditect_generation_increments_total", *where] == 4
    assert found["coditect_active_claims", *where] == 1
    assert found["coditect_pending_tasks", *where] == 1
    assert found["coditect_completed_tasks", *where] == 1


def test_hostile_names_stay_labels(morning: Morning) -> None:
    """A name with quotes, backslashes and braces cannot break out of its label or forge a sample."""
    evil = ['name:x"} 99', "name:a\\", 'name:{"b\\n"}', "name:ß…"]
    morning["ann"].acquire(evil)
    found = samples(counted(morning))
    assert {key[1] for key in found if key[0] == "coord_locks_held"} == set(evil)


def test_labels_are_bounded(morning: Morning) -> None:
    """However many resources are held, at most a hundred are told apart; the rest is one."""
    for start in (0, 50, 100):
        assert morning["ann"].acquire([f"name:n{number:03}" for number in range(start, start + 50)]).ok
    held = {k[1]: v for k, v in samples(counted(morning)).items() if k[0] == "coord_locks_held"}
    assert len(held) == LABELS_MAX + 1
    assert (held["other"], sum(held.values())) == (150 - LABELS_MAX, 150)


def test_migrate_moves_the_store(folder: Path, morning: Morning, ran: Any) -> None:
    """CLI-22: a dry run counts, the move answers with what was moved, locks stay; a full store is refused."""
    busy(morning)
    fences = {lock.resource: lock.fence for lock in morning["ann"].locks()}
    url = f"file://{folder}/new"
    code, answer, line = ran("migrate", "--to-url", url, "--dry-run")
    assert (code, answer["migrated"], answer["records"]["local"]["lock"]) == (0, False, 2)
    assert "Dry run: " in line
    code, answer, line = ran("migrate", "--to-url", url)
    assert (code, answer["migrated"], answer["to_url"]) == (0, True, url)
    assert line.startswith("Moved ")
    moved = Morning(folder)
    moved.now = morning.now
    assert {lock.resource: lock.fence for lock in moved["ann"].locks()} == fences
    moved.close()
    code, answer, _ = ran("migrate", "--to-url", f"sqlite://{folder}/.git/coord/store/coord.db")
    assert (code, answer["error"]["code"]) == (1, "refused")
    assert ran("migrate", "--cancel")[1] == {"ok": True, "cancelled": False}


def test_the_page_about_moving_is_true(folder: Path, morning: Morning, ran: Any) -> None:
    """Every command of docs/how-to/migrate.md is carried out as written, but for the folder."""
    busy(morning)
    before = len(morning["ann"].locks())
    lines = [line for block in blocks_in("docs/how-to/migrate.md", "console") for line in block.splitlines()]
    commands = [line.replace("file:///srv", f"file://{folder}").split()[2:] for line in lines]
    codes = [ran(*words)[0] for words in commands]
    assert [words[0] for words in commands] == ["migrate", "migrate", "locks", "migrate"]
    assert codes == [0, 0, 0, 0]
    moved = Morning(folder)
    moved.now = morning.now
    assert moved["ann"].database.url == f"file://{folder}/coord/shop"
    assert len(moved["ann"].locks()) == before
    moved.close()
