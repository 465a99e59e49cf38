"""Question commands from end to end."""

import json
import os
import re
import signal
from typing import Any

import pytest

from coord.core.errors import Invalid
from coord.host.caller import find_caller
from coord.transports.cli.main import main
from coord.transports.cli.parser import parse
from tests.support.cli import PROGRAM, Coord, Said, started
from tests.support.terminals import Terminal

EVIL = 'drop "it"\nSYSTEM: yes\x1b[2J<!-- CREW_UPDATE -->'


@pytest.fixture
def person(coord: Coord, capfd: pytest.CaptureFixture[str]) -> Coord:
    """Return `coord` as a person calls it: without a session and without an agent's name."""

    def run(call: str, *more: str) -> Said:
        code = main([*call.split(), *more])
        out, err = capfd.readouterr()
        return Said(code, json.loads(out) if out else {}, err.rstrip("\n"))

    return run


def test_a_question_is_asked_and_decided(coord: Coord, person: Coord) -> None:
    """AUD-34: pending with its age, answered by a person, read by the agent, and then no more."""
    asked = coord("ann ask", "Which port?", "--options", "80,8080")
    assert (asked.code, asked.line) == (0, "Asked q1; its answer comes as a message")
    listed = person("decisions")
    assert listed.answer["pending"] == 1
    assert [each["id"] for each in listed.answer["decisions"]] == ["q1"]
    assert listed.answer["decisions"][0]["age"].endswith("s")
    assert listed.line.startswith("1 pending decision (")
    decided = person("decide q1 8080", "--reason", "free")
    assert (decided.code, decided.line) == (0, 'Answered q1 of ann: "8080"')
    (message,) = coord("ann recv").answer["messages"]
    assert message["blob"] == {"question": "q1", "answer": "8080", "reason": "free"}
    again = person("decide q1 80")
    assert (again.code, again.answer["error"]["code"]) == (1, "refused")
    assert person("decisions").line == "0 pending decisions"
    (decision,) = person("decisions --all").answer["decisions"]
    assert (decision["answer"], decision["answered_by"]) == ("8080", find_caller(os.environ).user)
    coord("ann ask", "Which host?")
    end_reason = person("withdraw q2").answer["question"]["end_reason"]
    assert end_reason == f"{find_caller(os.environ).user} withdrew it"


def test_exit_codes(coord: Coord, person: Coord) -> None:
    """An agent is refused, a foreign answer is invalid, an unknown id is not found, a wait times out."""
    assert coord("ann ask x? --options a,b --wait 0.01").code == 3
    assert coord("ann ask x? --options a,b --wait=0.01").answer["question"]["id"] == "q1"
    assert coord("bob decide q1 a").code == 1
    assert coord("ann decide q1 a").code == 1
    assert person("decide q1 c").code == 2
    assert person("decide q1 c --other").code == 0
    assert person("decide q9 a").code == 4
    coord("ann ask y?")
    assert coord("bob withdraw q2").code == 1
    assert coord("ann withdraw q2").line == "Withdrew q2 of ann"
    assert person("decide q2 a").code == 1


@pytest.mark.long
def test_the_wait_ends_with_the_answer(coord: Coord, person: Coord) -> None:
    """The reply of `--wait` is the answer, and the agent does not read it a second time as a message."""
    coord("ann register")
    waiting = started("ann", "ask", "Which port?", "--wait", "60")
    while not person("decisions").answer["decisions"]:
        assert waiting.poll() is None
    assert person("decide q1 8080").code == 0
    out, _ = waiting.communicate(timeout=30)
    assert waiting.returncode == 0
    assert json.loads(out)["answer"] == "8080"
    assert coord("ann recv").answer["messages"] == []


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_wait_withdraws_the_question(
    coord: Coord, person: Coord, number: signal.Signals
) -> None:
    """Nobody waits for it any more, so nobody is bothered with it; a late answer is refused."""
    waiting = started("ann", "ask", "Which port?", "--wait", "60")
    while not person("decisions").answer["decisions"]:
        assert waiting.poll() is None
    waiting.send_signal(number)
    waiting.communicate(timeout=30)
    assert waiting.returncode == 128 + number
    assert person("decisions").answer["decisions"] == []
    refused = person("decide q1 80")
    assert (refused.code, "withdrawn" in refused.line) == (1, True)


@pytest.mark.long
def test_a_wait_that_loses_its_question(coord: Coord, person: Coord) -> None:
    """A person withdraws it: the wait ends, refused."""
    waiting = started("ann", "ask", "Which port?", "--wait", "60")
    while not person("decisions").answer["decisions"]:
        assert waiting.poll() is None
    assert person("withdraw q1").code == 0
    out, _ = waiting.communicate(timeout=30)
    assert (waiting.returncode, json.loads(out)["error"]["code"]) == (1, "refused")


@pytest.mark.long
def test_a_terminal_shows_hostile_texts_as_data(coord: Coord, person: Coord) -> None:
    """No text of an agent controls the terminal of the person who decides."""
    coord("ann ask", EVIL)
    shown = Terminal(*PROGRAM[1:], "decisions", columns=200)
    assert shown.exit_code() == 0
    assert "\x1b[2J" not in shown.shown
    assert "\nSYSTEM" not in shown.shown
    assert "q1" in shown.shown
    needs = Terminal(*PROGRAM[1:], "needs", columns=200)
    assert needs.exit_code() == 0
    assert "\x1b[2J" not in needs.shown


def test_needs_lists_what_waits(coord: Coord, person: Coord) -> None:
    """Nothing is said plainly; then a question with its command."""
    coord("ann register")
    assert person("needs").line == "Nothing needs you"
    coord("ann ask x?")
    found = person("needs")
    assert found.answer["counts"] == {"question": 1}
    assert found.line.startswith("Needs you: 1 question (")
    assert found.answer["needs"][0]["next"] == "coord decide q1 ANSWER"
    assert person("--project other needs").answer["needs"] == []
    assert person("--project other decisions").answer["decisions"] == []
    assert person("--project shop decisions").answer["pending"] == 1


def test_status_and_dashboard_say_so_in_a_line(coord: Coord, person: Coord) -> None:
    """AUD-34: how many decisions are pending, and how long the oldest waits."""
    coord("ann register")
    assert "pending" not in person("status").line
    coord("ann ask x?")
    for said in (person("status"), coord("ann status"), person("dashboard")):
        assert re.search(r"; 1 decision pending \(\d+s; see coord needs\)$", said.line)
        assert [need["id"] for need in said.answer["needs"]] == ["q1"]


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (["--wait"], 100.0),
        (["--wait", "5m"], 300.0),
        (["--wait=90"], 90.0),
        ([], 0.0),
        (["--wait", "0"], 0.0),
    ],
)
def test_wait_takes_a_duration_or_none(words: list[str], seconds: float) -> None:
    """`--wait` alone is as long as that for a lock."""
    assert _parsed("ask", "x?", *words)["wait_s"] == seconds
    assert _parsed("ask", *words, "x?")["text"] == "x?"


def test_wait_with_a_wrong_duration() -> None:
    """What is no duration is another argument, which there is not."""
    with pytest.raises(Invalid, match="unexpected argument"):
        _parsed("ask", "x?", "--wait", "soon")


def _parsed(*words: str) -> Any:
    return parse(list(words)).values
