"""What Tab offers: from the table, and from what is held at that moment."""

import os
import subprocess
import sys

import pytest

from coord.core.errors import Unavailable
from coord.transports.cli.commands.registry import all_commands
from coord.transports.cli.completion import SCRIPTS, candidates, quietly

KNOWN = {"held": ["file:src/app.py", "name:main-push", "project:shop"], "peers": ["s-otto", "s-rem"]}


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


def test_bash_completes_through_the_script(tmp_path) -> None:
    """The script works in a real bash, with `coord` as any other command on the path."""
    (tmp_path / "coord").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m coord.transports.cli.main "$@"\n')
    (tmp_path / "coord").chmod(0o755)
    script = 'eval "$(coord completion bash)"; COMP_WORDS=(coord heart); COMP_CWORD=1; _coord'
    done = subprocess.run(
        ["bash", "-c", f'{script}; echo "${{COMPREPLY[*]}}"'],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "heartbeat\n"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_shell_asks_coord_itself(shell: str) -> None:
    """A script holds no list of its own, so it cannot grow old."""
    assert "coord completion words --" in SCRIPTS[shell]
    assert not any(
        f" {command.name} " in SCRIPTS[shell] for command in all_commands() if command.name != "completion"
    )
