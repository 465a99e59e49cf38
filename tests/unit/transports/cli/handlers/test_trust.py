"""`coord trust`: a person confirms a repository's settings; agents and pipes do not."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from coord.sdk.client.client import connect
from coord.sdk.client.open import initialise
from coord.transports.cli.commands.registry import all_commands
from tests.support.cli import PROGRAM, Coord, Said
from tests.support.terminals import Terminal

NAMED = '[store]\nurl = "sqlite://{0}/other.db"\n'


def test_a_person_confirms_and_withdraws(coord: Coord, repository: Path) -> None:
    """`--yes` confirms, `--revoke` withdraws, and commands obey at once."""
    (repository / "coord.toml").write_text(NAMED.format(repository))
    refused = coord("ann lock a.py")
    assert refused.code == 2
    assert refused.answer["error"]["hint"] == "a person reads it and runs: coord trust"
    assert not (repository / "other.db").exists()
    assert main_as_person("trust").code == 1, "a pipe is no answer"
    assert main_as_person("trust", "--yes").answer["confirmed"] is True
    assert coord("ann lock a.py").code == 0
    assert (repository / "other.db").exists()
    assert main_as_person("trust", "--revoke").answer["confirmed"] is False
    assert "not confirmed" in coord("ann locks").line, "the pin names the store, the other settings wait"


@pytest.mark.parametrize("sign", [{"CLAUDECODE": "1"}, {"COORD_SESSION_ID": "s"}, {"CODEX_THREAD_ID": "x"}])
def test_an_agent_cannot_confirm(
    repository: Path, sign: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by `coord trust --yes`, and not by `coord init --yes`."""
    (repository / "coord.toml").write_text('[hooks]\nwrites_without_store = "open"\n')
    for name, value in sign.items():
        monkeypatch.setenv(name, value)
    said = main_as_person("trust", "--yes")
    assert (said.code, "ask the person" in said.answer["error"]["hint"]) == (1, True)
    main_as_person("init", "--yes", "--tools", "claude")
    for name in sign:
        monkeypatch.delenv(name)
    assert main_as_person("trust").code == 1, "still not confirmed"
    assert main_as_person("trust", "--yes").code == 0
    for name, value in sign.items():
        monkeypatch.setenv(name, value)
    assert main_as_person("trust", "--revoke").code == 1
    assert main_as_person("trust").answer["confirmed"] is True


def test_init_asks_at_a_terminal(repository: Path) -> None:
    """The person sees what the file sets, without control characters and passwords, and may refuse."""
    text = '[store]\nurl = "postgresql://me:hunter2@evil.invalid/db"\n[hooks]\nwatched = ["\\u001b[2J"]\n'
    (repository / "coord.toml").write_text(text)
    terminal = Terminal(*PROGRAM[1:], "init", cwd=str(repository))
    terminal.wait_for("Let ")
    assert "evil.invalid" in terminal.shown
    assert "hunter2" not in terminal.shown
    assert "\x1b[2J" not in terminal.shown
    terminal.type("n\n")
    terminal.wait_for("coord trust")
    assert terminal.exit_code() == 2
    assert not (repository / ".git/coord").exists()


@pytest.mark.parametrize("text", ["", "[broken"])
def test_what_cannot_be_confirmed(repository: Path, text: str) -> None:
    """No file, or a broken one: an error with a hint."""
    if text:
        (repository / "coord.toml").write_text(text)
    said = main_as_person("trust", "--yes")
    assert said.code == 2
    assert said.answer["error"]["hint"]


def test_the_flag_obeys_the_pin_as_the_variable_does(
    coord: Coord, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN §5: a second store for one repository is refused, however it is named, also by questions."""
    coord("ann lock a.py")
    other = f"sqlite://{repository}/nowhere/x.db"
    for url in ("memory:", other):
        for words in ("lock a.py", "locks", "task list", "check a.py"):
            said = coord(f"bob {words} --url", url)
            assert (said.code, "two stores" in said.line) == (2, True)
            monkeypatch.setenv("COORD_URL", url)
            assert coord(f"bob {words}").code == 2
            monkeypatch.delenv("COORD_URL")
    assert not (repository / "nowhere").exists()
    same = initialise(str(repository), os.environ).url
    assert coord("bob lock a.py --no-wait --url", same).code == 1, "held by ann, in the one store"


READS = (
    *("peers", "status", "dashboard", "top --once", "check a.py", "locks", "waits", "task list"),
    *("task history X", "task lineage X", "plan show", "agent list", "worktree list", "group list"),
    *("delegation list", "limits show", "recv --peek", "recv", "log tail", "doctor", "token list"),
    *("brief --json", "needs", "decisions", "report", "reactions list", "alerts", "cost", "mirror list"),
)


@pytest.mark.parametrize("words", READS)
def test_a_question_creates_nothing(coord: Coord, repository: Path, words: str) -> None:
    """A store begins with the first change, in the repository and for the user alike."""
    before = sorted(repository.parent.rglob("*"))
    assert coord(f"ann {words}").code == 0
    missing = coord(f"ann {words} --url", f"sqlite://{repository}/nowhere/x.db")
    assert (missing.code, "there is no store at" in missing.line) == (4, True)
    assert sorted(repository.parent.rglob("*")) == before


def test_the_list_of_questions_is_complete(coord: Coord) -> None:
    """Every command that is marked as a question is in the list above, or names something that is missing."""
    asked = {command.name for command in all_commands() if command.reads}
    tried = {name for name in asked for words in READS if words.startswith(name)}
    assert asked - tried == {
        *("session show", "task show", "task result", "route", "group show", "plan check", "metrics"),
        *("telemetry", "why"),
    }
    assert coord("ann task add x").code == 0
    assert not {"lock", "task add", "send", "register"} & asked


def main_as_person(*words: str) -> Said:
    """Run a command as the person of this terminal, without a session."""
    done = subprocess.run(
        [*PROGRAM, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return Said(done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr.strip())


def test_an_agent_that_hides_cannot_confirm(repository: Path) -> None:
    """An agent that clears its variables is still found by its process; a person's shell is not."""
    (repository / "coord.toml").write_text("# settings\n")
    initialise(str(repository), os.environ)
    with connect(session="agent", pid=os.getpid()) as agent:
        agent.register()
    said = main_as_person("trust", "--yes")
    assert (said.code, "ask the person" in said.answer["error"]["hint"]) == (1, True)
    with connect(session="agent", pid=os.getpid()) as agent:
        agent.dereg()
    assert main_as_person("trust", "--yes").code == 0
