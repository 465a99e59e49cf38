"""The demo as somebody runs it, and its proof against logs that were tampered with."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from demo.conductor import Outcome, Reply
from demo.log import Event
from demo.plan import TASKS_LEAST, Fate, accidents, task_ids
from demo.proof import find_contradictions, find_faults
from demo.screen import drawn
from demo.stage import Part, Piece, Stage

ROOT = Path(__file__).resolve().parents[2]
TASK, OTHER = task_ids(2)


def demo_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "demo", *arguments]


def processes_naming(text: str) -> list[str]:
    listing = subprocess.run(["ps", "-eww", "-o", "args"], check=True, capture_output=True, text=True).stdout
    return [line for line in listing.splitlines() if text in line]


def test_a_small_run_proves_itself_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The demo shows kills and refused zombies, proves one result per task, ends with 0 and cleans up."""
    run = subprocess.run(
        demo_command("--seed", "3", "--workers", "4", "--tasks", "16"),
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "16 tasks, 16 task.completed events, one for each" in run.stdout
    proven = re.search(
        r"PROVEN: 16 tasks, \d+ claims, (\d+) workers killed, (\d+) zombies refused", run.stdout
    )
    assert proven is not None, run.stdout
    assert int(proven[1]) >= 3
    assert int(proven[2]) >= 3
    assert "(killed -9)" in run.stdout
    assert "came back, and was refused: STALE_GENERATION" in run.stdout
    assert list(tmp_path.iterdir()) == []
    assert processes_naming(str(tmp_path)) == []


def test_an_interrupted_run_stops_its_workers(tmp_path: Path) -> None:
    """Ctrl-C ends the demo with 130, without a worker left running or stopped."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = demo_command("--seed", "3", "--keep")
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if "is frozen until" in line:
                break
        working = processes_naming(f"{tmp_path}/coord-demo-")
        run.send_signal(signal.SIGINT)
        rest = run.stdout.read()
    assert run.returncode == 130, rest
    assert len(working) >= 7
    assert "all workers are stopped" in rest
    assert "The store is kept: sqlite://" in rest
    assert processes_naming(f"{tmp_path}/coord-demo-") == []


def test_a_killed_conductor_leaves_no_worker_behind(tmp_path: Path) -> None:
    """Even kill -9 of the demo itself ends every worker, the frozen ones too."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = demo_command("--seed", "3")
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as run:
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
    for option in ("--seed", "--workers", "--tasks", "--keep", "example:"):
        assert option in shown


@pytest.mark.parametrize("tasks", [TASKS_LEAST, 40, 200])
def test_every_plan_has_enough_accidents(tasks: int) -> None:
    """Whatever the seed, at least three workers are killed and three frozen, at marks that are reached."""
    for seed in range(50):
        plan = accidents(seed, tasks)
        fates = list(plan.values())
        assert sum(fate.freezes for fate in fates) >= 3
        assert fates.count(Fate.KILLED_WORKING) >= 3
        assert max(plan) < tasks
    assert accidents(1, tasks) == accidents(1, tasks) != accidents(2, tasks)


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
    ]


def faults_of(events: list[Event], offsets: list[int] | None = None) -> str:
    known = sorted({each.offset for each in events}) if offsets is None else offsets
    return "\n".join(find_faults([TASK, OTHER], known, events))


def test_an_honest_log_has_no_faults() -> None:
    """The proof accepts what coord really writes."""
    assert faults_of(honest_log()) == ""


FORGERIES: dict[str, tuple[Callable[[list[Event]], list[Event]], str]] = {
    "two completions": (
        lambda log: [*log, event(7, "completed", OTHER, 2, "cleo-1")],
        "2 accepted results, not one",
    ),
    "no completion": (lambda log: [each for each in log if each.offset != 3], "0 accepted results"),
    "stale completion": (
        lambda log: [*log[:5], event(5, "completed", OTHER, 1, "bela-1"), log[6]],
        "has generation 1, but 2 was the newest",
    ),
    "a stranger's completion": (
        lambda log: [*log[:5], event(5, "completed", OTHER, 2, "dov-1"), log[6]],
        "accepted from dov-1, but cleo-1 held generation 2",
    ),
    "a generation twice": (
        lambda log: [*log[:4], event(4, "claimed", OTHER, 1, "cleo-1"), *log[5:]],
        "claim 2 has generation 1",
    ),
    "a claim after the result": (
        lambda log: [*log, event(7, "claimed", TASK, 2, "dov-1")],
        "claimed at offset 7 although it was done",
    ),
    "an unknown task": (
        lambda log: [*log, event(7, "completed", "Z-001-other", 1, "dov-1")],
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
    assert "gap" in faults_of(honest_log(), offsets=[1, 2, 3, 5, 6])


def reply(task: str, generation: int, session: str, accepted: bool) -> Reply:
    return Reply(session, task, generation, accepted, "ACCEPTED" if accepted else "STALE_GENERATION")


HONEST_REPLIES = [
    reply(TASK, 1, "ada-1", True),
    reply(OTHER, 2, "cleo-1", True),
    reply(OTHER, 1, "bela-1", False),
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
    ],
)
def test_replies_must_agree_with_the_log(replies: list[Reply], killed: dict[str, str], fault: str) -> None:
    """A worker must have been told what the log says, unless it was killed before it could hear."""
    found = "\n".join(find_contradictions(honest_log(), Outcome(replies, killed, [])))
    assert (fault in found) if fault else (found == "")


def test_the_live_table_shows_workers_tasks_and_counters() -> None:
    """On a terminal every worker, every task and the counters are drawn, within an ordinary window."""
    stage = Stage({"ada": Part("ada", "ada-1", "frozen", TASK, 1)}, {t: Piece(t) for t in task_ids(40)})
    for each in honest_log():
        stage.follow(each)
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    console.print(drawn(stage, ["the last thing that happened"], 80, 24))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "ada-1     frozen" in shown
    assert "✔ A-002 g2 cleo-1" in shown
    assert "2 of 40 done  3 claims" in shown
    assert "the last thing that happened" in shown
    assert max(map(len, shown.splitlines())) <= 80
