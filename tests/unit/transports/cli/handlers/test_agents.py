"""Agents and routing from end to end: what is declared, configured, answered and refused."""

import os
from pathlib import Path

import pytest

from tests.support.cli import Coord
from tests.support.consent import write_configuration
from tests.support.docs.pages import text_of

CONFIGURATION = text_of("docs/reference/routing.md").partition("```toml\n")[2].partition("```")[0]


def test_route_explains_whom_a_task_is_for(coord: Coord) -> None:
    """RTE-1, RTE-12, RTE-13: by the words of a description, with scores, reasons and the rationale."""
    for name in ("beatrice", "otto"):
        coord(f"{name} register")
    code, answer, line = coord("ann route --explain --description", "Create a signup form")
    assert (code, answer["agent"], answer["type"]) == (0, "beatrice", "code_gen")
    assert line.startswith("beatrice: beatrice is primary for code_gen and free; code_gen (the word “Create”")
    assert [choice["agent"] for choice in answer["choices"]] == ["beatrice", "otto"]
    assert [round(choice["score"]) for choice in answer["choices"]] == [100, 80]
    assert "primary: efficiency 1 × track record 1.00 × position 1; no wait" in answer["choices"][0]["reason"]
    assert "Beatrice writes new code" in answer["matrix"]
    assert answer["other_idle_agents"] == ["otto"]
    coord("ann task add form --type doc --description", "Create a signup form")
    code, answer, _ = coord("ann route form")
    assert (code, answer["agent"], answer["type"]) == (0, "otto", "doc"), "a type that is given wins"
    assert "choices" not in answer
    coord("otto task next")
    assert "(now in_progress by otto)" in coord("ann route form").line
    assert coord("ann route nowhere").answer["error"]["code"] == "not_found"
    assert coord("ann route").code == 2
    assert coord("ann route form --type api").code == 2


def test_agents_are_listed_disabled_and_enabled(coord: Coord) -> None:
    """An operator takes an agent out of the pool; it gets nothing until it is taken back.

    RTE-22, SCN-28, STA-14, OBS-1, STA-2.
    """
    coord("rem register --capabilities api,testing=1.5")
    coord("ann task add t --type api")
    assert coord("rem task next").answer["task"]["task_id"] == "t"
    coord("rem task release t 1")
    code, answer, line = coord("ann agent disable rem --reason", "its key has expired")
    assert (code, answer["agent"]["enabled"]) == (0, False)
    code, answer, line = coord("rem task next --wait 0.05")
    assert (code, answer["error"]["code"]) == (1, "denied")
    assert "rem gets no task: disabled: its key has expired" in line
    (rem,) = coord("ann agent list").answer["agents"]
    assert (rem["name"], rem["liveness"], rem["claims"]) == ("rem", "live", 0)
    assert rem["blocked_reason"] == "disabled: its key has expired"
    assert rem["capabilities"] == {"api": 1.0, "testing": 1.5}
    assert coord("ann route t").answer["agent"] is None
    assert coord("ann agent enable rem").answer["agent"]["enabled"] is True
    assert coord("rem task next").code == 0
    assert coord("ann agent list rem").answer["agents"][0]["claims"] == 1
    assert coord("ann agent list nobody").answer["error"]["code"] == "not_found"
    told = coord("ann log tail --op agent").answer["events"]
    assert [event.get("reason", "") for event in told] == ["its key has expired", ""]


def test_a_rate_limited_agent_waits_out_its_pause(coord: Coord) -> None:
    """RTE-20: given back with --limited, a task is free at once, its agent gets nothing; --wait wakes."""
    coord("ann task add t")
    coord("rem task next")
    assert coord("rem task release t 1 --limited 0.5 --note", "429").answer["state"] == "ready"
    code, answer, _ = coord("rem task next")
    assert (code, answer["error"]["code"]) == (1, "blocked")
    code, answer, _ = coord("rem task next --wait 1m")
    assert (code, answer["claim"]["generation"], answer["task"]["retries"]) == (0, 2, 0)


def test_what_an_agent_cannot_do_it_is_not_given(coord: Coord) -> None:
    """Rem cannot reach the API: no API tasks until it says otherwise, but others.

    RTE-17, RTE-21, STA-13, STA-15.
    """
    coord("ann task add a --type api_integration --priority 5")
    coord("ann task add b --type doc --needs internet")
    coord("rem register --capabilities api=0,internet")
    assert coord("rem task next").answer["task"]["task_id"] == "b"
    assert coord("rem task next").answer["error"]["code"] == "blocked"
    coord("rem update --capabilities api")
    assert coord("rem task next").answer["task"]["task_id"] == "a"
    assert coord("rem update --capabilities api=11").code == 2
    assert coord("rem update --capabilities api=x").code == 2


def test_a_new_agent_joins_by_configuration(coord: Coord, repository: Path) -> None:
    """SCN-32, RTE-26: Mallory brings a type of her own; what she cannot do she is not given."""
    write_configuration(repository, CONFIGURATION, os.environ)
    coord("ann task add words --type doc --priority 9")
    coord("ann task add look --description", "Rework the layout of the shop")
    assert coord("ann route look").answer["agent"] is None, "she is not here yet"
    assert coord("mallory task next").answer["task"]["task_id"] == "look"
    assert coord("mallory task next").answer["error"]["code"] == "blocked"
    answer = coord("ann route look --explain").answer
    assert (answer["agent"], answer["type"], answer["matrix"]) == (
        "mallory",
        "ui",
        "Mallory has an eye for layout.",
    )
    write_configuration(repository, f"{CONFIGURATION}enabled = false\n", os.environ)
    assert coord("mallory task next").answer["error"]["code"] == "denied"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[agents.ann]\ncapacity = -1", "[agents.ann]: Expected `int` >= 0 - at `$.capacity`"),
        ("[agents.ann]\nsped = 1", "[agents.ann]: Object contains unknown field `sped`"),
        ("agents = 3", "agents"),
        ("[routing.types.ui]\nagents = 3", "[routing.types.ui]: Expected `array`, got `int` - at `$.agents`"),
        ("[routing]\ntypos = 3", "unknown field `typos`"),
    ],
)
def test_an_error_in_the_configuration_names_file_and_field(
    coord: Coord, repository: Path, text: str, named: str
) -> None:
    """RTE-17: nothing is guessed from a file that makes no sense."""
    coord("ann task add t")
    write_configuration(repository, text, os.environ)
    code, answer, _ = coord("ann route t")
    assert (code, answer["error"]["code"]) == (2, "invalid")
    assert f"{repository}/coord.toml" in answer["error"]["message"]
    assert named in answer["error"]["message"]
    if "routing" not in text:
        assert coord("ann task next").code == 2, "nor is a task given"


def test_work_that_is_much_alike_is_warned_of(coord: Coord, repository: Path) -> None:
    """SCN-55, DED-1, DED-2: the task is added, and whoever added it reads what it may double."""
    coord("ann task add a --description", "Fix the validation of the login form")
    code, answer, line = coord("ann task add b --description", "fix login validation")
    assert (code, answer["added"], [each["task_id"] for each in answer["similar"]]) == (0, ["b"], ["a"])
    assert "b is 75% like a (fix, login, validation)" in line
    again = coord("ann task add b --description", "fix login validation")
    assert again.answer["similar"] == [], "it is not new"
    plan = "tasks:\n  - {id: c, description: Fix login form}\n  - {id: d, description: Fix login form}\n"
    (repository / "plan.yaml").write_text(f"project: shop\n{plan}")
    code, answer, line = coord("ann plan load plan.yaml")
    assert (code, answer["added"]) == (0, ["c", "d"])
    likes = [warning.split(" (")[0] for warning in answer["warnings"]]
    assert likes == ["c is 75% like a", "d is 75% like a", "c is 67% like b", "d is 67% like b"]


def test_a_track_takes_as_many_agents_as_it_is_told(coord: Coord) -> None:
    """TID-12, TID-13, AMB-22: one agent per track, more where somebody says so."""
    coord("ann task add A-001-one")
    coord("ann task add A-002-two")
    assert coord("ann task next").code == 0
    assert coord("bob task next").answer["error"]["code"] == "blocked"
    assert coord("ann track A --agents 2").answer == {"ok": True, "track": "A", "agents": 2}
    assert coord("bob task next").code == 0
    assert coord("ann track A --agents 0").code == 2


@pytest.mark.parametrize(
    ("mode", "beatrice", "otto"),
    [("", "code", "doc"), ("advise", "doc", "code"), ("prefer", "code", "doc"), ("assign", "code", "doc")],
)
def test_routing_modes(coord: Coord, repository: Path, mode: str, beatrice: str, otto: str) -> None:
    """RTE-1, RTE-13: `[routing] mode` decides what an agent that asks gets; `prefer` is the default."""
    write_configuration(repository, f'[routing]\nmode = "{mode}"\n' if mode else "", os.environ)
    coord("ann task add doc --type doc")
    coord("ann task add code --type code_gen")
    coord("beatrice register")
    coord("otto register")
    assert coord("beatrice task next").answer["task"]["task_id"] == beatrice
    assert coord("otto task next").answer["task"]["task_id"] == otto


def test_an_unknown_routing_mode_is_refused(coord: Coord, repository: Path) -> None:
    """RTE-1: a typing error does not switch routing off."""
    write_configuration(repository, '[routing]\nmode = "perfer"\n', os.environ)
    code, answer, _ = coord("ann task next")
    assert (code, "routing.mode" in answer["error"]["message"]) == (2, True)
    assert "advise, prefer, assign" in answer["error"]["hint"]


def test_a_task_is_assigned(coord: Coord) -> None:
    """RTE-1: others are told for whom it is kept, and the agent gets it."""
    coord("ann task add t")
    coord("otto register")
    code, answer, line = coord("ann task assign t otto --for 10m")
    assert (code, answer["task"]["assignee"], line) == (0, "otto", "t is kept for otto for 10m")
    assert "t: it is assigned to otto for" in coord("bob task next").line
    assert coord("otto task next").answer["task"]["task_id"] == "t"
    code, answer, _ = coord("ann task assign t otto")
    assert (code, answer["error"]["code"]) == (1, "refused")
