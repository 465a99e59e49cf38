"""The demo as somebody runs it, and its proof against logs that were tampered with."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from rich.console import Console

import coord
from coord.sdk.plans.check import check_plan
from coord.sdk.plans.file import read_plan
from coord.transports.hub.page.report import MARK
from demo.conductor import Outcome, Reply
from demo.ending import print_proof
from demo.git_act import Landing
from demo.log import Event
from demo.plan import AGENTS, FATES, HOT_FILE, KINDS, PLAN_FILE, Fate
from demo.proof import find_contradictions, find_faults, find_lock_faults, find_lost_lines
from demo.screen import drawn
from demo.stage import Part, Piece, Stage

ROOT = Path(__file__).resolve().parents[3]
TASK, OTHER = "A-001-lamp", "A-002-stairs"
LATER = "A-003-door"
PIECES = {
    TASK: Piece(TASK, files=("file:lamp.py",)),
    OTHER: Piece(OTHER),
    LATER: Piece(LATER, depends_on=(TASK,)),
}


def demo_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "demo", *arguments]


def processes_naming(text: str) -> list[str]:
    listing = subprocess.run(["ps", "-eww", "-o", "args"], check=True, capture_output=True, text=True).stdout
    return [line for line in listing.splitlines() if text in line]


def test_the_demo_proves_itself_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Issue 4, must show: kills, zombies, a hot file and a deadlock are played, proven and tidied up."""
    page, home = tmp_path.parent / f"{tmp_path.name}.html", tmp_path.parent / f"{tmp_path.name}-home"
    home.mkdir()
    environ = {name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}
    run = subprocess.run(
        demo_command("--html", str(page)),
        cwd=ROOT,
        env={**environ, "TMPDIR": str(tmp_path), "HOME": str(home), "COORD_URL": "file:///nowhere"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "20 tasks, 20 task.completed events, one for each" in run.stdout
    assert re.search(r"http://127\.0\.0\.1:\d+/login#\S+", run.stdout), "no link to the page"
    assert MARK in page.read_bytes()
    ending = run.stdout.partition("\nREPORT: ")[2]
    assert re.search(r"^tasks +20 done", ending, re.MULTILINE), "the demo ends with the report"
    assert re.search(r"^overwrites .*, 1 undone$", ending, re.MULTILINE)
    assert re.search(r"^deadlocks +1;", ending, re.MULTILINE)
    proven = re.search(
        r"PROVEN: 20 tasks, \d+ claims, 4 workers killed, (\d+) zombies refused, (\d+) lock waits, "
        r"(\d+) deadlock broken",
        run.stdout,
    )
    assert proven is not None, run.stdout
    assert int(proven[1]) >= 4
    assert int(proven[2]) >= 1
    assert int(proven[3]) >= 1
    assert "(killed -9)" in run.stdout
    assert "(lost a deadlock)" in run.stdout
    assert "came back, and was refused: STALE_GENERATION" in run.stdout
    assert re.search(r"waits for file:src/app.py, held by \w+-1", run.stdout)
    assert_git_act_shown(run.stdout)
    assert list(tmp_path.iterdir()) == []
    assert list(home.iterdir()) == [], "the agents of the user would hear of those of the demo"
    assert processes_naming(str(tmp_path)) == []


def assert_git_act_shown(told: str) -> None:
    """Issue 5, must show: worktrees, an overwrite reported to both, a merge that lands, and a late one."""
    assert "gus-1, hana-1 and ivo-1 have worktrees" in told
    assert "hana-1   read: coord: this command changed src/app.py, which session gus-1 holds" in told
    assert "gus-1    read: src/app.py was overwritten: A shell command of session hana-1" in told
    assert re.search(r"agent/gus is MERGED: main is at \w{10}\n", told)
    assert re.search(r"agent/ivo is REFUSED: .* under fence \d+ of ivo-1, which was lost", told)
    assert "2 branches merged, 1 refused, 1 overwrite caught, main intact" in told


def role_of(address: str, code: str) -> str:
    """Log in with a link as a browser does; return the role that it has then."""
    body = json.dumps({"once": code}).encode()
    headers = {"Content-Type": "application/json", "Origin": address}
    with urlopen(Request(f"{address}/login", body, headers)) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    with urlopen(Request(f"{address}/v1/page", headers={"Cookie": cookie})) as answer:
        return str(json.load(answer)["who"]["role"])


def test_an_interrupted_run_stops_its_workers(tmp_path: Path) -> None:
    """Ctrl-C ends the demo with 130, without a worker left running or stopped."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = demo_command("--keep")
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        role = ""
        for line in run.stdout:
            if found := re.search(r"(http://\S+)/login#(\S+)", line):
                role = role_of(*found.groups())
            if "is frozen until" in line:
                break
        working = processes_naming(f"{tmp_path}/coord-demo-")
        run.send_signal(signal.SIGINT)
        rest = run.stdout.read()
    assert run.returncode == 130, rest
    assert role == "admin", "a visitor may try everything"
    assert len(working) >= 4  # one may be killed just now, and another not begun yet
    assert "all workers are stopped" in rest
    assert "The repository is kept: " in rest
    assert processes_naming(f"{tmp_path}/coord-demo-") == []


def test_a_killed_conductor_leaves_no_worker_behind(tmp_path: Path) -> None:
    """Even kill -9 of the demo itself ends every worker, the frozen ones too."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = demo_command()
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as in a terminal; the first process of a container could be of this session
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if "is frozen until" in line:
                break
        run.kill()
    deadline = time.monotonic() + 30
    while (left := processes_naming(f"{tmp_path}/coord-demo-")) and time.monotonic() < deadline:
        continue  # each look starts a process and takes its time: no need to sleep
    assert left == []


def test_the_help_has_an_example() -> None:
    """`--help` shows every option and a command to copy."""
    shown = subprocess.run(
        demo_command("--help"), cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for option in ("--keep", "example:"):
        assert option in shown


def test_every_accident_is_promised_to_a_task_of_the_plan() -> None:
    """Issue 4, must show: each accident awaits a task that is there; six agents, three kinds."""
    plan = read_plan(str(PLAN_FILE))
    assert check_plan(plan).problems == []
    by_id = {task.task_id: task for task in plan.tasks}
    assert FATES.keys() <= by_id.keys()
    fates = list(FATES.values())
    assert sum(fate.freezes for fate in fates) == 4
    assert sum(fate.kills for fate in fates) == 4
    assert {task.track for task in plan.tasks} == {"A", "B", "C", "D"}
    assert (len(AGENTS), len(set(AGENTS.values()))) == (6, 3)
    for task in plan.tasks:
        kinds = [kind for kind, types in KINDS.items() if task.type in types]
        assert len(kinds) >= 2, f"{task.task_id} needs a kind that may be frozen"
    assert "B-001-schema" in by_id["C-002-payment"].depends_on, "or too many would be frozen at once"
    assert "A-003-sessions" in by_id["D-003-basket"].depends_on, "or too many would be frozen at once"
    (one, other) = (by_id[task] for task, fate in FATES.items() if fate is Fate.MEETS)
    assert (one.files, other.files) == ((other.requirements["also"],), (one.requirements["also"],))


# The proof.


def event(offset: int, name: str, task: str, generation: int, session: str) -> Event:
    return Event(offset, offset, f"task.{name}", {"task": task, "generation": generation, "session": session})


def honest_log() -> list[Event]:
    """One task done at once, one that changed hands and whose first worker came back."""
    return [
        event(1, "claimed", TASK, 1, "ada-1"),
        event(2, "claimed", OTHER, 1, "bela-1"),
        event(3, "completed", TASK, 1, "ada-1"),
        event(4, "expired", OTHER, 1, "bela-1"),
        event(4, "claimed", OTHER, 2, "cleo-1"),
        event(5, "completed", OTHER, 2, "cleo-1"),
        event(6, "result_rejected", OTHER, 1, "bela-1"),
        event(7, "claimed", LATER, 1, "cleo-1"),
        event(8, "completed", LATER, 1, "cleo-1"),
    ]


def faults_of(events: list[Event], offsets: list[int] | None = None) -> str:
    known = sorted({each.offset for each in events}) if offsets is None else offsets
    return "\n".join(find_faults(PIECES, known, events))


def test_an_honest_log_has_no_faults() -> None:
    """The proof accepts what coord really writes."""
    assert faults_of(honest_log()) == ""


FORGERIES: dict[str, tuple[Callable[[list[Event]], list[Event]], str]] = {
    "two completions": (
        lambda log: [*log, event(9, "completed", OTHER, 2, "cleo-1")],
        "2 accepted results, not one",
    ),
    "no completion": (lambda log: [each for each in log if each.offset != 3], "0 accepted results"),
    "stale completion": (
        lambda log: [*log[:5], event(5, "completed", OTHER, 1, "bela-1"), *log[6:]],
        "has generation 1, but 2 was the newest",
    ),
    "a stranger's completion": (
        lambda log: [*log[:5], event(5, "completed", OTHER, 2, "dov-1"), *log[6:]],
        "accepted from dov-1, but cleo-1 held generation 2",
    ),
    "a generation twice": (
        lambda log: [*log[:4], event(4, "claimed", OTHER, 1, "cleo-1"), *log[5:]],
        "claim 2 has generation 1",
    ),
    "a claim after the result": (
        lambda log: [*log, event(9, "claimed", TASK, 2, "dov-1")],
        "claimed at offset 9 although it was done",
    ),
    "a task before its time": (
        lambda log: [event(1, "claimed", LATER, 1, "dov-1"), *log],
        f"{LATER}: claimed at offset 1 before {TASK} was done",
    ),
    "an unknown task": (
        lambda log: [*log, event(9, "completed", "Z-001-other", 1, "dov-1")],
        "Z-001-other: completed, but nobody asked for it",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_log_is_found_out(forgery: str) -> None:
    """The proof bites: each way to break "one accepted result per task" is named."""
    forge, fault = FORGERIES[forgery]
    assert fault in faults_of(forge(honest_log()))


def test_a_gap_in_the_log_is_found_out() -> None:
    """The proof notices an offset that is missing."""
    assert "gap" in faults_of(honest_log(), offsets=[1, 2, 3, 5, 6, 7, 8])


def reply(task: str, generation: int, session: str, accepted: bool) -> Reply:
    return Reply(session, task, generation, accepted, "ACCEPTED" if accepted else "STALE_GENERATION")


HONEST_REPLIES = [
    reply(TASK, 1, "ada-1", True),
    reply(OTHER, 2, "cleo-1", True),
    reply(OTHER, 1, "bela-1", False),
    reply(LATER, 1, "cleo-1", True),
]


@pytest.mark.parametrize(
    ("replies", "killed", "fault"),
    [
        (HONEST_REPLIES, {}, ""),
        (HONEST_REPLIES[1:], {"ada-1": TASK}, ""),
        (HONEST_REPLIES[1:], {}, "ada-1 never heard"),
        ([*HONEST_REPLIES, reply(OTHER, 1, "bela-1", True)], {}, "bela-1 was told"),
        ([*HONEST_REPLIES, reply(TASK, 1, "ada-1", False)], {}, "the log has it accepted"),
        ([*HONEST_REPLIES, reply(TASK, 1, "dov-1", False)], {}, "the log has no trace"),
        (
            [*HONEST_REPLIES[:3], HONEST_REPLIES[3]._replace(was_frozen=True)],
            {},
            "cleo-1 slept through its lease",
        ),
    ],
)
def test_replies_must_agree_with_the_log(replies: list[Reply], killed: dict[str, str], fault: str) -> None:
    """A worker must have been told what the log says, unless it was killed before it could hear."""
    found = "\n".join(find_contradictions(honest_log(), Outcome(replies, killed, {}, [])))
    assert (fault in found) if fault else (found == "")


def lock(offset: int, name: str, session: str, **fields) -> Event:
    return Event(offset, offset, f"lock.{name}", {"resource": HOT_FILE, "session": session, **fields})


HONEST_LOCKS = [
    lock(1, "acquired", "ada-1"),
    lock(2, "released", "ada-1"),
    lock(2, "acquired", "bela-1", waited_ms=300),
    lock(3, "deadlock", "", victim="bela-1", resolved=True),
    lock(4, "released", "bela-1"),
]


@pytest.mark.parametrize(
    ("left_out", "fault"),
    [
        (None, ""),
        (1, "bela-1 got it while ada-1 held it"),
        (2, "nobody got"),
        (3, "no deadlock was broken"),
        (4, "is still held by bela-1"),
    ],
)
def test_two_holders_and_locks_left_are_found_out(left_out: int | None, fault: str) -> None:
    """The proof names a file that two held at once, a lock that is left, and what was not shown."""
    log = [each for number, each in enumerate(HONEST_LOCKS) if number != left_out]
    found = "\n".join(find_lock_faults(log))
    assert (fault in found) if fault else (found == "")


def test_a_loser_that_was_not_told_is_found_out() -> None:
    """The victim of a deadlock must have read the cycle."""
    assert find_contradictions(HONEST_LOCKS, Outcome([], {}, {}, [])) == [
        "bela-1 lost a deadlock and was not told"
    ]
    assert find_contradictions(HONEST_LOCKS, Outcome([], {}, {"bela-1": "a → b → a"}, [])) == []


def test_a_lost_line_is_found_out(tmp_path: Path) -> None:
    """What an accepted claim wrote must be in the file, whoever wrote there after it."""
    (tmp_path / "lamp.py").write_text(f"{TASK} 1 ada-1\nanother\n")
    assert find_lost_lines(tmp_path, PIECES, honest_log()) == []
    (tmp_path / "lamp.py").write_text("another\n")
    assert find_lost_lines(tmp_path, PIECES, honest_log()) == [
        f"file:lamp.py has lost what {TASK} 1 ada-1 wrote"
    ]


def test_a_broken_promise_fails_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict is FAILED, and the exit code 1, where the log does not prove what was promised."""
    url = f"sqlite://{tmp_path}/store.db"
    with closing(coord.open_store(url)):
        pass
    assert print_proof(url, tmp_path, Outcome([], {}, {}, []), Stage({}, PIECES), Landing()) == 1
    told = capsys.readouterr().out
    assert f"✗ {TASK}: 0 accepted results, not one" in told
    assert "✗ no overwrite was caught" in told
    assert "✗ there was no merge that landed, or none that was refused" in told
    assert re.search(r"FAILED: \d+ contradictions", told)


def test_the_live_table_shows_workers_tasks_and_counters() -> None:
    """On a terminal every worker, every task and the counters are drawn, within an ordinary window."""
    names = [f"{track}-{number:03d}-x" for track in "ABCD" for number in range(1, 6)]
    pieces = {name: Piece(name) for name in (TASK, OTHER, *names[2:])}
    stage = Stage({"ada": Part("ada", "coder", "ada-1", "frozen", TASK, 1)}, pieces)
    for each in honest_log():
        stage.follow(each)
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    console.print(drawn(stage, ["the last thing that happened"], 80, 24))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "ada-1     coder       frozen" in shown
    assert "✔ A-002 g2 cleo-1" in shown
    assert re.search(r"2 of 20 done  3 claims .* 0\.0 s\n", shown), "all on one line"
    assert "the last thing that happened" in shown
    assert max(map(len, shown.splitlines())) <= 80
