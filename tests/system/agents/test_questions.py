"""The real Claude Code asks for permissions: its dialog is a question, and a person answers either one."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coord.host.consent import confirm, read_consented
from coord.host.repository import find_repository
from tests.support.agents import drive
from tests.support.agents.model_api import Model, serving
from tests.support.agents.prepared import client_of, environ_of, prepared
from tests.support.agents.prepared import coord as run_coord
from tests.support.agents.programs import command_of
from tests.support.agents.script import Say, Shell, play_of
from tests.support.agents.sessions import Place
from tests.support.terminals import Terminal

DIALOG = "proceed?"
EXEC = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    if command_of("claude") is None:
        pytest.skip("the coding agents are not installed (tools/setup agents)")
    return prepared(tmp_path, "claude")


def let_hooks_wait(place: Place) -> None:
    (place.repository / "coord.toml").write_text('[hooks]\npermission_wait = "60s"\n')
    confirm(read_consented(find_repository(str(place.repository)), environ_of(place)))


def outside(place: Place) -> Path:
    """A file outside of the repository: Claude Code asks before a command writes it."""
    return place.home.parent / "outside.txt"


def first_question(place: Place, *, closed: bool = False) -> Any:
    """Wait for a question, or for the end of it."""
    with client_of(place, "watcher") as watcher:
        log = watcher.log
        while True:
            found = watcher.questions(closed=True).questions
            if found and (found[0].state == "open") != closed:
                return found[0]
            assert log.wait(log.seen.offset, drive.DEADLINE_S), "nothing happened"


@pytest.mark.parametrize(("answer", "made"), [("allow", True), ("deny", False)])
def test_a_run_without_a_terminal_gets_the_answer(
    place: Place, monkeypatch: pytest.MonkeyPatch, answer: str, made: bool
) -> None:
    """`coord decide` decides while the hook waits; a denial reaches the model."""
    let_hooks_wait(place)
    words = ["default" if word == "bypassPermissions" else word for word in drive.CLAUDE_ARGUMENTS]
    monkeypatch.setattr(drive, "CLAUDE_ARGUMENTS", tuple(words))

    def decide() -> None:
        question = first_question(place)
        run_coord(place, "decide", question.id, answer, "--reason", "because I say so")

    thread = threading.Thread(target=decide)
    thread.start()
    outcome = place.run("claude", (Shell(f"touch {outside(place)}"), Say("done")), hooks=None)
    thread.join()
    assert outside(place).exists() is made
    shown = "".join(map(str, outcome.model.results()))
    assert ("a person denied this" in shown) is not made


@contextmanager
def on_a_terminal(place: Place) -> Iterator[Terminal]:
    """Claude Code as a person starts it, with a model that asks for one command."""
    program = command_of("claude")
    assert program is not None
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": ["sk-none"], "rejected": []},
        "projects": {str(place.repository): {"hasTrustDialogAccepted": True}},
    }
    (place.home / ".claude.json").write_text(json.dumps(known))
    script = (Shell(f"touch {outside(place)}"), Say("done"))
    with serving(Model(play_of("claude", script, place.repository))) as address:
        _, needs = drive.PREPARE["claude"](place.home, place.repository, address)
        environ = {**environ_of(place), "LANG": "C.UTF-8", "TERM": "xterm-256color", **needs}
        words = (*program, "--model", "claude-sonnet-4-5", drive.PROMPT)
        terminal = Terminal("-c", EXEC, *words, env=environ, cwd=str(place.repository), columns=150, lines=50)
        try:
            terminal.wait_until(lambda shown: DIALOG in shown.replace("\x1b[1C", " "), "the dialog")
            yield terminal
        finally:
            os.kill(terminal.pid, 9)
            terminal.exit_code()


def test_the_dialog_of_a_user_is_listed_and_withdrawn(place: Place) -> None:
    """The hook does not wait: the user answers the dialog, the tool goes on, and the question is gone."""
    with on_a_terminal(place) as terminal:
        question = first_question(place)
        assert (question.kind, question.text) == ("permission", f"Bash: touch {outside(place)}")
        terminal.type("1")
        closed = first_question(place, closed=True)
        assert (closed.state, closed.end_reason) == ("withdrawn", "its tool went on")
    assert outside(place).exists()


def test_an_answer_from_elsewhere_closes_the_dialog(place: Place) -> None:
    """The dialog stays usable while the hook waits, and takes the answer of `coord decide`."""
    let_hooks_wait(place)
    with on_a_terminal(place) as terminal:
        question = first_question(place)
        run_coord(place, "decide", question.id, "allow")
        terminal.wait_for("done")
    assert outside(place).exists()
