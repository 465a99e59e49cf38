"""`coord log activity`: what agents did, in the words of the founding document."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import coord
from coord.core.messages.commands import SendMessage
from coord.transports.cli.main import main
from tests.support.git_folders import git

COLUMNS = ["id", "agent_id", "agent_role", "action_type", "summary", "details", "timestamp"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    git(tmp_path, "init", "-q")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("COORD_", "CLAUDE", "AI_AGENT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COORD_SESSION_ID", "ann-1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with coord.connect(session="ann-1", agent="ann", role="developer") as ann:
        ann.register()
        ann.acquire("src/app.py")
        with coord.connect(session="bob-1", agent="bob", parent="ann-1") as bob:
            bob.register()
            subject = "hi\n\x1b[31m<b>CREW_UPDATE -->"
            bob.call(SendMessage(bob.caller, to="ann-1", kind="status", subject=subject))
        ann.unlock("src/app.py")
    return tmp_path


def ran(capfd: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capfd.readouterr()
    code = main(["log", "activity", *argv])
    out, err = capfd.readouterr()
    return code, out, err


def listed(capfd: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    code, out, err = ran(capfd, *argv)
    assert code == 0, err
    found: list[dict[str, Any]] = json.loads(out)["activity"]
    return found


def test_the_ledger_has_the_founding_columns(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """AUD-5, AUD-6, AUD-7, MSG-17."""
    found = listed(capfd)
    types = [each["action_type"] for each in found]
    assert types == ["lock_acquired", "sub_agent_spawned", "message_sent", "lock_released"]
    assert [list(each) for each in found] == [COLUMNS] * 4
    assert [each["agent_id"] for each in found] == ["ann-1", "ann-1", "bob-1", "ann-1"]
    assert (found[0]["agent_role"], found[2]["agent_role"]) == ("developer", "bob")
    sent = found[2]["details"]
    assert (sent["toAgentId"], sent["toRole"]) == ("ann-1", "developer")
    assert found[1]["details"]["toAgentId"] == "bob-1"


def test_an_action_is_an_event_of_the_log(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """AUD-4, AUD-9, EVT-3, DED-3: followers and streams get what the ledger shows, without a buffer."""
    for entry in listed(capfd):
        assert main(["log", "tail", "--op", entry["details"]["event"]]) == 0
        events = json.loads(capfd.readouterr().out)["events"]
        assert entry["id"] // 10**6 in [event["offset"] for event in events]
    assert {each["summary"] for each in listed(capfd)} >= {"Acquired lock on src/app.py"}


def test_the_ledger_is_filtered(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert [each["agent_id"] for each in listed(capfd, "--agent", "bob")] == ["bob-1"]
    assert [each["action_type"] for each in listed(capfd, "--type", "lock_acquired")] == ["lock_acquired"]
    assert [each["action_type"] for each in listed(capfd, "-n", "1")] == ["lock_released"]
    assert listed(capfd, "--since", "1h") == listed(capfd)


@pytest.mark.parametrize(
    "argv",
    [
        *(["--type", "lock.acquired"], ["--op", "lock"], ["--actor", "ann"], ["--follow"], ["-n", "0"]),
        *(["--resource", "src/app.py"], ["src/app.py"]),
    ],
)
def test_flags_of_other_views_are_refused(
    folder: Path, capfd: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    code, _, err = ran(capfd, *argv)
    assert code == 2, err


def test_filters_of_actions_do_not_fit_events(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "tail", "--agent", "ann"]) == 2
    assert main(["log", "stats", "--type", "error"]) == 2


def test_texts_of_others_do_not_reach_the_terminal(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COORD_OUTPUT", "wide")
    code, out, _ = ran(capfd)
    assert code == 0
    assert "\x1b[31m" not in out
    assert "lock_acquired" in out
    assert len([line for line in out.splitlines() if "message_sent" in line]) == 1
