"""Limits, sweeping and session memory from end to end."""

import json
import os
import signal

from coord.transports.cli.parser import parse
from tests.support.cli import Coord, started
from tests.support.terminals import Terminal


def test_limits_are_shown_and_set(coord: Coord) -> None:
    """TEN-14: each limit with its rationale, both profiles and what is used; changes are told with who."""
    code, answer, line = coord("ann limits show --tenant acme")
    assert (code, answer["limited"], answer["profile"]) == (0, True, "default")
    assert line == "Tenant acme, profile default; project shop"
    rows = {row["limit"]: row for row in answer["limits"]}
    claims = rows["max_concurrent_claims"]
    assert (claims["value"], claims["default"], claims["enterprise"]) == (100, 100, 1000)
    assert all(row["because"] for row in rows.values())
    answer = coord("ann limits set --tenant acme --profile enterprise max_active_sessions=1").answer
    rows = {row["limit"]: row for row in answer["limits"]}
    assert rows["max_concurrent_claims"]["value"] == 1000
    assert (answer["profile"], rows["max_active_sessions"]["used"]) == (None, 0)
    coord("ann task claim t --tenant acme")
    used = {row["limit"]: row["used"] for row in coord("ann limits show --tenant acme").answer["limits"]}
    assert (used["max_concurrent_claims"], used["max_active_sessions"]) == (1, 1)
    code, answer, _ = coord("bob register --tenant acme")
    assert (code, answer["error"]["code"]) == (1, "limit")
    assert "coord limits set" in answer["error"]["hint"]
    events = coord("ann log tail --tenant acme --op limits.set").answer["events"]
    assert [event["by"] for event in events] == ["s-ann"]


def test_bad_limits_change_nothing(coord: Coord) -> None:
    """TEN-14: what is no limit, no number or no profile is refused; Tenant local is unlimited."""
    assert coord("ann limits show").answer["limited"] is False
    for words in ("max_active_sessions=5", "--tenant acme", "--tenant acme max_widgets=5"):
        assert coord(f"ann limits set {words}").code == 2
    for words in ("max_active_sessions=0", "max_active_sessions", "max_active_sessions=x", "--profile odd"):
        code, answer, _ = coord(f"ann limits set --tenant acme {words}")
        assert (code, bool(answer["error"]["hint"])) == (2, True)
    assert coord("ann limits show --tenant acme").answer["profile"] == "default"
    assert coord("ann limits set hung_second=60").answer["error"]["hint"] == "did you mean hung_seconds?"


def test_settings_are_shown_and_set(coord: Coord) -> None:
    """CFL-19, CFL-36: tenant local has settings; each shows its value, its source and its reason."""
    code, answer, line = coord("ann limits set max_agents=8 project_lock_nesting=on")
    assert (code, answer["limited"], answer["project"]) == (0, False, "shop")
    assert line == "Tenant local, without limits of claims and sessions; project shop"
    rows = {row["name"]: row for row in coord("bob limits show").answer["settings"]}
    assert (rows["max_agents"]["value"], rows["max_agents"]["source"]) == (8, "store")
    assert (rows["project_lock_nesting"]["value"], rows["steal_policy"]["source"]) == ("on", "default")
    events = coord("ann log tail --op settings.changed").answer["events"]
    assert [event["by"] for event in events] == ["s-ann", "s-ann"]
    for words in ("max_agents=0", "max_agents=x", "project_lock_nesting=maybe", "stale_seconds=1h"):
        code, answer, _ = coord(f"ann limits set {words}")
        assert (code, bool(answer["error"]["hint"])) == (2, True)
    assert coord("ann limits set max_agents=default").answer["settings"][0]["value"] == "unlimited"


def test_agents_are_limited(coord: Coord) -> None:
    """SUP-3, CFL-36: the command of one agent too many says who is there and what to do."""
    coord("ann limits set max_agents=1")
    coord("ann lock a.py")
    code, answer, line = coord("bob lock b.py")
    assert (code, answer["error"]["code"]) == (1, "limit")
    assert "project shop has 1 agent and may have 1: ann (s-ann)" in line
    assert answer["error"]["hint"].endswith("coord limits set max_agents=2")
    assert coord("ann limits set max_agents=2").code == 0
    assert coord("bob lock b.py").code == 0


def test_sweep_once(coord: Coord) -> None:
    """SCH-1, SCH-9: what ran out is written down; a second time there is nothing."""
    coord("ann task claim t --lease 0.001")
    code, answer, line = coord("bob sweep")
    assert (code, answer["passed"], line) == (0, 1, "1 expired record")
    assert answer["next_at"]
    assert coord("bob sweep").line == "Nothing has expired"
    assert coord("bob log tail --op task.expired").answer["events"]


def test_sweep_goes_on_until_it_is_told_to_end(coord: Coord) -> None:
    """Issue 4, part 8: on a schedule in a process that lives long; one line for each turn, a clean end.

    SES-37.
    """
    coord("ann task claim t --lease 0.001")
    process = started("bob", "sweep", "--every", "0.05")
    assert process.stdout is not None
    turns = [json.loads(process.stdout.readline()) for _ in range(3)]
    assert [turn["passed"] for turn in turns] == [1, 0, 0]
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


def test_stuck_tasks_are_named(coord: Coord) -> None:
    """REC-6, ALR-13: `status` and `doctor` name what failed, with the next step, until somebody acts."""
    coord("ann task add t")
    assert coord("ann task claim t").code == 0
    coord("ann task fail t 1 --final --note impossible")
    said = coord("ann status")
    assert (said.answer["stuck"], "stuck: t" in said.line) == (["t"], True)
    (check,) = [each for each in coord("ann doctor").answer["checks"] if each["check"] == "tasks"]
    assert (check["state"], check["message"]) == ("warn", "1 task needs a person: shop/t")
    assert "coord task retry" in check["hint"]
    coord("ann task retry t")
    assert coord("ann status").answer["stuck"] == []


def test_a_person_sees_a_table_of_the_memory(coord: Coord) -> None:
    """SES-33: on a terminal `session show` is a table, and its line says what to do next."""
    coord("ann task claim A-001-x")
    terminal = Terminal("-m", "coord.transports.cli.main", "--session", "s-ann", "session", "show")
    terminal.wait_for("continue A-001-x")
    assert terminal.exit_code() == 0
    assert "A-001-x (generation 1" in terminal.shown
    assert "FIELD" in terminal.shown


def test_a_claim_by_name_is_all_or_nothing(coord: Coord) -> None:
    """CLM-12: `task claim` takes the locks on the files, or is denied with who holds them."""
    coord("ann task add t --files a.py,b.py")
    coord("bob lock b.py")
    code, answer, line = coord("ann task claim t")
    assert (code, answer["error"]["code"], answer["holder"]) == (1, "denied_locked", "s-bob")
    assert "file:b.py is held by s-bob" in line
    assert "--no-locks" in answer["error"]["hint"]
    assert coord("eve check a.py").code == 0
    coord("bob unlock b.py")
    answer = coord("ann task claim t").answer
    assert [lock["resource"] for lock in answer["locks"]] == ["file:a.py", "file:b.py"]
    assert all(lock["fence"] for lock in answer["locks"])
    assert parse(["task", "claim", "t", "--no-locks"]).values["no_locks"]
