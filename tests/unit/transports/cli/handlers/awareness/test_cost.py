"""`coord cost` and `coord telemetry`: what was used, and how tools report it."""

from collections.abc import Callable

import pytest

from coord import connect
from coord.core.git_log import RecordMerge
from coord.core.usage.commands import RecordUsage, Source, UsageItem
from coord.core.usage.schema import Amounts
from coord.integrations.telemetry import setup
from coord.transports.cli.main import main
from tests.support.cli import Coord

Report = Callable[..., None]


@pytest.fixture
def report(coord: Coord) -> Report:
    """Return a function that lets a session report its usage."""
    coord("ann register")
    coord("ann task add t1")
    coord("ann task claim t1")

    def run(session: str = "s-ann", name: str = "r1", **amounts: int) -> None:
        item = UsageItem(
            id=name,
            source=Source.LOG,
            model="gpt-5",
            amounts=Amounts(requests=1, **amounts),
            context_tokens=100,
            context_window=400,
        )
        with connect(session="watcher") as client:
            client.call(RecordUsage(session=session, tool="codex", items=(item,)))

    return run


def test_what_was_used_is_shown_by_agent_task_and_more(coord: Coord, report: Report) -> None:
    assert coord("ann cost").line.startswith("Nothing was reported; coord telemetry says how")
    report(input=900, cache_read=100, output=50, cost=1_230_000)
    shown = coord("ann cost")
    (row,) = shown.answer["usage"]
    assert (row["agent"], row["cost"], row["tokens"], row["requests"]) == ("ann", "$1.23", 1050, 1)
    assert (row["input"], row["cache_read"], row["output"], row["cost_usd"]) == (900, 100, 50, 1.23)
    assert shown.line.startswith("$1.23 and 1,050 tokens since 20")
    assert [each["task"] for each in coord("ann cost --by task").answer["usage"]] == ["t1"]
    assert [each["model"] for each in coord("ann cost --by model --since 1d").answer["usage"]] == ["gpt-5"]
    (session,) = coord("ann cost --by session").answer["usage"]
    assert (session["context_percent"], session["context"]) == (25, "25%")
    assert coord("ann cost --by day").answer["total"]["tokens"] == 1050


def test_an_estimate_and_an_unknown_price_are_marked(coord: Coord, report: Report) -> None:
    report(input=5, unpriced=5)
    assert coord("ann cost").answer["usage"][0]["cost"] == "?"
    report(name="r2", input=5, estimated=20_000)
    assert coord("ann cost").answer["usage"][0]["cost"] == "~$0.02+?"


def test_a_merged_change_has_its_cost(coord: Coord, report: Report) -> None:
    report(input=5, cost=40_000)
    with connect(session="s-ann") as client:
        client.call(RecordMerge(caller=client.caller, branch="x", into="main", tip="a" * 40, commit="b" * 40))
    shown = coord("ann cost --by change")
    (row,) = shown.answer["usage"]
    assert (row["change"], row["branch"], row["cost"], row["sessions"]) == ("b" * 12, "x", "$0.04", ["s-ann"])
    assert shown.line == "1 merged change"


def test_the_doctor_says_whether_reports_arrive(coord: Coord, report: Report) -> None:
    assert "usage" not in [each["check"] for each in coord("ann doctor").answer["checks"]]
    report(input=5)
    (found,) = [each for each in coord("ann doctor").answer["checks"] if each["check"] == "usage"]
    assert found["state"] == "ok"
    assert found["message"].startswith("agent tools report to the hub: newest report ")


def test_telemetry_needs_a_hub(coord: Coord) -> None:
    shown = coord("ann telemetry --tool codex")
    assert shown.code == 4
    assert "no hub listens on a TCP address" in shown.line


def test_telemetry_is_switched_on_and_off(
    coord: Coord, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """By a person; the answer names files, and never the token."""
    url = "http://127.0.0.1:7420"
    monkeypatch.setattr(setup, "hub_url", lambda _environ: url)
    coord("ann register")
    assert coord("ann telemetry on").code == 1, "an agent gets no token for all sessions"
    assert main(["telemetry", "on"]) == 0
    said = "".join(capfd.readouterr())
    assert "coord_" not in said.replace("coord_telemetry", "")
    shown = coord("ann telemetry --tool codex")
    assert (shown.answer["on"], list(shown.answer["tools"])) == (True, ["codex"])
    assert main(["-o", "table", "telemetry", "--tool", "codex"]) == 0
    out = capfd.readouterr().out
    assert f'\nendpoint = "{url}/v1/logs"\n' in out, "whoever copies it gets lines"
    assert out.endswith("}\n")
    (check,) = [each for each in coord("ann doctor").answer["checks"] if each["check"] == "telemetry"]
    assert (check["state"], check["message"]) == ("ok", f"on, for {url}")
    monkeypatch.setattr(setup, "hub_url", lambda _environ: "http://127.0.0.1:9")
    (check,) = [each for each in coord("ann doctor").answer["checks"] if each["check"] == "telemetry"]
    assert (check["state"], check["hint"]) == ("warn", "coord telemetry on, then start the tools again")
    assert main(["telemetry", "off"]) == 0
    capfd.readouterr()
    assert "telemetry" not in [each["check"] for each in coord("ann doctor").answer["checks"]]


def test_prices_are_listed(coord: Coord) -> None:
    coord("ann register")
    rows = {row["model"]: row for row in coord("ann telemetry prices").answer["prices"]}
    assert (rows["gpt-5"]["source"], rows["gpt-5"]["input"] > 0) == ("list", True)
