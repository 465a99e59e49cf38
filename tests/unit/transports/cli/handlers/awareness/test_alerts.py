"""`coord alerts` from end to end."""

import json

import pytest

from coord.transports.cli.main import main
from tests.support.cli import Coord, Said


@pytest.fixture
def person(coord: Coord, capfd: pytest.CaptureFixture[str]) -> Coord:
    """Return `coord` as a person calls it: without a session and without an agent's name."""

    def run(call: str, *more: str) -> Said:
        code = main([*call.split(), *more])
        out, err = capfd.readouterr()
        return Said(code, json.loads(out) if out else {}, err.rstrip("\n"))

    return run


@pytest.fixture
def full(coord: Coord) -> Coord:
    coord("ann update --blob", '{"context_percent": 97}')
    return coord


def test_an_alert_is_listed_and_closed(full: Coord, person: Coord) -> None:
    """ALR-8: raised by the list itself without a hub; its rule's precision is shown."""
    listed = person("alerts")
    (alert,) = listed.answer["alerts"]
    assert (alert["id"], alert["rule"], alert["severity"]) == ("a1", "context_pressure", "critical")
    assert listed.line.endswith("1 open alert")
    assert [each["id"] for each in person("needs").answer["needs"]] == ["a1"]
    assert full("ann alerts close a1 --false").code == 1
    closed = person("alerts close a1 --false", "--note", "it compacts")
    assert (closed.code, closed.line) == (0, "Closed a1 (context_pressure) as false")
    assert person("alerts").answer["alerts"] == []
    everything = person("alerts --all")
    assert everything.answer["alerts"][0]["note"] == "it compacts"
    assert everything.line == "0 open alerts; context_pressure was right in 0 % of its last alerts"


@pytest.mark.parametrize(
    "call",
    [
        *("alerts close", "alerts close a1", "alerts close --true", "alerts close a1 --true --all"),
        *("alerts list a1", "alerts --true", "alerts --note x", "alerts close a1 --true --false"),
    ],
)
def test_what_cannot_be_meant(full: Coord, person: Coord, call: str) -> None:
    del full
    assert person(call).code == 2
    assert len(person("alerts").answer["alerts"]) == 1


def test_unknown_alert(full: Coord, person: Coord) -> None:
    del full
    assert person("alerts close a9 --true").code == 4
