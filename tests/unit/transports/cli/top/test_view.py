"""The view of `coord top`: rows, keys, filter, details and actions, without a terminal."""

import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coord.sdk.client.client import connect
from coord.transports.cli.table import cells_wide
from coord.transports.cli.top.keys import Key
from tests.support.cli import Coord, started
from tests.unit.transports.cli.top.conftest import Driver

Drive = Callable[[str], Driver]
NASTY = "\x1b]0;owned\x07 \u202eevil\x9b31m"


@pytest.fixture
def busy(coord: Coord) -> Coord:
    """Ann holds a lock and has a message; bob works on a task; cid's task failed."""
    coord("ann lock src/app.py --reason", "rework the login")
    coord("bob lock src/b.py")
    coord("bob task add A-001-login --files src/login.py --priority 5 --description", "Add a login form")
    coord("bob task add A-002-tests --depends-on A-001-login")
    coord("bob task claim A-001-login")
    coord("cid task add C-001-bad")
    coord("cid task claim C-001-bad")
    coord("cid task fail C-001-bad 1 --final --note", "the server is down")
    coord("bob send s-ann request", "please review", "--body", "line one\nline two")
    return coord


def test_everything_is_there_at_a_glance(busy: Coord, drive: Drive) -> None:
    """What needs a person, agents, locks, the queue and the last events."""
    shown = drive("ann").shown()
    for text in (
        'from s-bob: "please review"',
        'C-001-bad: "the server is down"',
        "ann (you)",
        "Add a login form (A-001-login)",
        "file:src/app.py",
        "rework the login",
        "A-002-tests",
        "message.sent",
        "coord top: shop · 3 live of 3 sessions · 3 locks · 3 open tasks (1 in work) · you are s-ann",
    ):
        assert text in shown
    queue = shown[shown.index("QUEUE") : shown.index("LAST EVENTS")]
    assert queue.index("A-001-login") < queue.index("A-002-tests")


def test_keys_select_rows_and_sections(busy: Coord, drive: Drive) -> None:
    view = drive("ann")
    assert "please review" in view.selected
    view.press("j")
    assert "the server is down" in view.selected
    view.press("tab")
    assert view.selected.startswith("ann (you)")
    view.press("down", "k", "up")
    assert "the server is down" in view.selected
    view.press("G")
    assert "session.registered" in view.selected
    view.press("g")
    assert "please review" in view.selected
    view.press(":", "lo", "enter")
    assert view.selected.startswith("file:src/app.py")
    assert "no section xyz" in view.press(":", "xyz", "enter")


def test_the_selected_row_stays_selected(busy: Coord, drive: Drive) -> None:
    """Rows that come and go above it do not move the mark to another lock."""
    view = drive("ann")
    view.press(":", "locks", "enter", "j")
    assert view.selected.startswith("file:src/b.py")
    busy("cid lock a.py")
    view.read()
    assert view.selected.startswith("file:src/b.py")
    busy("bob unlock src/b.py")
    view.read()
    assert view.selected.startswith("file:src/login.py")


def test_a_filter_shows_only_rows_with_its_words(busy: Coord, drive: Drive) -> None:
    """Upper and lower case do not matter; all words must be there; escape shows all again."""
    view = drive("ann")
    shown = view.press("/", "LOGIN 00", "enter")
    assert "A-001-login" in shown
    assert "file:src/b.py" not in shown
    assert "LOCKS (1 of 3, filtered)" in shown
    assert "/LOGIN 00" in shown
    assert "file:src/b.py" in view.press("escape")
    view.press("/", "nothing like this", "enter")
    assert view.press("enter", "r", "s", "m", "j", "tab", "G"), "without a row, keys do nothing"


def test_keys_that_come_together_act_on_the_rows_they_mean(busy: Coord, drive: Drive) -> None:
    """A slow line may deliver the filter, the jump and the action at once, without a frame in between."""
    view = drive("ann")
    for key in (*"/login.py", "enter", *":locks", "enter", "s"):
        view.view.press(Key(key, key if len(key) == 1 else ""))
    assert "steal file:src/login.py from s-bob; reason: _" in view.shown()


def test_q_quits_but_not_while_somebody_types(busy: Coord, drive: Drive) -> None:
    view = drive("ann")
    view.press("/", "q", "escape", "?", "escape")
    assert not view.ended
    view.press("enter", "q")
    assert view.ended


def test_help_scrolls_on_a_low_terminal(busy: Coord, drive: Drive) -> None:
    """Keys that move scroll it, any other one closes it; long details scroll to their end, too."""
    view = drive("ann")
    view.size = (80, 8)
    assert "q            quit" not in view.press("?")
    assert "before it runs" in view.press("G")
    assert "NEEDS YOU" in view.press("x")
    shown = view.press("enter", "G")
    assert "coord send s-bob reply" in shown
    assert "MESSAGE" not in shown


def test_a_message_is_opened_answered_and_acknowledged(busy: Coord, drive: Drive) -> None:
    view = drive("ann")
    shown = view.press("enter")
    assert "> line one\n> line two" in shown
    assert "coord ack " in shown
    assert "coord send s-bob reply 'I will' --reply-to " in view.press("m", "I will", "enter")
    (answer,) = busy("bob recv").answer["messages"]
    assert (answer["subject"], answer["kind"]) == ("I will", "reply")
    assert "True coord ack " in view.press("a")
    assert busy("ann recv").answer["messages"] == []


def test_an_own_lock_is_released_if_the_user_agrees(busy: Coord, drive: Drive) -> None:
    view = drive("ann")
    shown = view.press(":", "locks", "enter", "r")
    assert "$ coord unlock file:src/app.py --fence " in shown
    assert "nothing was done" in view.press("n")
    assert len(busy("ann locks --owner s-ann").answer["locks"]) == 1
    assert "Lock released ✓ file:src/app.py" in view.press("r", "y")
    assert busy("ann locks --owner s-ann").answer["locks"] == []


def test_a_foreign_lock_is_stolen_for_a_reason_and_with_consent(busy: Coord, drive: Drive) -> None:
    """No reason, no consent: nothing happens. The reason is recorded, and the holder is told."""
    view = drive("ann")
    view.press(":", "locks", "enter", "j")
    assert "the reason is empty" in view.press("s", "enter")
    assert "the reason is empty" in view.press("s", "   ", "enter")
    shown = view.press("s", "it's mine; rm -rf /", "enter")
    assert """$ coord steal file:src/b.py --force --reason 'it'"'"'s mine; rm -rf /'""" in shown
    assert "nothing was done" in view.press("enter")
    view.press("s", "it's mine", "escape")
    assert {each["owner"] for each in busy("ann locks").answer["locks"]} == {"s-ann", "s-bob"}
    assert "True coord steal file:src/b.py" in view.press("s", "it's mine", "enter", "y")
    (taken,) = [each for each in busy("ann locks").answer["locks"] if each["resource"] == "file:src/b.py"]
    assert (taken["owner"], taken["reason"]) == ("s-ann", "it's mine")
    (told,) = busy("bob recv").answer["messages"]
    assert told["subject"] == '[System] s-ann took your lock on file:src/b.py: by force: "it\'s mine"'


def test_a_foreign_lock_is_freed_for_a_reason(busy: Coord, drive: Drive) -> None:
    view = drive("ann")
    view.press(":", "locks", "enter", "j")
    shown = view.press("r", "he left", "enter", "y")
    assert "True coord steal file:src/b.py --force --reason 'he left' --fence " in shown
    assert " && coord unlock file:src/b.py" in shown.replace("\n", " ")
    assert busy("bob check src/b.py").code == 0


def test_tasks_are_stolen_put_back_and_retried(busy: Coord, drive: Drive) -> None:
    view = drive("ann")
    view.press(":", "queue", "enter")
    assert "True coord task claim A-001-login --force --reason 'he left'" in view.press(
        "s", "he left", "enter", "y"
    )
    assert busy("ann task show A-001-login").answer["task"]["session_id"] == "s-ann"
    assert "True coord task release A-001-login 2" in view.press("r", "y")
    busy("bob task claim A-001-login")
    view.read()
    assert "True coord task reset A-001-login --reason stuck" in view.press("r", "stuck", "enter", "y")
    assert busy("ann task show A-001-login").answer["task"]["state"] == "ready"
    view.press("g", "j")
    assert "True coord task retry C-001-bad" in view.press("t", "y")
    assert busy("ann task show C-001-bad").answer["task"]["state"] == "ready"


def test_what_a_key_cannot_do_here_is_said(busy: Coord, drive: Drive) -> None:
    view = drive("ann")
    view.press("tab")
    assert "select one" in view.press("r")
    assert "select one" in view.press("s")
    assert "this row is yours" in view.press("m")
    assert "select one" in view.press("a")
    assert "select one" in view.press("t")


def test_a_refusal_is_shown(busy: Coord, drive: Drive) -> None:
    """The rules decide, as for every command."""
    view = drive("ann")
    view.press("tab", "j")
    shown = view.press("m", "x" * 400, "enter")
    assert shown.count("False coord send s-bob request") == 1
    assert "characters" in shown


def test_a_lock_says_why_it_is_still_held(busy: Coord, drive: Drive) -> None:
    """The chain of holders to its end: bob's lock, because bob waits for ann, who waits for nothing."""
    waiters = [started("bob", "lock", "src/app.py", "--wait", "60s")]
    waiters.append(started("cid", "lock", "src/b.py", "--wait", "60s"))
    try:
        while len(busy("ann waits").answer["waits"]) < 2:
            assert all(waiter.poll() is None for waiter in waiters), "one ended without waiting"
        view = drive("ann")
        shown = view.press(":", "locks", "enter", "j", "enter")
    finally:
        for waiter in waiters:
            waiter.terminate()
            waiter.communicate()
    assert "1. s-cid" in shown
    chain = shown[shown.index("WHAT DOES s-bob WAIT FOR?") :].splitlines()
    assert chain[1].startswith("   s-bob waits for src/app.py, position 1")
    assert chain[2] == "      behind s-ann: lock file:src/app.py"
    assert chain[3].startswith("         s-ann waits for nothing: idle, live, heartbeat ")
    assert "coord steal file:src/b.py --force --reason '…'" in shown


def test_a_task_says_why_it_waits(busy: Coord, drive: Drive) -> None:
    """For another task and who works on it; for the holder of a file; or for an agent."""
    busy("bob task add D-001-app --files src/app.py")
    busy("bob task add E-001-free")
    view = drive("eve")
    view.press(":", "queue", "enter")
    shown = {}
    for _ in range(4):
        name = view.selected.split()[0]
        shown[name] = view.press("enter")
        view.press("escape", "j")
    assert "for task A-001-login: in_progress, by bob (s-bob)" in shown["A-002-tests"]
    assert "for the lock on file:src/app.py of ann (s-ann)" in shown["D-001-app"]
    assert "for the next agent that may take it" in shown["E-001-free"]
    assert "s-bob waits for nothing: working" in shown["A-001-login"]


def test_details_follow_what_happens(busy: Coord, drive: Drive) -> None:
    view = drive("ann")
    view.press(":", "locks", "enter", "j", "enter")
    busy("bob unlock src/b.py")
    view.read()
    assert "lock " in view.shown()
    assert "has ended" in view.shown()
    assert "has ended" in view.press("s")
    busy("cid lock src/b.py")
    view.read()
    assert "holder      cid (s-cid), live" in view.shown()


def test_commands_are_right_in_a_folder(busy: Coord, drive: Drive, repository: Path, monkeypatch) -> None:
    """The store names files from the top of the repository; a command names them from where it runs."""
    (repository / "src").mkdir()
    monkeypatch.chdir(repository / "src")
    view = drive("ann")
    assert "$ coord unlock file:app.py --fence " in view.press(":", "locks", "enter", "r")
    assert "Lock released ✓ file:src/app.py" in view.press("y")


def test_odd_names_reach_the_command_as_they_are(coord: Coord, drive: Drive) -> None:
    """Wildcards, spaces, quotes and dashes in names."""
    names = ["a b.py", "'quoted'.py", "$(touch x).py", "-rf", "日本語.py", "app/[id]/page.tsx", "x\\y.py"]
    for name in names:
        assert coord("ann lock --literal", f"file:{name}").code == 0
    view = drive("ann")
    for _ in names:
        assert "Lock released ✓" in view.press(":", "locks", "enter", "r", "y")
    assert coord("ann locks").answer["locks"] == []


def test_it_fits_every_size(busy: Coord, drive: Drive) -> None:
    """As many lines as the terminal has, none too wide, and the selected row in sight, opened or not."""
    busy("eve lock", "docs/日本語/設計ドキュメント.md", "--reason", "全角文字 in a reason")
    view = drive("ann")
    sizes = [(columns, height) for columns in (20, 21, 40, 80, 200) for height in (5, 6, 12, 60)]
    sizes += [(1, 1), (2, 2), (19, 40), (80, 4), (1, 40)]
    for keys in (
        (),
        ("enter",),
        ("escape", "?"),
        ("escape", "s"),
        ("G",),
        ("k", "m", "日" * 60),
        ("escape",),
    ):
        view.press(*keys)
        for columns, height in sizes:
            for colours in (False, True):
                lines = [
                    re.sub(r"\x1b\[\d*m", "", each) for each in view.lines(columns, height, colours=colours)
                ]
                assert len(lines) == height
                assert max(map(cells_wide, lines)) <= columns
    for columns, height in sizes[:20]:
        assert any(line.startswith("> ") for line in view.lines(columns, height))
    assert "too sm" in view.lines(19, 40)[0]


def test_without_colours_the_selected_row_has_a_mark(busy: Coord, drive: Drive) -> None:
    """NO_COLOR: no attribute is needed to see which row it is."""
    view = drive("ann")
    assert "\x1b" not in view.shown()
    coloured = "\n".join(view.lines(colours=True))
    assert "\x1b[7m> request" in coloured


def test_hostile_texts_command_nothing(coord: Coord, drive: Drive) -> None:
    """Subjects, reasons, descriptions, notes and details of others are escaped wherever they are shown."""
    coord("ann register")
    coord("bob task add A-001-x --description", NASTY)
    coord("bob task claim A-001-x")
    coord("bob task fail A-001-x 1 --final --note", NASTY.replace("\x1b", "").replace("\x07", ""))
    coord("bob send s-ann request", "\u202ehi", "--body", NASTY + "\nNext: run coord steal")
    coord("bob lock a.py --reason", "\u202ereason \u200b")
    view = drive("ann")
    view.view.problem = view.view.note = NASTY  # what a server or an action says
    assert "\x1b" not in view.shown()
    assert "\u202e" not in view.shown()
    view.read()
    for _ in range(12):
        for shown in (
            view.shown(200),
            view.press("enter"),
            view.press("escape", "m", "x"),
            view.press("escape"),
        ):
            bad = {each for each in shown if unicodedata.category(each) in ("Cc", "Cf")} - {"\n"}
            assert not bad
        view.press("j")


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "j",
                "k",
                "G",
                "g",
                "tab",
                "enter",
                "escape",
                "/",
                ":",
                "o",
                "?",
                "s",
                "r",
                "m",
                "l",
                "backspace",
                "clear",
                "page down",
                "page up",
                "end",
                "x",
                "t",
                "a",
            ]
        ),
        max_size=30,
    )
)
def test_no_sequence_of_keys_breaks_it(busy: Coord, drive: Drive, keys: list[str]) -> None:
    """Without a y, nothing is stolen or released either."""
    view = Driver(drive("ann").client)
    for name in keys:
        view.view.press(Key(name, name if len(name) == 1 else ""))
        assert len(view.lines(60, 12)) == 12
    assert len(busy("ann locks").answer["locks"]) == 3


def test_a_question_is_answered_where_it_is_seen(coord: Coord) -> None:
    """A person reads it whole, and m sends the answer; no text of the agent controls the screen."""
    coord("ann ask", f"Which port? {NASTY}", "--options", "80,8080")
    coord("ann agent disable otto --reason broken")
    with connect(environ={"HOME": os.environ["HOME"], "USER": "ida"}) as client:
        view = Driver(client)
        shown = view.shown()
        assert 'ann: "Which port?' in shown
        assert "m answers it" in shown
        assert "\x1b" not in shown
        assert "otto" in shown
        view.press("enter")
        assert "ASK q1" in view.shown()
        assert "80, 8080" in view.shown()
        assert "coord decide q1 " in view.shown()
        view.press("escape", "m", "8080", "enter")
        view.read()
        assert "m answers it" not in view.shown()
    assert coord("ann recv").answer["messages"][0]["blob"]["answer"] == "8080"
