"""Task and plan commands from end to end: what is answered, what is told, and the exit code."""

import json
import select
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coord.transports.cli.completion import candidates
from coord.transports.cli.main import main
from coord.transports.cli.parser import parse
from tests.support.cli import Coord, started
from tests.support.terminals import Terminal

PLAN = """\
project: shop
tracks:
  A:
    - {id: A-001-core, description: the core, files: [src/core.py]}
    - {id: A-002-more, depends_on: [A-001-core]}
  B:
    - {id: B-001-schema, depends_on: [A-001-core]}
"""


def taken(coord: Coord, who: str) -> tuple[str, int]:
    """Take the next task, which there must be."""
    code, answer, _ = coord(f"{who} task next")
    assert code == 0, answer
    return answer["task"]["task_id"], answer["claim"]["generation"]


def test_next_is_a_task_and_its_claim(coord: Coord) -> None:
    """Issue 4, part 1: `{"ok":true,"task":{"task_id",…},"claim":{"generation",…}}`, and its locks.

    CLM-2, CFL-14.
    """
    code, answer, line = coord(
        "ann task add A-001-login --files src/login.py,src/b.py --type code_gen --priority 5 --estimate 30m"
        " --needs internet --retries 1 --deadline 2h --description",
        "rework the login",
    )
    assert (code, answer["added"], line) == (0, ["A-001-login"], "A-001-login added: ready")
    assert answer["task"]["deadline_at"] > answer["task"]["created_at"]
    assert coord("ann task next").answer["error"]["code"] == "blocked", "it needs what ann does not have"
    code, answer, line = coord("ann task next --has internet --no-wait")
    assert code == 0
    assert list(answer)[:3] == ["ok", "task", "claim"]
    task = answer["task"]
    assert (task["task_id"], task["track"], task["state"]) == ("A-001-login", "A", "in_progress")
    assert (task["type"], task["priority"], task["estimate_s"]) == ("code_gen", 5, 1800)
    assert answer["claim"]["generation"] == 1
    assert answer["claim"]["session_id"] == "s-ann"
    assert [lock["resource"] for lock in answer["locks"]] == ["file:src/login.py", "file:src/b.py"]
    assert line == "Claimed A-001-login, generation 1"
    assert coord("bob lock src/login.py --no-wait").code == 1
    assert coord("ann task submit A-001-login 1").code == 0
    assert coord("bob lock src/login.py --no-wait").code == 0, "locks end with the claim"


def test_next_may_be_several(coord: Coord) -> None:
    """Issue 6: the first as ever, and `more` with the others; as many as there are."""
    for name in ("a", "b", "c"):
        assert coord(f"ann task add {name} --files src/{name}.py").code == 0
    code, answer, line = coord("ann task next --most 2")
    assert (code, line) == (0, "Claimed a, generation 1; Claimed b, generation 1")
    assert (answer["task"]["task_id"], answer["claim"]["generation"]) == ("a", 1)
    assert [each["task"]["task_id"] for each in answer["more"]] == ["b"]
    assert [lock["resource"] for lock in answer["more"][0]["locks"]] == ["file:src/b.py"]
    assert coord("bob task next --most 9").answer["more"] == []
    assert coord("bob task next --most 9").answer["error"]["code"] == "blocked"
    assert coord("bob task next --most 0").code == 2


def test_nothing_runnable_says_which_nothing(coord: Coord) -> None:
    """Issue 4: exit 1 with error.code done, blocked (by what) or deadlocked."""
    code, answer, _ = coord("ann task next")
    assert (code, answer["ok"], answer["error"]["code"]) == (1, False, "done")
    coord("ann task add a")
    coord("ann task add b --depends-on a")
    assert taken(coord, "ann") == ("a", 1)
    code, answer, line = coord("bob task next")
    assert (code, answer["error"]["code"]) == (1, "blocked")
    assert answer["waiting_for"] == ["a is in progress (ann)"]
    assert "a is in progress (ann)" in line
    assert coord("bob task next --wait 0.05").code == 3
    assert coord("ann task fail a 1 --final --note", "cannot be done").answer["state"] == "failed"
    code, answer, _ = coord("bob task next --wait 10m")
    assert (code, answer["error"]["code"], answer["waiting_for"]) == (1, "deadlocked", ["a failed"])
    assert answer["error"]["hint"]
    assert coord("bob task skip a").answer["task"]["state"] == "skipped"
    assert taken(coord, "bob") == ("b", 1)


def test_next_waits_until_a_task_is_ready(coord: Coord) -> None:
    """CLM-7, SCH-24, Issue 4: `--wait` waits, and is woken by the commit that makes a task ready."""
    coord("ann task add a")
    coord("ann task add b --depends-on a")
    assert taken(coord, "ann") == ("a", 1)
    process = started("bob", "task", "next", "--wait", "60s")
    peers: list[str] = []
    while "s-bob" not in peers:
        assert process.poll() is None, "it ended without waiting"
        peers = [peer["session_id"] for peer in coord("ann peers").answer["peers"]]
    coord("ann task submit a 1")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out)["task"]["task_id"] == "b"


def test_a_result_counts_under_the_current_generation(coord: Coord) -> None:
    """CLM: who lost a claim is turned away with the reason, and lineage tells both."""
    coord("ann task add a")
    assert taken(coord, "ann") == ("a", 1)
    assert coord("bob task claim a").answer["error"]["code"] == "denied_active_claim"
    assert coord("bob task claim a --force").code == 2
    forced = coord("bob task claim a --force --reason", "ann is away")
    assert (forced.code, forced.answer["claim"]["generation"]) == (0, 2)
    code, answer, _ = coord("ann task submit a 1 --result {}")
    assert (code, answer["error"]["code"], answer["work_lost"]) == (1, "stale_generation", True)
    assert coord("ann task renew a 1").answer["error"]["code"] == "generation_mismatch"
    assert coord("bob task renew a 2").answer["expires_at"].endswith("Z")
    code, answer, _ = coord("bob task submit a 2 --result", '{"n": 1}')
    assert (code, answer["accepted"]) == (0, True)
    assert answer["work_product_ref"].startswith("wp-a-gen2-")
    lineage = coord("ann task lineage a").answer
    assert [(each["generation"], each["outcome"]) for each in lineage["generations"]] == [
        (1, "SUPERSEDED"),
        (2, "ACCEPTED"),
    ]
    assert [(each["generation"], each["reason"]) for each in lineage["rejected"]] == [(1, "STALE_GENERATION")]
    assert [each["generation"] for each in coord("ann task history a").answer["history"]] == [1, 2]
    shown = coord("ann task show a").answer
    assert (shown["task"]["state"], shown["result"]["result_data"]) == ("done", {"n": 1})


def test_release_reset_retry(coord: Coord) -> None:
    """Issue 4: given back it is ready again; failed it pauses; reset it is open; errors have their codes."""
    coord("ann task add a")
    taken(coord, "ann")
    assert coord("ann task release a 1").answer["state"] == "ready"
    assert coord("ann task release a 1").answer["error"]["code"] == "no_claim"
    assert coord("ann task retry a").code == 1
    taken(coord, "ann")
    assert coord("ann task fail a 2").answer["state"] == "pending"
    assert coord("ann task show a").answer["task"]["retries"] == 1
    assert coord("ann task reset a --reason", "start over").answer["state"] == "ready"
    assert coord("ann task reset nothing").code == 4
    assert coord("ann task show nothing").code == 4
    assert coord("ann task submit a x").code == 2
    assert coord("ann task add a/b").code == 2
    assert coord("ann task add c --depends-on nothing").code == 4


def test_list_chooses(coord: Coord) -> None:
    """CLI: all tasks, or those of a state, track or type."""
    for call in ("A-001-x --type docs", "A-002-y --depends-on A-001-x", "zz"):
        coord(f"ann task add {call}")

    def ids(flags: str) -> list[str]:
        return [task["task_id"] for task in coord(f"ann task list {flags}").answer["tasks"]]

    assert ids("") == ["A-001-x", "A-002-y", "zz"]
    assert ids("--track A") == ["A-001-x", "A-002-y"]
    assert ids("--state ready") == ["A-001-x", "zz"]
    assert ids("--type docs") == ["A-001-x"]
    assert coord("ann task list --state odd").code == 2


def test_watch_follows_a_task_to_its_end(coord: Coord) -> None:
    """MSG-14, AUD-13: `task watch TASK` prints what happens to it, one line each, and ends with it."""
    coord("ann task add a")
    coord("ann task add b")
    process = started("eve", "task", "watch", "a")
    generation = 0
    events: list[dict[str, Any]] = []
    while not events:  # what happened before it looked is not told
        assert process.poll() is None, "it ended without watching"
        generation += 1
        for name in ("b", "a"):
            coord(f"ann task claim {name}")
            coord(f"ann task release {name} {generation}")
        events = line_within(process, 0.2)
    coord("ann task claim a")
    coord(f"ann task submit a {generation + 1}")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    lines = [*events, *(json.loads(line) for line in out.splitlines())]
    assert {line["task"] for line in lines} == {"a"}
    assert lines[-1]["event"] == "task.completed"
    assert coord("ann task watch a").answer["task"]["state"] == "done", "what is finished is shown at once"


def line_within(process: subprocess.Popen[str], seconds: float) -> list[dict[str, Any]]:
    """Return what a process wrote, if it did within a time."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], seconds)
    return [json.loads(process.stdout.readline())] if readable else []


@pytest.fixture
def plan(repository: Path) -> Path:
    path = repository / "plan.yaml"
    path.write_text(PLAN)
    return path


def test_a_plan_is_loaded_once_and_then_as_it_changes(coord: Coord, plan: Path) -> None:
    """Issue 4, part 2: again is harmless; a changed plan shows its difference and keeps running work.

    CLM-16.
    """
    code, answer, line = coord("ann plan load plan.yaml")
    assert (code, answer["added"]) == (0, ["A-001-core", "A-002-more", "B-001-schema"])
    assert line == "3 added, 0 changed, 0 unchanged"
    assert coord("ann plan load plan.yaml").answer["unchanged"] == 3
    assert taken(coord, "ann") == ("A-001-core", 1)
    coord("ann task add zz")
    text = PLAN.replace("description: the core", "description: the very core, priority: 3")
    plan.write_text(text + "    - {id: B-002-tables, retries_max: 1}\n")
    code, answer, line = coord("bob plan load plan.yaml")
    assert (code, answer["added"]) == (0, ["B-002-tables"])
    assert answer["changed"] == {"A-001-core": ["description", "priority"]}
    assert answer["not_in_plan"] == ["zz"]
    assert "A-001-core: description, priority" in line
    assert coord("ann task submit A-001-core 1").code == 0, "work that runs goes on"
    plan.write_text(plan.read_text().replace("retries_max: 1", "retries_max: 2"))
    assert coord("bob plan load plan.yaml").answer["changed"] == {"B-002-tables": ["retries_max"]}


def test_a_long_plan_tells_a_person_how_far_it_is(coord: Coord, plan: Path) -> None:
    """Issue 4: a plan is loaded in batches, with a progress line on a terminal and none elsewhere."""
    tasks = [{"id": f"t{number}", "depends_on": ["t0"] if number else []} for number in range(300)]
    plan.with_suffix(".json").write_text(json.dumps({"tasks": tasks}))
    terminal = Terminal("-m", "coord.transports.cli.main", "--session", "s-eve", "plan", "load", "plan.json")
    terminal.wait_for("300 added, 0 changed, 0 unchanged")
    assert terminal.exit_code() == 0
    assert "\r250 of 300 tasks\r300 of 300 tasks\r\n" in terminal.shown
    assert coord("ann plan load plan.json").line == "0 added, 0 changed, 300 unchanged"
    assert taken(coord, "ann") == ("t0", 1)
    coord("ann task submit t0 1")
    assert len(coord("ann task list --state ready").answer["tasks"]) == 299


def test_files_of_a_plan_are_named_from_the_top(coord: Coord, plan: Path, monkeypatch) -> None:
    """A plan means the same files wherever in the repository it is loaded."""
    (plan.parent / "deep").mkdir()
    monkeypatch.chdir(plan.parent / "deep")
    coord("ann plan load ../plan.yaml")
    assert coord("ann task show A-001-core").answer["task"]["files"] == ["file:src/core.py"]
    coord("ann task add here --files x.py")
    assert coord("ann task show here").answer["task"]["files"] == ["file:deep/x.py"]


def test_a_plan_with_problems_is_not_loaded(coord: Coord, plan: Path) -> None:
    """Issue 4: `plan check` names circles by their path and unknown ids; nothing of such a plan is added."""
    plan.write_text(PLAN.replace("the core,", "the core, depends_on: [B-001-schema, nowhere],"))
    for verb in ("check", "load"):
        code, answer, _ = coord(f"ann plan {verb} plan.yaml")
        assert (code, answer["error"]["code"]) == (2, "invalid")
        assert answer["problems"] == [
            "A-001-core: depends on nowhere, which does not exist",
            "dependency cycle: A-001-core -> B-001-schema -> A-001-core",
        ]
    assert coord("ann task list").answer["tasks"] == []
    assert coord("ann plan check nothing.yaml").code == 2


def test_check_warns_of_shared_files(coord: Coord, plan: Path) -> None:
    """Issue 4: files that two parallel tasks declare are told, and do no harm."""
    plan.write_text(PLAN + "    - {id: B-002-too, files: [src/core.py]}\n")
    code, answer, line = coord("ann plan check plan.yaml")
    assert code == 0
    assert answer["warnings"] == ["A-001-core and B-002-too may run at once, and both declare src/core.py"]
    assert line == "4 tasks on 2 tracks, 1 warning"
    assert coord("ann task list").answer["tasks"] == [], "a check loads nothing"


def test_show_tells_the_progress_of_each_track(coord: Coord, plan: Path, capfd) -> None:
    """TID-21, TID-27: completed, in progress and pending per track; and the same as a Mermaid picture."""
    coord("ann plan load plan.yaml")
    taken(coord, "ann")
    coord("ann task submit A-001-core 1")
    assert taken(coord, "ann")[0] == "A-002-more"
    code, answer, line = coord("ann plan show")
    assert (code, line) == (0, "1 of 3 tasks done")
    of_a, of_b = answer["tracks"]
    assert (of_a["completed"], of_a["in_progress"], of_a["pending"], of_a["percent"]) == (1, 1, 0, 50)
    assert (of_b["completed"], of_b["in_progress"], of_b["pending"]) == (0, 0, 1)
    assert main(["plan", "show", "--mermaid"]) == 0
    picture = capfd.readouterr().out.splitlines()
    assert picture[:3] == ["flowchart LR", '  subgraph track0["A"]', '    t0["A-001-core"]']
    assert {"  t0 --> t1", "  t0 --> t2", "  class t0 done"} <= set(picture)


def test_agents_per_track_come_from_the_plan(coord: Coord, plan: Path) -> None:
    """TID-12, TID-13: one agent per track, more where the plan says so."""
    tasks = "[{id: Q-001-a}, {id: Q-002-b}]"
    plan.write_text(f"tracks: {{Q: {tasks}}}")
    coord("ann plan load plan.yaml")
    taken(coord, "ann")
    assert coord("bob task next").answer["waiting_for"][0] == "track Q is full: ann"
    plan.write_text(f"tracks: {{Q: {{agents: 2, tasks: {tasks}}}}}")
    coord("ann plan load plan.yaml")
    assert taken(coord, "bob") == ("Q-002-b", 1)


def test_a_noun_and_a_verb_are_one_command(capfd) -> None:
    """`coord task` has verbs: help lists them, Tab offers them, and a mistake names the nearest."""
    assert parse(["--json", "task", "--session", "s", "next"]).command == parse(["task", "next"]).command
    assert parse(["--help", "task", "next"]).command == parse(["task", "next"]).command
    assert main(["task", "nxt"]) == 2
    assert json.loads(capfd.readouterr().out)["error"]["hint"] == "did you mean next?"
    assert main(["task"]) == 2
    assert json.loads(capfd.readouterr().out)["error"]["message"] == "task needs a verb"
    assert main(["task next"]) == 2
    assert main(["plan", "--help"]) == 0
    assert "plan load" in capfd.readouterr().out
    assert candidates(["pl"], lambda _: []) == ["plan"]
    assert candidates(["plan", ""], lambda _: []) == ["load", "init", "check", "show"]
    assert candidates(["task", "submit", "A"], lambda _: ["A-001-x", "B-001-y"]) == ["A-001-x"]


REVERIE = "project: reverie\ntasks:\n  - {id: T1}\n  - {id: T2}\n"


def test_the_project_of_a_plan_is_remembered(coord: Coord, repository: Path) -> None:
    """DESIGN §7: a plan decides where its tasks go, and later commands here find them, in every worktree."""
    (repository / "plan.yaml").write_text(REVERIE)
    dry = coord("ann plan load plan.yaml --dry-run")
    assert (dry.code, dry.answer["project"]) == (0, "reverie")
    assert coord("ann task list").line == "0 tasks", "a dry run changes nothing"
    code, answer, line = coord("ann plan load plan.yaml")
    assert (code, answer["project"], answer["added"]) == (0, "reverie", ["T1", "T2"])
    assert line.endswith("in project reverie")
    assert coord("ann task list").line == "2 tasks in project reverie"
    assert coord("bob task next").answer["task"]["task_id"] == "T1"
    assert not [path.name for path in repository.iterdir() if path.name not in (".git", "plan.yaml")]
    assert coord("ann task list --project shop").answer["tasks"] == []


def test_a_project_that_is_named_wins_over_the_plan(
    coord: Coord, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN §7: --project and COORD_PROJECT decide, and nothing is remembered."""
    (repository / "plan.yaml").write_text(REVERIE)
    assert coord("ann plan load plan.yaml --project mine").answer["project"] == "mine"
    monkeypatch.setenv("COORD_PROJECT", "yours")
    assert coord("ann plan load plan.yaml").answer["project"] == "yours"
    monkeypatch.delenv("COORD_PROJECT")
    assert coord("ann task list").line == "0 tasks"
    assert len(coord("ann task list --project mine").answer["tasks"]) == 2


def test_the_name_of_the_repository_ends_a_remembered_project(coord: Coord, repository: Path) -> None:
    """DESIGN §7: the last plan that names a project decides."""
    (repository / "plan.yaml").write_text(REVERIE)
    coord("ann plan load plan.yaml")
    (repository / "plan.yaml").write_text(REVERIE.replace("reverie", "shop"))
    assert coord("ann plan load plan.yaml").answer["project"] == "shop"
    assert coord("ann task list").line == "2 tasks"


def test_a_plan_to_start_from(coord: Coord, repository: Path) -> None:
    """`plan init` writes a plan that loads, for this repository, and overwrites nothing."""
    code, answer, line = coord("ann plan init")
    assert (code, answer["file"]) == (0, "plan.yaml")
    assert "coord plan load plan.yaml" in line
    text = (repository / "plan.yaml").read_text()
    assert "\nproject: shop\n" in text
    assert text.count("#") > 3
    assert coord("ann plan load plan.yaml").code == 0
    (repository / "plan.yaml").write_text("mine")
    code, answer, _ = coord("ann plan init")
    assert (code, answer["error"]["code"]) == (1, "refused")
    assert (repository / "plan.yaml").read_text() == "mine"
    assert coord("ann plan init plans/other.yaml").code == 0
    assert coord("ann plan init plan.json").code == 2


def test_a_task_is_submitted_without_its_generation(coord: Coord) -> None:
    """`task submit TASK` and `task done TASK` finish what this session holds, and nothing else."""
    for name in ("a", "b", "c"):
        coord(f"ann task add {name}")
    code, answer, _ = coord("ann task submit a")
    assert (code, answer["error"]["code"]) == (1, "claim_lost")
    assert "a is not claimed" in answer["error"]["message"]
    coord("ann task claim a")
    code, answer, _ = coord("bob task done a")
    assert (code, answer["error"]["code"]) == (1, "claim_lost")
    assert "a is held by ann (s-ann), not by this session (s-bob)" in answer["error"]["message"]
    assert coord("ann task submit a --result", '{"n": 1}').code == 0
    coord("ann task claim b")
    assert coord("ann task done b").line.startswith("b is done ✓")
    coord("ann task claim c")
    coord("bob task claim c --force --reason needed")
    code, answer, _ = coord("ann task done c")
    assert (code, "c is held by bob (s-bob)" in answer["error"]["message"]) == (1, True)
    assert coord("bob task renew c").code == 0
    assert coord("bob task release c").code == 0
    assert coord("ann task done c").answer["error"]["message"].startswith("c was last held by bob")


def test_a_rejected_result_names_the_next_step(coord: Coord) -> None:
    """Found by using it: nobody's result counts yet, so the lineage is no help."""
    coord("ann task add a --files a.py")
    assert coord("ann task submit a 1").line == "Refused: no claim; claim it first: coord task claim a"
    coord("ann task claim a")
    assert "coord task show a prints its generation" in coord("ann task submit a 7").line
    coord("bob steal a.py --force --reason needed")
    assert coord("ann task submit a 1").line.endswith(
        "lost to s-bob (stolen); start again from the present files: coord task claim a"
    )


def test_a_person_sees_the_result_and_its_author(coord: Coord) -> None:
    """Found by using it: `task show` of a done task shows its result, who made it, and each generation."""
    coord("ann task add a")
    coord("bob task claim a")
    coord("bob task release a")
    coord("ann task claim a")
    coord("ann task submit a --result", '{"branch": "login"}')
    terminal = Terminal(
        "-m", "coord.transports.cli.main", "--session", "s-ann", "-o", "wide", "task", "show", "a"
    )
    assert terminal.exit_code() == 0
    for words in ("1 bob voluntary; 2 ann accepted", "ann (s-ann), generation 2", " s ago", "branch=login"):
        assert words in terminal.shown
