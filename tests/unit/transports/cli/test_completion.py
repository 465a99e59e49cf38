"""What Tab offers: from the table, and from what is held at that moment."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from coord.core.errors import Unavailable
from coord.transports.cli.commands.registry import all_commands
from coord.transports.cli.completion import SCRIPTS, candidates, quietly
from coord.transports.cli.main import main
from tests.support.cli import Coord
from tests.support.shells import installed_shell
from tests.support.terminals import Terminal

KNOWN = {
    "own": ["file:src/app.py", "name:main-push", "project:shop"],
    "held": ["file:src/app.py", "file:lib/theirs.py"],
    "recipients": ["s-otto", "s-rem"],
    "tasks": ["A-001-one", "A-002-two"],
    "claimed": ["A-001-one"],
    "agents": ["otto"],
    "projects": ["shop"],
}


def ask(what: str) -> list[str]:
    return KNOWN[what]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["lo"], ["lock", "locks", "log"]),
        (["--json", "lo"], ["lock", "locks", "log"]),
        (["--agent", "otto", "unl"], ["unlock"]),
        (["lock", "x", "--no"], ["--no-wait"]),
        (["lock", "--mode", ""], ["read", "write", "exclusive"]),
        (["lock", "--mode", "w"], ["write"]),
        (["lock", "main"], ["main-branch", "main-push"]),
        (["lock", ""], []),
        (["lock", "--ttl", ""], []),
        (["unlock", ""], ["src/app.py", "main-push", "project:shop"]),
        (["unlock", "src/app.py", "m"], ["main-push"]),
        (["steal", ""], ["src/app.py", "lib/theirs.py"]),
        (["check", "l"], ["lib/theirs.py"]),
        (["task", "show", "A-0"], ["A-001-one", "A-002-two"]),
        (["task", "submit", ""], ["A-001-one"]),
        (["task", "add", "x", "--depends-on", "A-001-one,A-002"], ["A-001-one,A-002-two"]),
        (["lock", "--mode=w"], ["--mode=write"]),
        (["lock", "--mode", "=", "w"], ["write"]),
        (["lock", "--mode", "="], ["read", "write", "exclusive"]),
        (["locks", "-o", ""], ["table", "json", "wide"]),
        (["--agent", ""], ["otto"]),
        (["project-lock", "s"], ["shop"]),
        (["send", "s-"], ["s-otto", "s-rem"]),
        (["send", "s-otto", "em"], ["emergency"]),
        (["send", "s-otto", "warn", "x"], []),
        (["guard", "x", "--", "l"], []),
        (["steal", "a", "b"], []),
        (["help", "unl"], ["unlock"]),
        (["qqq", "lo"], ["lock", "locks", "log"]),
    ],
)
def test_tab_offers_what_may_follow(typed: list[str], offered: list[str]) -> None:
    """Issue 3, part 4: commands, flags, their values, held locks and peers."""
    assert candidates(typed, ask) == offered


def test_a_flag_is_offered_once() -> None:
    """What was given is not offered again; the flags of every command are among the rest."""
    offered = candidates(["lock", "--ttl", "5m", "--"], ask)
    assert "--ttl" not in offered
    assert {"--reason", "--session", "--help"} <= set(offered)


def test_a_store_that_cannot_say_offers_nothing() -> None:
    """Whoever presses Tab wants no error."""

    def fails(_what: str) -> list[str]:
        raise Unavailable("no store")

    assert candidates(["unlock", ""], quietly(fails)) == []


@pytest.fixture
def on_path(tmp_path_factory, monkeypatch) -> None:
    """`coord` is a command as any other on the path."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "coord").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m coord.transports.cli.main "$@"\n')
    (folder / "coord").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("COORD_SESSION_ID", "s-ann")


@pytest.fixture
def held(coord: Coord, on_path: None) -> None:
    """Locks of ann and bob, and a task that bob has claimed."""
    coord("ann lock src/mine.py")
    coord("bob lock src/theirs.py")
    coord("bob task add A-001-login")
    coord("bob task claim A-001-login")


REAL = [
    ("heart", "heartbeat"),
    ("lock x --no", "--no-wait"),
    ("lock --mode w", "write"),
    ("unlock src/", "src/mine.py"),
    ("steal src/t", "src/theirs.py"),
    ("task show A", "A-001-login"),
    ("send s-b", "s-bob"),
]
"""What is typed after `coord`, and what Tab makes of the last word; the others offer nothing else."""


def test_bash_completes_through_the_script(held: None) -> None:
    """The script works in a real bash."""
    lines = ['eval "$(coord completion bash)"']
    for typed, _ in REAL:
        words = typed.split(" ")
        lines.append(
            f"COMP_WORDS=(coord {' '.join(words)}); COMP_CWORD={len(words)}; _coord; echo ${{COMPREPLY[*]}}"
        )
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [word for _, word in REAL]


def test_fish_completes_through_the_script(held: None) -> None:
    """The script works in a real fish; where coord has no word, fish completes files."""
    asked = "\n".join(f'complete -C "coord {typed}"' for typed, _ in REAL)
    script = f'coord completion fish | source\n{asked}\ntouch a-file\ncomplete -C "coord plan load a-f"'
    done = subprocess.run(
        [installed_shell("fish"), "--no-config", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [*(word for _, word in REAL), "a-file"]


def test_zsh_completes_through_the_script(held: None) -> None:
    """The script works in a real zsh: a person types, presses Tab, and sees the word."""
    terminal = Terminal("-c", f"import os; os.execv({installed_shell('zsh')!r}, ['zsh', '-f'])", columns=200)
    terminal.type('autoload -U compinit; compinit -D; eval "$(coord completion zsh)"; echo set-$((1+1))\n')
    terminal.wait_for("set-2")
    for typed, word in REAL:
        terminal.shown = ""
        terminal.type(f"coord {typed}\t")
        line = f"coord {' '.join([*typed.split(' ')[:-1], word])}"
        terminal.wait_until(functools.partial(shows, line), line)
        assert line in plain(terminal.shown)
        terminal.type("\x15")  # empties the line
    terminal.type("exit\n")
    terminal.exit_code()


def shows(line: str, shown: str) -> bool:
    return line in plain(shown)


def plain(shown: str) -> str:
    """Return what a terminal shows in the end: without control sequences and characters taken back."""
    text = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", shown)
    while "\b" in text:
        text = re.sub("[^\b]?\b", "", text, count=1)
    return text


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ack", "message"),
        ("group join", "reviewers"),
        ("delegation done", "delegation"),
        ("token revoke", "token"),
        ("token create --role", "report view operate admin"),
        ("task claim", "A-001-login"),
        ("task submit", "A-001-login"),
        ("task list --track", "A"),
        ("agent disable", "ann"),
        ("project-lock", "shop"),
        ("send", "s-ann ann"),
        ("dereg", "s-ann"),
    ],
)
def test_completion_offers_what_the_store_knows(coord: Coord, capfd, typed: str, offered: str) -> None:
    """Each kind of word that a command completes is read from the store."""
    coord("ann task add A-001-login")
    coord("ann task claim A-001-login")
    coord("ann group create reviewers")
    coord("bob register")
    ids = {
        "message": coord("ann send s-bob warn x").answer["id"],
        "delegation": coord("ann delegation add s-ann x").answer["delegation"]["id"],
        "token": coord("ann token create --role view --session s-ann").answer["id"],
    }
    assert main(["--session", "s-bob", "completion", "words", "--", *typed.split(), ""]) == 0
    assert capfd.readouterr().out.split() == ids.get(offered, offered).split()


def test_tab_creates_no_store(repository: Path, on_path: None) -> None:
    """In a repository without coord, Tab offers nothing and leaves nothing behind."""
    done = subprocess.run(
        ["coord", "completion", "words", "--", "unlock", ""], capture_output=True, check=True
    )
    assert done.stdout == b""
    assert not (repository / ".git/coord").exists()


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_shell_asks_coord_itself(shell: str) -> None:
    """A script holds no list of its own, so it cannot grow old."""
    assert "coord completion words --" in SCRIPTS[shell]
    assert not any(
        f" {command.name} " in SCRIPTS[shell] for command in all_commands() if command.name != "completion"
    )
