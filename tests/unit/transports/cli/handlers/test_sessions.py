"""Session and setup commands from end to end."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from coord.core.locks.commands import AcquireLocks
from coord.sdk.client.client import connect
from coord.transports.cli.main import main
from tests.support.cli import Coord
from tests.support.git_folders import made_repository
from tests.support.terminals import Terminal


def test_register_tells_who_else_is_there(coord: Coord) -> None:
    """SES-12, SES-21, PRB-6, PRB-15: idempotent, keeps what is not named, and names the peers at once."""
    coord("ann register --status working --task", "rework the login")
    code, answer, line = coord("bob register")
    assert code == 0
    assert [peer["session_id"] for peer in answer["peers"]] == ["s-ann"]
    assert line == "Registered s-bob; 1 other session: ann (live)"
    again = coord("ann register").answer
    assert again["new"] is False
    assert again["session"]["current_task"]["ticket"] == "rework the login"


def test_a_session_records_its_program_and_what_it_owns(coord: Coord) -> None:
    """SES-4, SES-6, SES-8, SES-9, SUP-14: peers read which program a session runs and what it owns."""
    coord("ann register --bin /usr/bin/claude --tool-version 2.1.0")
    owned = {"branches": ["agent/ann"], "prs": [7], "agents": ["ann-helper"], "processes": {"web": 4711}}
    coord("ann update --owned", json.dumps(owned))
    (ann,) = coord("bob register").answer["peers"]
    assert (ann["bin"], ann["version"], ann["owned_resources"]) == ("/usr/bin/claude", "2.1.0", owned)


def test_heartbeat_and_peers(coord: Coord) -> None:
    """SES-13, SES-14, PRB-28: a heartbeat is answered; `peers --live` leaves out who has gone."""
    assert coord("ann heartbeat").answer["session_id"] == "s-ann"
    coord("bob register")
    assert [peer["agent"] for peer in coord("ann peers --live").answer["peers"]] == ["bob"]
    coord("bob dereg")
    code, answer, line = coord("ann peers --live")
    assert (code, answer["peers"], line) == (0, [], "no other sessions")


def test_update_merges_a_blob_or_replaces_it(coord: Coord) -> None:
    """`--blob` replaces, `--merge-blob` merges, and data of users comes back as it was.

    SES-15, SES-10, SES-11.
    """
    coord("ann update --phase tests --blob", '{"notes": "a", "seen_ms": 5}')
    merged = coord("ann update --merge-blob --blob", '{"more": [1]}').answer["session"]
    assert merged["blob"] == {"notes": "a", "seen_ms": 5, "more": [1]}
    assert merged["current_task"]["phase"] == "tests"
    assert coord("ann update --blob", "{}").answer["session"]["blob"] == {}
    assert coord("ann update --merge-blob").code == 2
    assert coord("ann update --blob", "[1]").code == 2


def test_status_shows_own_state(coord: Coord) -> None:
    """SES-17, CFL-25: the session, what it holds, and what it has to read."""
    coord("ann lock a.py")
    coord("bob send s-ann status hello")
    code, answer, line = coord("ann status")
    assert code == 0
    assert answer["session"]["session_id"] == "s-ann"
    assert [lock["resource"] for lock in answer["locks"]] == ["file:a.py"]
    assert answer["messages"] == 1
    assert line == "s-ann: idle, 1 lock, 1 unread message"


def test_status_says_what_blocks_a_session(coord: Coord, capfd: pytest.CaptureFixture[str]) -> None:
    """STA-11: for what it waits, behind whom and for how long; its claims and locks with the time left."""
    coord("bob lock a.py")
    coord("ann task add login")
    coord("ann task claim login")
    coord("ann lock b.py")
    with connect(session="s-ann", agent="ann") as ann:
        repository_id = ann.location.repository_id
        waits: dict[str, Any] = {"wait_ms": 60_000, "wait_id": "w", "leased": False}
        ann.call(AcquireLocks(ann.caller, repository_id, ("file:a.py",), **waits))
    code, answer, line = coord("ann status")
    assert (code, answer["session"]["state"]) == (0, "blocked")
    assert line == "s-ann: blocked: waiting for a.py behind s-bob, 0s, 1 lock, 0 unread messages"
    (wait,) = answer["session"]["waits"]
    assert (wait["resources"], wait["behind"], wait["position"]) == (["file:a.py"], ["s-bob"], 1)
    assert [claim["task_id"] for claim in answer["claims"]] == ["login"]
    shown = main(["--session", "s-ann", "-o", "table", "status"])
    table = capfd.readouterr().out
    assert shown == 0
    assert "blocked: waiting for a.py behind s-bob" in table
    assert "login (generation 1, 5m left)" in table or "login (generation 1, 4m" in table
    assert "file:b.py (" in table


def test_somebody_without_a_session_gets_an_overview(coord: Coord) -> None:
    """CFL-25: exit 0, with the agents, the locks, the waits and the queue; the dashboard shows the same."""
    coord("bob lock a.py b.py")
    coord("bob task add login")
    coord("bob task add logout")
    coord("bob task claim login")
    code, answer, line = coord("ann status")
    assert (code, answer["session"], answer["locks"], answer["stuck"]) == (0, None, 2, [])
    assert [(agent["session_id"], agent["state"]) for agent in answer["agents"]] == [("s-bob", "working")]
    assert answer["queue"] == {"unfinished": 2, "working": 1, "stuck": 0}
    summary = "1 session, 2 locks, 0 waiting, 2 open tasks (1 in work, 0 stuck)"
    assert line == f"You have no session here; {summary}"
    shown = coord("ann dashboard")
    assert (shown.code, shown.answer["agents"], shown.line) == (0, answer["agents"], summary)
    (bob,) = answer["agents"]
    assert bob["current_task"]["ticket"] == "login"
    assert bob["current_task"]["started_at"].endswith("Z")


def test_the_end_that_a_session_reports_is_told(coord: Coord) -> None:
    """STA-21: `update --status completed` says what it released and returned."""
    coord("ann lock a.py")
    coord("ann task add login")
    coord("ann task claim login")
    code, answer, line = coord("ann update --status completed")
    assert (code, line) == (0, "Updated s-ann; released file:a.py; returned login")
    assert (answer["session"]["released"], answer["session"]["returned"]) == (["file:a.py"], ["login"])
    assert coord("bob check a.py").code == 0
    terminal = Terminal("-m", "coord.transports.cli.main", "dashboard")
    assert terminal.exit_code() == 0
    assert ["ann", "completed", "(none)"] in [line.split()[:3] for line in terminal.shown.splitlines()]


def test_ending_a_lead_names_those_that_ended_with_it(coord: Coord) -> None:
    """SUP-9: and the child is told by its next command."""
    coord("ann register")
    coord("kid --parent s-ann lock a.py")
    assert coord("ann dereg").line == "Ended s-ann; with it s-kid"
    refused = coord("kid --parent s-ann lock b.py")
    assert refused.code == 1
    assert "its lead s-ann has ended" in refused.line


def test_replacing_a_live_session_needs_force_and_a_reason(coord: Coord) -> None:
    coord("bob lock a.py")
    refused = coord("ann register --replaces s-bob")
    assert refused.code == 1
    assert "coord register --replaces s-bob --force --reason" in refused.line
    assert coord("ann register --replaces s-bob --force").code == 2
    assert coord("ann register --replaces s-bob --force --reason", "it hangs").answer["moved_locks"] == 1


def test_peers_of_other_repositories_are_listed_apart(coord: Coord, tmp_path: Path) -> None:
    """SES-14: never as if they were here; each names its repository."""
    elsewhere = tmp_path / "elsewhere"
    made_repository(elsewhere)
    coord("ann register")
    before = os.getcwd()
    os.chdir(elsewhere)
    try:
        coord("cid register")
    finally:
        os.chdir(before)
    coord("bob register")
    code, answer, line = coord("ann peers")
    assert code == 0
    assert [peer["session_id"] for peer in answer["peers"]] == ["s-bob"]
    assert [(peer["session_id"], peer["repository"]) for peer in answer["elsewhere"]] == [
        ("s-cid", str(elsewhere))
    ]
    assert line == "1 other session: bob (live); in other repositories: cid (live)"


def test_outside_of_a_repository_no_session_of_one_is_shown(coord: Coord, tmp_path: Path) -> None:
    """The user's store knows that it exists; its status is shown in its repository only."""
    coord("ann register")
    outside = tmp_path / "outside"
    outside.mkdir()
    before = os.getcwd()
    os.chdir(outside)
    try:
        code, answer, _ = coord("ann status")
        peers = coord("bob peers").answer
    finally:
        os.chdir(before)
    assert (code, answer["session"], answer["agents"]) == (0, None, [])
    assert (peers["peers"], [peer["session_id"] for peer in peers["elsewhere"]]) == ([], ["s-ann"])


def test_dereg_releases_everything(coord: Coord) -> None:
    """SES-16, LCK-68, SUP-11: the session is gone and its locks are free; `deregister` is the same."""
    coord("ann lock a.py")
    code, answer, line = coord("ann deregister")
    assert (code, answer["released"]) == (0, ["file:a.py"])
    assert line == "Ended s-ann; released file:a.py"
    assert coord("bob check a.py").code == 0


def test_init_prepares_the_store_and_names_it(coord: Coord, repository: Path) -> None:
    """DESIGN §5: the store lies in the git directory and is pinned; another url is refused later (2)."""
    code, answer, _ = coord("ann init")
    assert code == 0
    assert answer["url"] == f"sqlite://{repository}/.git/coord/store/coord.db"
    assert (repository / ".git/coord/store/coord.db").exists()
    assert coord("ann init").answer["store_id"] == answer["store_id"]
    assert coord("ann init --url", f"file://{repository}/elsewhere").code == 2


def test_a_vanished_store_is_corrupt_and_begins_anew_only_when_asked(coord: Coord, repository: Path) -> None:
    """DESIGN §5: a pinned store that is missing is 70; `init --new-store` starts the next epoch."""
    before = coord("ann init").answer
    for file in (repository / ".git/coord/store").glob("coord.db*"):
        file.unlink()
    assert coord("ann lock a.py").code == 70
    after = coord("ann init --new-store").answer
    assert after["epoch"] == before["epoch"] + 1
    assert after["store_id"] != before["store_id"]
    assert coord("ann lock a.py").code == 0


def test_completion_offers_what_is_held(coord: Coord, capfd) -> None:
    """Issue 3, part 4: held locks are completed from the store, as people type them."""
    coord("ann lock src/app.py main-push")
    assert main(["completion", "words", "--", "steal", ""]) == 0
    assert capfd.readouterr().out.split() == ["main-push", "src/app.py"]
    assert main(["--session", "s-ann", "completion", "words", "--", "unlock", ""]) == 0
    assert sorted(capfd.readouterr().out.split()) == ["main-push", "src/app.py"]


def test_a_damaged_pin_is_restored_from_its_copy(coord: Coord, repository: Path) -> None:
    """The store is intact, so no lock is lost; nothing but the pin is replaced."""
    coord("ann lock a.py")
    pin = repository / ".git/coord/coord.id"
    for words in ("doctor --fix", "init --new-store"):
        pin.write_text("garbage")
        said = coord("ann locks")
        assert (said.code, said.answer["error"]["hint"]) == (
            70,
            "coord doctor --fix restores it from its copy",
        )
        coord(f"ann {words}")
        assert [lock["resource"] for lock in coord("ann locks").answer["locks"]] == ["file:a.py"], words


def test_a_pin_without_a_copy_gets_a_new_store(coord: Coord, repository: Path) -> None:
    """What was in the store is kept beside it; the new one is of a later epoch, and works at once."""
    coord("ann lock a.py")
    for epoch in (1, 2):
        for folder in (".git", ".git/coord"):
            (repository / folder / "coord.id").write_text("garbage")
        assert coord("ann doctor --fix").code == 70
        assert coord("ann locks").answer["error"]["hint"] == "coord init --new-store"
        assert coord("ann init --new-store").answer["epoch"] == epoch
        assert coord("ann locks").answer["locks"] == []
        assert coord("ann lock a.py").code == 0
    assert len(list((repository / ".git/coord/store").glob("coord.db.damaged-*"))) >= 2


def test_a_damaged_pin_of_the_user_gets_a_new_store(
    coord: Coord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of repositories the next step works, too."""
    monkeypatch.chdir(tmp_path)
    coord("ann lock name:x")
    (tmp_path / "state/coord/coord.id").write_text("garbage")
    assert coord("ann locks").answer["error"]["hint"] == "coord init --new-store"
    assert coord("ann init --new-store").code == 0
    assert coord("ann lock name:x").code == 0
