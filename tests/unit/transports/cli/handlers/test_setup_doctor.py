"""`coord doctor` from end to end: each check in order, with a hint."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from coord.core.followers import SaveFollower
from coord.engine.engine import Engine
from coord.stores.contract import Commit
from coord.stores.open import open_store
from tests.support.cli import Coord, Said
from tests.support.servers.postgres import PostgresServer

CHECKS = ["repository", "pin", "store", "format"]
OF_STORE = ["version", "durability", "disk", "location"]
INSIDE = ["clock", "log", "records", "session", "peers", "locks", "queue", "tasks"]


def found(said: Said, check: str) -> tuple[str, str, str]:
    """The state, message and hint of one check."""
    (finding,) = [each for each in said.answer["checks"] if each["check"] == check]
    return finding["state"], finding["message"], finding["hint"]


def write_ahead(repository: Path, ahead_ms: int) -> None:
    """Write a log entry with a time in the future."""
    with closing(open_store(f"sqlite://{repository}/.git/coord/store/coord.db")) as database:
        log = database.log("local")
        log.load(())
        log.commit(Commit(events=[b'{"event":"test"}'], at=log.now() + ahead_ms, id=b"ahead"))


def test_all_is_well(coord: Coord) -> None:
    """Every check in order, each with its state; exit 0."""
    coord("ann lock a.py")
    said = coord("ann doctor")
    assert (said.code, said.answer["ok"], said.line) == (0, True, "All 16 checks passed")
    assert [each["check"] for each in said.answer["checks"]] == [*CHECKS, *OF_STORE, *INSIDE]
    assert found(said, "durability") == ("ok", "journal_mode is wal, synchronous is full", "")
    assert "s-ann, as --session says, is live" in found(said, "session")[1]
    assert found(said, "locks")[1].startswith("1 held")


def test_a_server_that_may_forget(coord: Coord, postgres_server: PostgresServer) -> None:
    """Issue 6: checks version, durability, connections and clock of a server; a problem is a warning."""
    url = f"{postgres_server.fresh_url()}?options=-csynchronous_commit%3Doff"
    said = coord("ann doctor --url", url)
    assert said.code == 0
    assert found(said, "durability")[0] == "warn"
    assert "synchronous_commit" in found(said, "durability")[2]
    assert found(said, "server clock")[0] == found(said, "connections")[0] == "ok"


def test_looking_makes_no_store(coord: Coord, repository: Path) -> None:
    """In a repository without coord the doctor names the first command, and changes nothing."""
    said = coord("ann doctor")
    assert said.code == 0
    assert (found(said, "pin")[0], found(said, "pin")[2]) == ("warn", "coord init")
    assert not (repository / ".git/coord").exists()


def test_outside_of_a_repository(coord: Coord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a repository only names can be locked; the doctor warns, with a hint."""
    monkeypatch.chdir(tmp_path)
    assert found(coord("ann doctor"), "repository")[::2] == ("warn", "git init")


def test_a_pin_that_disagrees(coord: Coord, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store URL that differs from the pin is bad, and sets the exit code of the error."""
    coord("ann init")
    monkeypatch.setenv("COORD_URL", f"file://{repository}/elsewhere")
    said = coord("ann doctor")
    state, message, hint = found(said, "pin")
    assert (said.code, state, said.answer["error"]["code"]) == (2, "bad", "invalid")
    assert "two stores for one repository" in message
    assert "coord migrate" in hint


def test_a_store_that_vanished(coord: Coord, repository: Path) -> None:
    """A missing pinned store is bad (70), and the doctor skips the later checks."""
    coord("ann init")
    for file in (repository / ".git/coord/store").glob("coord.db*"):
        file.unlink()
    said = coord("ann doctor")
    assert said.code == 70
    assert [each["check"] for each in said.answer["checks"]] == ["repository", "pin", "store"]
    assert "coord init --new-store" in found(said, "store")[2]


def test_a_log_ahead_of_the_clock(coord: Coord, repository: Path) -> None:
    """Writes are refused (69) with a hint; after `--accept-clock` they are accepted."""
    coord("ann lock a.py")
    write_ahead(repository, 3_600_000)
    refused = coord("ann lock b.py")
    assert refused.code == 69
    assert "coord doctor --accept-clock" in refused.answer["error"]["hint"]
    said = coord("ann doctor")
    assert (said.code, found(said, "clock")[0]) == (69, "bad")
    assert "coord doctor --accept-clock" in found(said, "clock")[2]
    assert found(said, "queue")[0] == "ok", "the rest is looked at all the same"
    accepted = coord("ann doctor --accept-clock")
    assert accepted.code == 0
    assert "accepted" in found(accepted, "clock")[1]
    assert coord("ann lock b.py").code == 0


def test_a_clock_that_is_right_is_not_accepted(coord: Coord) -> None:
    """With a correct clock `--accept-clock` writes nothing."""
    coord("ann lock a.py")
    head = coord("ann log tail").answer["head"]
    assert coord("ann doctor --accept-clock").code == 0
    assert coord("ann log tail").answer["head"] == head


def test_what_the_dead_left_behind(coord: Coord) -> None:
    """SES-19: the doctor names a dead session and its lock, with the commands that end them."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    coord(f"bob --pid {child.pid} lock name:main-push")
    child.communicate()
    said = coord("ann doctor")
    assert said.code == 0
    state, message, hint = found(said, "peers")
    assert (state, hint) == ("warn", "coord dereg s-bob")
    assert "s-bob (dead)" in message
    assert found(said, "locks")[::2] == ("warn", "coord steal name:main-push --dead-owner")
    assert found(said, "session")[::2] == ("ok", "")
    assert coord("ann steal name:main-push --dead-owner").code == 0
    bob = coord("bob doctor")
    assert (bob.code, found(bob, "session")[0], found(bob, "session")[2]) == (1, "bad", "coord register")


def test_the_log_is_shown(coord: Coord, repository: Path) -> None:
    """SCH-21: its offsets, age and retention, and the follower that holds entries back."""
    coord("ann lock a.py")
    state, text, hint = found(coord("ann doctor"), "log")
    assert (state, hint) == ("ok", "")
    assert text.startswith("offsets 1 to ")
    assert text.endswith("0 days; keeps 90 days or 1000000 entries")
    assert coord("ann limits set log_retention_entries=1 log_retention_days=0").code == 0
    with closing(open_store(f"sqlite://{repository}/.git/coord/store/coord.db")) as database:
        engine = Engine(database, "local")
        engine.call(SaveFollower("ledger", 1))
        for _ in range(1200):
            database.log("local").commit(Commit(events=[b'{"event":"test"}'], id=b"more"))
    state, text, hint = found(coord("ann doctor"), "log")
    assert (state, "ledger has not read all" in text) == ("warn", True)
    assert hint == "start ledger again, or remove its cursor"
    assert "log entries trimmed" in coord("ann sweep").line


def with_program(folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


def test_an_agent_installed_after_init_is_noticed(
    coord: Coord, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no hooks, so nothing stops its edits: the finding names the command that adds them."""
    tools = tmp_path / "tools"
    with_program(tools, "coord")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    coord("ann init --yes --tools gemini")
    assert not [each for each in coord("ann doctor").answer["checks"] if each["check"] == "claude"]
    with_program(tools, "claude")
    state, text, hint = found(coord("ann doctor"), "claude")
    assert (state, hint) == ("warn", "coord init --tools claude --yes")
    assert "has no coord hooks" in text


def test_a_program_that_agents_cannot_find_is_noticed(
    coord: Coord, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guides of agents name `coord`; without it on the PATH they help nobody."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    coord("ann init --yes --tools gemini")
    state, _, hint = found(coord("ann doctor"), "program")
    assert (state, "PATH" in hint) == ("warn", True)


def test_rules_that_git_ignores_are_noticed(coord: Coord, repository: Path) -> None:
    """A guide that coord made, and into which a person has written since; --fix shows it to git."""
    coord("ann init --yes --tools gemini")
    guide = repository / "GEMINI.md"
    guide.write_text(guide.read_text() + "\nBe kind.\n")
    state, text, hint = found(coord("ann doctor"), "guides")
    assert (state, hint) == ("warn", "coord doctor --fix, then git add GEMINI.md")
    assert text == "git ignores GEMINI.md for coord, but you have written into it"
    coord("ann doctor --fix")
    untracked = subprocess.run(
        ["git", "status", "--porcelain"], cwd=repository, capture_output=True, text=True, check=True
    )
    assert "?? GEMINI.md" in untracked.stdout


@pytest.mark.parametrize(("name", "wrong"), [("", "bad"), (".git", "warn"), (".git/coord/store", "bad")])
def test_a_folder_that_cannot_be_written_is_noticed(
    coord: Coord, repository: Path, monkeypatch: pytest.MonkeyPatch, name: str, wrong: str
) -> None:
    """A sandbox or a wrong owner: the finding names the folder. Root may write anything, so it is asked."""
    coord("ann lock a.py")
    refused = str(repository / name) if name else str(repository)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != refused and real(path, mode))
    state, text, _ = found(coord("ann doctor"), "repository")
    assert (state, text.startswith(f"{refused} cannot be written")) == (wrong, True)


def test_an_ephemeral_program_is_reported(
    coord: Coord, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 15: init warns and names the command; the doctor goes on until hooks of another one are there."""
    monkeypatch.setattr("coord.integrations.setup.installer.ephemeral_folder", lambda _: "/cache/uv/x")
    said = coord("ann init --yes")
    assert (said.code, said.answer["notes"][0].startswith("WARNING: the hooks run a program in")) == (0, True)
    monkeypatch.undo()
    monkeypatch.chdir(repository)
    monkeypatch.setenv("HOME", str(tmp_path))
    warned = [each for each in coord("ann doctor").answer["checks"] if "/cache/uv/x" in each["message"]]
    assert [(each["check"], each["state"]) for each in warned] == [("program", "warn")]
    assert warned[0]["hint"].endswith("coord init --yes")
    coord("ann init --yes")
    assert not [each for each in coord("ann doctor").answer["checks"] if "/cache/uv" in each["message"]]


BROKEN = [
    (f"test -x {sys.executable} &&", "test -x /nowhere/python &&", "the hook cannot run"),
    (f"{sys.executable} -I -S /", f"{sys.executable} -m nowhere /", "the hook failed"),
]


@pytest.mark.parametrize(("old", "new", "told"), BROKEN)
def test_a_hook_that_only_its_shell_answers_is_noticed(
    coord: Coord, repository: Path, old: str, new: str, told: str
) -> None:
    """The refusal of the shell around a hook does not count as an answer of the hook."""
    coord("ann init --yes --tools claude")
    path = repository / ".claude/settings.local.json"
    path.write_text(path.read_text().replace(old, new))
    state, text, hint = found(coord("ann doctor"), "claude")
    assert (state, told in text, hint) == ("bad", True, "coord doctor --fix")
    assert coord("ann doctor --fix").code == 0


def test_a_hook_that_is_too_slow_is_noticed(
    coord: Coord, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor measures the answer; the clock of the test says nine seconds."""
    coord("ann init --yes --tools claude")
    ticks = iter(range(0, 10_000, 9))
    monkeypatch.setattr("coord.integrations.setup.probe.time.monotonic", lambda: next(ticks))
    state, text, _ = found(coord("ann doctor"), "claude")
    assert (state, "the hook takes 9.0 s, too long" in text) == ("bad", True)


def test_a_gate_that_git_does_not_run_is_noticed(coord: Coord, repository: Path) -> None:
    """Somebody sets core.hooksPath after init; --fix makes git run the gates again."""
    coord("ann init --yes")
    subprocess.run(["git", "config", "core.hooksPath", ".husky"], check=True)
    said = coord("ann doctor")
    assert (said.code, found(said, "git hooks")[0]) == (1, "bad")
    assert coord("ann doctor --fix").code == 0


def test_settings_that_somebody_removed_are_noticed(coord: Coord, repository: Path) -> None:
    """Hooks that are gone or of an older form; --fix writes them again and keeps what others wrote."""
    coord("ann init --yes")
    (repository / ".codex/hooks.json").unlink()
    path = repository / ".gemini/settings.json"
    path.write_text(path.read_text().replace('"timeout": 10000', '"timeout": 9'))
    said = coord("ann doctor")
    assert (said.code, found(said, "codex")[0]) == (1, "bad")
    assert ".gemini/settings.json" in found(said, "hooks")[1]
    assert coord("ann doctor --fix").code == 0


def test_codex_worktrees_without_hooks_are_told(
    coord: Coord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex creates them with git's hooks off, so only the hooks in the user's settings are there.

    This Codex is broken, too, which doctor survives.
    """

    def told() -> list[tuple[str, str]]:
        checks = coord("ann doctor").answer["checks"]
        return [(each["state"], each["hint"]) for each in checks if each["check"] == "codex --worktree"]

    coord("ann init --yes")
    assert told() == [], "no Codex is installed"
    (tmp_path / ".local/bin").mkdir(parents=True)
    (tmp_path / ".local/bin/codex").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / ".local/bin/codex").chmod(0o755)
    monkeypatch.setenv("PATH", os.defpath)
    assert told() == [("warn", "coord init --user; or coord worktree add instead")]
    coord("ann init --yes --user")
    assert told() == []
