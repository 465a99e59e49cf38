"""The first sixteen scenarios through the command line: each is a script of calls with what they answer.

A line is `who: words -> code [error code or what the answer holds]`. `lapse TASK` waits until the lease of a
task has run out. The library tells the same stories on every store, with a clock set by hand.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from coord.transports.cli.main import main

DEADLINE_S = 30
SHORT = "--lease 0.2"
"""No story asks for anything between such a claim and its end that the end would change."""

STORIES = {
    "SCN-1 the happy path": """
        a: task claim t -> 0 claim.generation=1
        a: task renew t 1 -> 0
        a: task submit t 1 -> 0 accepted=True
        a: task show t -> 0 task.state=done
        a: task history t -> 0 history.0.release_reason=COMPLETED
        a: task history t -> 0 history.#=1
    """,
    "SCN-2 a lease runs out": f"""
        a: task claim t {SHORT} -> 0
        lapse t
        b: task claim t -> 0 claim.generation=2
        b: task submit t 2 -> 0
        a: task submit t 1 -> 1 STALE_GENERATION
        a: task submit t 1 -> 1 work_lost=True
        a: task history t -> 0 history.0.release_reason=EXPIRED
        a: task history t -> 0 history.0.rejected.#=1
        a: task history t -> 0 history.1.result_accepted=True
    """,
    "SCN-3 rapid failover": f"""
        a: task claim t {SHORT} -> 0
        lapse t
        b: task claim t {SHORT} -> 0
        lapse t
        c: task claim t -> 0 claim.generation=3
        c: task submit t 3 -> 0
        a: task submit t 1 -> 1 STALE_GENERATION
        b: task submit t 2 -> 1 STALE_GENERATION
        a: task lineage t -> 0 generations.#=3
        a: task lineage t -> 0 rejected.#=2
    """,
    "SCN-4 subtasks": f"""
        a: task claim t::1 -> 0
        a: task claim t::2 -> 0
        a: task claim t::3 {SHORT} -> 0
        a: task submit t::1 1 -> 0
        a: task submit t::2 1 -> 0
        lapse t::3
        b: task claim t::3 -> 0 claim.generation=2
        a: task claim t::3 -> 1 DENIED_ACTIVE_CLAIM
        b: task submit t::3 2 -> 0
        a: task submit t::3 1 -> 1 STALE_GENERATION
        a: task claim t -> 0
        a: task submit t 1 -> 0
    """,
    "SCN-5 lineage": f"""
        a: task claim task-456 {SHORT} -> 0
        lapse task-456
        b: task claim task-456 {SHORT} -> 0
        lapse task-456
        c: task claim task-456 -> 0
        c: task submit task-456 3 -> 0
        b: task submit task-456 2 -> 1 STALE_GENERATION
        a: task submit task-456 1 -> 1 STALE_GENERATION
        a: task lineage task-456 -> 0 generations.0.outcome=EXPIRED
        a: task lineage task-456 -> 0 generations.1.outcome=EXPIRED
        a: task lineage task-456 -> 0 generations.2.outcome=ACCEPTED
        a: task lineage task-456 -> 0 rejected.1.reason=STALE_GENERATION
    """,
    "SCN-6 session memory": """
        b: task claim B-002-entity-models -> 0
        b: task submit B-002-entity-models 1 -> 0
        b: task claim B-003-repositories -> 0
        b: session show -> 0 task_log.#=3
        b: session show -> 0 task_log.1.outcome=ACCEPTED
        b: session show -> 0 active_claims.0.task_id=B-003-repositories
        b: session show -> 0 completed_tasks.0=B-002-entity-models
        b: session show -> 0 track_assignments.0=B
        a: session show s-b -> 0 resume.claims.0.generation=1
        a: session show nobody -> 4 not_found
    """,
    "SCN-7 dependencies across tracks": """
        a: task add A-001-core -> 0
        a: task add B-001-schema -> 0
        a: task add B-002-models --depends-on A-001-core,B-001-schema -> 0
        b: task claim B-002-models -> 1 DENIED_NOT_READY
        b: task claim B-001-schema -> 0
        b: task submit B-001-schema 1 -> 0
        b: task claim B-002-models -> 1 DENIED_NOT_READY
        a: task claim A-001-core -> 0
        a: task submit A-001-core 1 -> 0
        b: task next -> 0 task.task_id=B-002-models
    """,
    "SCN-8 tenants and projects": """
        a: task claim task-101 -> 0 claim.generation=1
        a: --tenant other task claim task-101 -> 0 claim.generation=1
        a: --project y task claim task-101 -> 0 claim.generation=1
        a: task release task-101 1 -> 0
        a: task claim task-101 -> 0 claim.generation=2
        a: --tenant other task show task-101 -> 0 claim.generation=1
    """,
    "SCN-9 a result twice": """
        a: task claim t -> 0
        a: task submit t 1 -> 0
        a: task submit t 1 -> 1 TASK_ALREADY_COMPLETED
        a: task reset t -> 0 state=ready
        b: task claim t -> 0 claim.generation=2
    """,
    "SCN-10 another session": """
        a: task claim t -> 0
        b: task submit t 1 -> 1 SESSION_MISMATCH
    """,
    "SCN-11 a generation to come": """
        a: task claim t -> 0
        a: task submit t 2 -> 1 FUTURE_GENERATION
    """,
    "SCN-12 no claim": """
        a: task add t -> 0
        a: task submit t 1 -> 1 NO_CLAIM
    """,
    "SCN-13 renewals": f"""
        a: task renew t 1 -> 1 NO_CLAIM
        a: task claim t {SHORT} -> 0
        a: task renew t 2 -> 1 GENERATION_MISMATCH
        b: task renew t 1 -> 1 SESSION_MISMATCH
        lapse t
        a: task renew t 1 -> 1 ALREADY_EXPIRED
    """,
    "SCN-14 what is done is not claimed": """
        a: task claim t -> 0
        a: task submit t 1 -> 0
        b: task claim t -> 1 DENIED_COMPLETED
    """,
    "SCN-15 many leases run out at once": f"""
        a: task claim t1 {SHORT} -> 0
        a: task claim t2 {SHORT} -> 0
        a: task claim t3 {SHORT} -> 0
        lapse t3
        b: sweep -> 0 ok=True
        b: task claim t1 -> 0 claim.generation=2
        b: task claim t2 -> 0 claim.generation=2
        b: task claim t3 -> 0 claim.generation=2
        a: session show -> 0 lost_claims.#=3
        a: session show -> 0 resume.lost.0.holder=s-b
    """,
    "SCN-16 every command is a restart": """
        a: task claim t -> 0 claim.generation=1
        a: task release t 1 -> 0
        b: task claim t -> 0 claim.generation=2
        a: task submit t 1 -> 1 STALE_GENERATION
        b: session show -> 0 active_claims.0.generation=2
    """,
}


@pytest.fixture
def calm(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's settings reach into the repository of a story."""
    for name in ("COORD_SESSION_ID", "CLAUDECODE", "COORD_URL", "COORD_TENANT", "COORD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(repository)


class Teller:
    """Calls `coord` in this process and holds it to what the story says."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def call(self, who: str, words: list[str]) -> tuple[int, dict[str, Any]]:
        code = main(["--session", f"s-{who}", "--agent", who, *words])
        return code, json.loads(self._capture.readouterr().out)

    def line(self, text: str) -> None:
        if text.startswith("lapse "):
            self.wait_until_lapsed(text.removeprefix("lapse "))
            return
        call, _, expected = text.partition(" -> ")
        who, _, words = call.partition(": ")
        code, answer = self.call(who, words.split())
        wanted_code, _, wanted = expected.partition(" ")
        assert code == int(wanted_code), f"{text}: {answer}"
        if wanted and "=" in wanted:
            path, _, value = wanted.partition("=")
            assert str(_at(answer, path)) == value, f"{text}: {answer}"
        elif wanted:
            assert answer["error"]["code"] == wanted.lower(), f"{text}: {answer}"
            assert answer["error"]["hint"], text

    def wait_until_lapsed(self, task_id: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.call("onlooker", ["task", "show", task_id])[1]["claim"]["state"] == "ACTIVE":
            assert time.monotonic() < deadline, f"the lease of {task_id} does not run out"


def _at(answer: Any, path: str) -> Any:
    """Return what stands at a place in an answer; `#` counts."""
    for step in path.split("."):
        answer = len(answer) if step == "#" else answer[int(step)] if step.isdigit() else answer[step]
    return answer


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.usefixtures("calm")
def test_scenario_through_the_command(story: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The answers, exit codes and error codes of `coord` tell the same story."""
    teller = Teller(capfd)
    for line in STORIES[story].strip().splitlines():
        teller.line(line.strip())
