"""`coord work`: what a command gets, what its end means, and that nothing of it is left behind."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coord import connect
from coord.core.sessions.liveness import HUNG_MS
from coord.host.progress import VARIABLE
from coord.transports.cli.main import main
from coord.transports.cli.parser import parse
from coord.transports.cli.work import run as run_module
from tests.support.cli import PROGRAM, Coord, started
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.server import poll_until, runs
from tests.support.terminals import Terminal

WAIT_S = 30
WorkerReport = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def task(coord: Coord) -> str:
    """A task with a file, ready to be taken."""
    assert coord("boss task add A-001-x --files a.py --description", "make it").code == 0
    return "A-001-x"


STUBBORN_AND_SILENT = "trap '' TERM; while :; do sleep 0.05; done"


def lines_of(process: "subprocess.Popen[str]") -> tuple[int, list[dict[str, Any]], str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err


@pytest.fixture
def worked(repository: Path, capfd: pytest.CaptureFixture[str]) -> WorkerReport:
    """Return a function that has a command run for one task in this process: `worked("--", "true")`."""

    def run(*words: str) -> tuple[int, dict[str, Any]]:
        code = main(["--session", "s-ann", "--agent", "ann", "work", "--once", *words])
        return code, json.loads(capfd.readouterr().out.splitlines()[-1])

    return run


def free(coord: Coord) -> bool:
    """Whether nobody is here any more and nothing is locked."""
    return not coord("boss locks").answer["locks"] and not coord("boss peers --live").answer["peers"]


def state_of(coord: Coord, task: str) -> dict[str, Any]:
    shown: dict[str, Any] = coord("boss task show", task).answer
    return shown


def test_the_result_file_becomes_the_result(worked: WorkerReport, coord: Coord, task: str) -> None:
    """Environment and a file tell the task; JSON that is left is handed in; all is free.

    SDK-2, CLM-76, SUP-15, SES-41, INT-17.
    """
    script = 'echo "{\\"of\\": \\"$COORD_TASK_ID $COORD_TASK_GENERATION $1\\"}" > $COORD_RESULT_FILE'
    look = "grep -q 'make it' $COORD_TASK_FILE"
    code, answer = worked("--", "sh", "-c", f"{look} && {script}", "sh", "{generation}")
    assert (code, answer["tasks"]) == (0, {"submitted": 1})
    result = state_of(coord, task)["result"]
    assert (result["result_data"], result["generation"]) == ({"of": f"{task} 1 1"}, 1)
    assert result["session_id"] == "s-ann"
    assert free(coord)


def test_lines_tell_each_step_and_the_output_goes_to_stderr(coord: Coord, task: str) -> None:
    """In a pipe: one JSON object per line, and what the command writes is not among them."""
    code, lines, err = lines_of(started("ann", "work", "--", "sh", "-c", "echo made; echo warned >&2"))
    assert (code, [line.get("event", "answer") for line in lines]) == (0, ["claimed", "submitted", "answer"])
    assert lines[-1]["ended_by"] == "done"
    assert {"made", "warned", f"Claimed {task}, generation 1: make it"} <= set(err.splitlines())
    assert state_of(coord, task)["result"]["result_data"] == {"output": "made"}


@pytest.mark.parametrize(
    ("script", "code", "state", "note"),
    [
        ("echo no >&2; exit 3", 1, "pending", "exit 3: no"),
        ("exit 65", 1, "failed", "exit 65"),
        ("echo slow down >&2; exit 75", 75, "ready", "exit 75: slow down"),
        ("echo '{\"rate_limited\": 5}' > $COORD_RESULT_FILE", 75, "ready", "rate limited"),
        ("kill -SEGV $$", 1, "pending", "exit 139"),
        ("echo '[1]' > $COORD_RESULT_FILE", 1, "pending", "the result file is not a JSON object"),
        ("mkfifo $COORD_RESULT_FILE", 1, "pending", "the result file is not a regular file"),
        ("ln -s /dev/zero $COORD_RESULT_FILE", 1, "pending", "the result file cannot be read"),
        ("true", 1, "pending", "exit 0, but no result was written"),
    ],
)
def test_the_end_of_a_command_says_how_it_goes_on(
    script: str, code: int, state: str, note: str, worked: WorkerReport, coord: Coord, task: str
) -> None:
    """A failure is tried again, 65 never, and a rate limit is neither success nor failure.

    RTE-20, REC-32, SUP-5.
    """
    assert worked("--need-result", "--", "sh", "-c", script)[0] == code
    shown = state_of(coord, task)["task"]
    assert (shown["state"], shown["note"][: len(note)]) == (state, note)
    assert shown["retries"] == (1 if state == "pending" else 0)
    assert free(coord)


def test_hostile_words_of_a_task_reach_the_command_as_they_are(
    worked: WorkerReport, coord: Coord, repository: Path
) -> None:
    """SEC: no shell, no second look: what stands in a description is an argument and nothing else."""
    evil = "$(touch pwned) `touch pwned` '; touch pwned # {task_file} {task_id} %s"
    coord("boss task add --description", evil, "t~1:#,=+@x")
    script = (
        "import os, sys, json; json.dump({'got': sys.argv[1:]}, open(os.environ['COORD_RESULT_FILE'], 'w'))"
    )
    given = ["{description}", "{task_id}{no}", '{"json": 1}']
    assert worked("--", "python3", "-c", script, *given)[0] == 0
    got = state_of(coord, "t~1:#,=+@x")["result"]["result_data"]["got"]
    assert got == [evil, "t~1:#,=+@x{no}", '{"json": 1}']
    assert not (repository / "pwned").exists()


@pytest.mark.parametrize(
    ("command", "code", "error"),
    [("no-such-program", 127, "not_started"), ("./plain", 126, "not_started"), ("{task_id}", 2, "invalid")],
)
def test_a_command_that_cannot_run_costs_no_task(
    command: str, code: int, error: str, worked: WorkerReport, coord: Coord, task: str, repository: Path
) -> None:
    """SDK-4: the task is given back uncounted; and no task says which program is run."""
    (repository / "plain").write_text("no program")
    got, answer = worked("--", command)
    assert (got, answer["error"]["code"]) == (code, error)
    shown = state_of(coord, task)["task"]
    assert (shown["state"], shown["retries"]) == ("ready", 0)
    assert free(coord)


def test_a_command_that_takes_too_long_is_ended(worked: WorkerReport, coord: Coord, task: str) -> None:
    """SCH-7, SCN-60: `--timeout`: a command that hangs does not keep its claim for ever."""
    assert worked("--timeout", "0.1s", "--", "sleep", "1000")[0] == 1
    assert state_of(coord, task)["task"]["note"].startswith("the command took longer than")


def test_a_command_without_progress_fails_its_task(worked: WorkerReport, coord: Coord, task: str) -> None:
    """SUP-13: nothing is heard of it for the time limit, so it is ended, and it counts as a failure."""
    assert worked("--time-limit", "0.2s", "--grace", "0.1s", "--", "bash", "-c", STUBBORN_AND_SILENT)[0] == 1
    shown = state_of(coord, task)["task"]
    assert (shown["state"], shown["note"], shown["retries"]) == ("pending", "no progress for 0.2 s", 1)
    assert free(coord)


def test_the_time_limit_is_ten_minutes_unless_somebody_sets_another() -> None:
    """REC-29: a command that hangs does not keep its task for ever."""
    assert parse(["work", "--", "true"]).values["time_limit_s"] == 600


@pytest.mark.parametrize("sign", ["echo .", "touch $COORD_PROGRESS_FILE"])
def test_progress_restarts_the_time_limit(sign: str, worked: WorkerReport, coord: Coord, task: str) -> None:
    """A command may take longer than the limit while there is a sign of progress within each."""
    script = f"for i in 1 2 3 4 5 6 7 8 9; do {sign}; sleep 0.25; done"
    assert worked("--time-limit", "2s", "--", "sh", "-c", script)[0] == 0
    assert state_of(coord, task)["task"]["state"] == "done"


@pytest.mark.parametrize(
    ("call", "counts"),
    [
        ("ann heartbeat", True),
        ("ann update --phase testing", True),
        ("ann task renew A-001-x 1", True),
        ("ann locks", False),
    ],
)
def test_the_commands_that_report_progress(
    call: str, counts: bool, coord: Coord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question is no progress: an agent that hangs may ask for ever."""
    coord("ann task add A-001-x")
    coord("ann task claim A-001-x")
    progress = tmp_path / "progress"
    progress.touch()
    os.utime(progress, (1, 1))
    monkeypatch.setenv(VARIABLE, str(progress))
    assert coord(call).code == 0
    assert (progress.stat().st_mtime != 1) is counts


def test_a_command_that_is_silent_for_too_long_fails_its_task(
    worked: WorkerReport, coord: Coord, task: str
) -> None:
    """The silence limit counts output only; it is off unless somebody sets it."""
    script = "while :; do touch $COORD_PROGRESS_FILE; sleep 0.02; done"
    assert worked("--silence-limit", "0.3s", "--", "bash", "-c", script)[0] == 1
    assert state_of(coord, task)["task"]["note"] == "no output for 0s"


@pytest.mark.parametrize(
    ("before", "code", "ended_by"),
    [("task skip", 0, "done"), ("task claim", 3, "blocked"), ("", 1, "deadlocked")],
)
def test_it_ends_with_what_the_queue_says(
    before: str, code: int, ended_by: str, coord: Coord, task: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Done, blocked and deadlocked are three things, and three exit codes."""
    if before:
        assert coord(f"boss {before}", task).code == 0
    got = main(["--session", "s-ann", "work", "--no-wait", "--", "sh", "-c", "exit 65"])
    out, _ = capfd.readouterr()
    assert (got, json.loads(out.splitlines()[-1])["ended_by"]) == (code, ended_by)


def begun(process: "subprocess.Popen[str]") -> int:
    """Wait until the command has said its pid; return it."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("pid "):
            return int(line.split()[1])
    raise AssertionError("the command never began")


def gone(*pids: int) -> None:
    poll_until(lambda: not any(map(runs, pids)), WAIT_S, "the command goes on")


STUBBORN = "trap '' TERM; echo pid $$; while :; do sleep 0.05; done"


def test_a_lost_claim_ends_the_command_however_stubborn(coord: Coord, task: str) -> None:
    """CLM-20, SCN-2: SIGTERM, then SIGKILL; nothing is handed in, and the old generation is refused."""
    words = ["work", "--once", "--lease", "1s", "--grace", "0.2s", "--", "bash", "-c", STUBBORN]
    process = started("ann", *words)
    pid = begun(process)
    assert coord("bob task claim --force --reason urgent", task).code == 0
    code, lines, _ = lines_of(process)
    assert (code, lines[-1]["tasks"]) == (1, {"lost": 1})
    gone(pid)
    late = coord(f"ann task submit {task} 1")
    assert (late.code, late.answer["reason"], late.answer["work_lost"]) == (1, "STALE_GENERATION", True)
    assert state_of(coord, task)["claim"]["agent_id"] == "bob"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_runner_that_is_stopped_leaves_nothing(signum: signal.Signals, coord: Coord, task: str) -> None:
    """Issue 4, part 9: the command and what left its group are gone, the task is free, no lock held."""
    escape = "setsid sleep 1000 & echo pid $! ; exec sleep 1000"
    process = started("ann", "work", "--", "bash", "-c", escape)
    escaped = begun(process)
    process.send_signal(signum)
    code, lines, _ = lines_of(process)
    assert (code, lines[-1]["ended_by"], lines[-1]["tasks"]) == (128 + signum, "stopped", {"given_back": 1})
    assert not runs(escaped)
    shown = state_of(coord, task)["task"]
    assert (shown["state"], shown["retries"]) == ("ready", 0)
    assert free(coord)


def test_what_a_command_leaves_in_the_background_ends_with_its_task(
    worked: WorkerReport, coord: Coord, task: str, tmp_path: Path
) -> None:
    """Issue 4, part 9: success, too, leaves nothing running."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    escape = f"setsid sh -c 'echo $$ > {outside}; exec sleep 1000' &"
    wait = f"until [ -s {outside} ]; do sleep 0.01; done"
    assert worked("--", "bash", "-c", f"sleep 1000 & echo $! > {inside}; {escape} {wait}")[0] == 0
    gone(int(inside.read_text()), int(outside.read_text()))
    assert state_of(coord, task)["task"]["state"] == "done"


def test_a_runner_killed_outright_takes_its_command_along(coord: Coord, task: str) -> None:
    """REC-28: the command ends without us, the worker is proven dead, bob has its task at once."""
    process = started("ann", "work", "--lease", "1h", "--", "bash", "-c", STUBBORN)
    pid = begun(process)
    process.kill()
    process.communicate(timeout=60)
    gone(pid)
    reply = coord("bob task next").answer
    assert (reply["task"]["task_id"], reply["claim"]["generation"]) == (task, 2)


def test_a_runner_that_hangs_is_ended_with_its_command(coord: Coord, task: str) -> None:
    """REC-30, SCN-60: one that is stopped sends no heartbeat; it is proven to be ours, so it is ended."""
    process = started("ann", "work", "--lease", "1h", "--grace", "0.2s", "--", "bash", "-c", STUBBORN)
    pid = begun(process)
    process.send_signal(signal.SIGSTOP)
    with connect(session="s-boss", clock=lambda: time.time_ns() // 1_000_000 + HUNG_MS) as later:
        assert later.end_hung(grace_s=WAIT_S) == ["s-ann"]
    assert process.wait(WAIT_S) == 128 + signal.SIGTERM
    process.communicate(timeout=60)
    gone(pid)
    assert state_of(coord, task)["task"]["state"] == "ready"


def test_a_runner_that_is_heard_of_is_left_alone(coord: Coord, task: str) -> None:
    """A sweep ends only what hangs."""
    process = started("ann", "work", "--grace", "0.2s", "--", "bash", "-c", STUBBORN)
    pid = begun(process)
    assert coord("boss sweep").answer["ended"] == []
    assert runs(pid)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


def test_two_runners_of_one_person_are_two_sessions(coord: Coord, task: str) -> None:
    """LCK: one session is one owner; so each runner is its own, below whoever started it."""
    environ = {**os.environ, "COORD_SESSION_ID": "s-ada"}
    words = [*PROGRAM, "work", "--once", "--", "sh", "-c", "echo pid $COORD_SESSION_ID"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60, check=True)
    (name,) = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("pid ")]
    assert name.startswith("work-")
    history = coord(f"boss task lineage {task}").answer["generations"]
    assert [each["session_id"] for each in history] == [name]


def test_a_person_sees_which_task_runs_for_how_long(repository: Path, coord: Coord, task: str) -> None:
    """On a terminal: one line that moves, sentences, and Ctrl-C ends it all."""
    terminal = Terminal(*PROGRAM[1:], "--session", "s-ann", "work", "--", "sleep", "1000")
    terminal.wait_for(f"{task} · 1s · renewed 0×")
    terminal.type("\x03")
    assert terminal.exit_code() == 130
    assert f"{task} is released: the worker was stopped" in terminal.shown
    assert "{" not in terminal.shown
    assert free(coord)


def test_an_outage_ends_the_command_before_its_lease(
    postgres_server: PostgresServer, coord: Coord, tmp_path: Path
) -> None:
    """SDK-4, REC-18: a real server goes away: the work stops in time, and goes on when it is back."""
    url = ["--url", postgres_server.fresh_store_url()]
    add = ["boss task add A-001-x", *url]
    assert coord(*add).code == 0
    # The first run of the command waits to be ended; the second one finds that it was here before.
    script = f"echo pid $$; mkdir {tmp_path}/was-here 2>/dev/null || exit 0; exec sleep 1000"
    words = ["work", "--lease", "2s", "--grace", "0.5s", *url, "--", "bash", "-c", script]
    process = started("ann", *words)
    pid = begun(process)
    postgres_server.stop()
    try:
        gone(pid)
    finally:
        postgres_server.restart()
    code, lines, _ = lines_of(process)
    events = [line["event"] for line in lines if line.get("event") != "waiting" and "event" in line]
    losses = max(1, events.count("lost"))  # a busy machine may be too late for two seconds once more
    assert (code, events) == (0, ["claimed", "lost"] * losses + ["claimed", "submitted"])
    generations = [line["generation"] for line in lines if line.get("event") == "claimed"]
    assert generations == list(range(1, losses + 2))


def test_a_worker_reads_who_it_is_and_who_works_beside_it(coord: Coord, worked: WorkerReport) -> None:
    """CTX-18: as a file, as an argument, and in the environment."""
    coord("boss task add A-001-x")
    coord("boss task add A-002-y")
    script = 'cmp "$COORD_CONTEXT_FILE" "$1" && printf %s "$2"'
    code, _ = worked("--", "sh", "-c", script, "sh", "{context_file}", "{context}")
    assert code == 0
    text = state_of(coord, "A-001-x")["result"]["result_data"]["output"]
    assert text.startswith("## SUBAGENT CONTEXT (You are a parallel worker)\n\n**SUBAGENT_ID:** s-ann\n")
    assert "**SIBLING_TASKS:** A-002-y\n" in text


def test_a_command_over_its_budget_ends_and_is_not_tried_again(
    worked: WorkerReport, coord: Coord, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what coord started: the agent in the command, here one that ignores signals."""
    monkeypatch.setattr(
        run_module, "budget_check", lambda _client: lambda name: f"{name} used $3.00 of $2.00"
    )
    assert worked("--grace", "0s", "--", "bash", "-c", STUBBORN_AND_SILENT)[0] == 1
    shown = state_of(coord, task)["task"]
    assert (shown["state"], shown["note"]) == ("failed", f"over budget: {task} used $3.00 of $2.00")
    assert free(coord)


def test_a_command_states_its_session_to_telemetry(worked: WorkerReport, coord: Coord, task: str) -> None:
    worked("--", "sh", "-c", "echo $OTEL_RESOURCE_ATTRIBUTES")
    assert state_of(coord, task)["result"]["result_data"] == {"output": "coord.session.id=s-ann"}
