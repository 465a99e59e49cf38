"""Session and setup commands from end to end."""

import json
from pathlib import Path

from coord.transports.cli.main import main
from tests.support.cli import Coord


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
    """The session, what it holds, and what it has to read; exit 4 for one that is not there.

    SES-17, CFL-25.
    """
    assert coord("ann status").code == 4
    coord("ann lock a.py")
    coord("bob send s-ann status hello")
    code, answer, line = coord("ann status")
    assert code == 0
    assert answer["session"]["session_id"] == "s-ann"
    assert [lock["resource"] for lock in answer["locks"]] == ["file:a.py"]
    assert answer["messages"] == 1
    assert line == "s-ann: idle, 1 lock, 1 unread message"


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
    assert answer["url"] == f"sqlite://{repository}/.git/coord/coord.db"
    assert (repository / ".git/coord/coord.db").exists()
    assert coord("ann init").answer["store_id"] == answer["store_id"]
    assert coord("ann init --url", f"file://{repository}/elsewhere").code == 2


def test_a_vanished_store_is_corrupt_and_begins_anew_only_when_asked(coord: Coord, repository: Path) -> None:
    """DESIGN §5: a pinned store that is missing is 70; `init --new-store` starts the next epoch."""
    before = coord("ann init").answer
    for file in (repository / ".git/coord").glob("coord.db*"):
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
    assert capfd.readouterr().out.split() == ["src/app.py", "main-push"]
    assert main(["--session", "s-ann", "completion", "words", "--", "unlock", ""]) == 0
    assert sorted(capfd.readouterr().out.split()) == ["main-push", "src/app.py"]
