"""`coord init --hub=http`: where it can be used, what it writes, and how it goes again."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coord.integrations.setup.http import form
from coord.integrations.setup.http.form import check_version
from coord.sdk.client.client import connect
from coord.transports.cli.main import main
from tests.support.setup_folders import snapshot

SETTINGS = ".claude/settings.local.json"
NOBODY = "http://127.0.0.1:1"
"""An address at which nobody listens: somebody may have a hub at the usual one."""
NEW = "2.1.295 (Claude Code)"
Run = Callable[..., tuple[int, dict[str, Any], str]]
Claude = Callable[..., None]


@pytest.fixture
def claude(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Claude:
    """Return a function that installs a Claude Code of some version."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(form, "DEFAULT_HUB", NOBODY)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def install(says: str, code: int = 0) -> None:
        (folder / "claude").write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
        (folder / "claude").chmod(0o755)

    return install


@pytest.fixture
def run(repository: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command of a person."""

    def call(*words: str) -> tuple[int, dict[str, Any], str]:
        code = main(list(words))
        out, err = capfd.readouterr()
        return code, json.loads(out) if out.startswith("{") else {}, out + err

    return call


def init(run: Run, *words: str) -> str:
    code, _, said = run("init", "--yes", "--tools", "claude", *words)
    assert code == 0, said
    return said


def tokens(repository: Path) -> list[str]:
    with connect(cwd=str(repository), environ=os.environ) as person:
        return [each.id for each in person.tokens()]


def token_file(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "state/coord/hook-tokens").iterdir()
    return found


def test_the_form_comes_and_goes(run: Run, claude: Claude, repository: Path, tmp_path: Path) -> None:
    """Around a call Claude Code asks the hub; a second init changes nothing, a plain one writes commands."""
    claude(NEW)
    before = snapshot(repository)
    init(run)
    commands = (repository / SETTINGS).read_text()
    said = init(run, "--hub=http")
    assert "cannot change files while the hub is down" in said
    hooks = json.loads((repository / SETTINGS).read_text())["hooks"]
    forms = {event: group[-1]["hooks"][0] for event, group in hooks.items()}
    by_http = {event for event, hook in forms.items() if hook["type"] == "http"}
    assert by_http == {"PreToolUse", "PostToolUse", "PostToolUseFailure"}
    assert all(forms[event]["onFailure"] == "block" for event in by_http)
    file = token_file(tmp_path)
    assert forms["PreToolUse"]["headers"]["Authorization"] == f"Bearer ${file.name}"
    assert forms["PreToolUse"]["url"].startswith("http://127.0.0.1:1/v1/hook/claude?git=/")
    assert hooks["PreToolUse"][0]["matcher"] == json.loads(commands)["hooks"]["PreToolUse"][0]["matcher"]
    token = file.read_text().strip()
    assert all(token not in each.read_text("utf-8", "replace") for each in repository.rglob("*.json"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("token", "export")[2].strip() == f"export {file.name}={token}"
    assert run("init", "--yes", "--hub=http", "--tools", "claude")[1]["changed"] == []
    assert (file.read_text().strip(), len(tokens(repository))) == (token, 1)
    init(run)
    assert (repository / SETTINGS).read_text() == commands
    assert (file.exists(), tokens(repository)) == (False, [])
    init(run, "--hub=http")
    init(run, "--hub")
    assert (repository / SETTINGS).read_text() == commands
    init(run, "--hub=http")
    assert run("uninstall")[0] == 0
    assert tokens(repository) == []
    assert not (tmp_path / "state/coord/hook-tokens" / file.name).exists()
    assert {name for name in snapshot(repository) if ".claude" in str(name)} == {
        name for name in before if ".claude" in str(name)
    }


def test_a_repair_keeps_the_form(run: Run, claude: Claude, repository: Path) -> None:
    """What somebody removed comes back by HTTP, and tools that are added later have commands."""
    claude(NEW)
    init(run, "--hub=http")
    text = (repository / SETTINGS).read_text()
    (repository / SETTINGS).write_text("{}")
    run("doctor", "--fix")
    assert (repository / SETTINGS).read_text() == text
    assert run("init", "--yes", "--hub=http", "--tools", "codex,claude")[0] == 0
    assert (repository / SETTINGS).read_text() == text
    assert '"http"' not in (repository / ".codex/hooks.json").read_text()
    assert run("uninstall", "--tools", "codex")[0] == 0
    assert (repository / SETTINGS).read_text() == text
    assert len(tokens(repository)) == 1
    assert run("uninstall", "--tools", "claude")[0] == 0
    assert tokens(repository) == []


def test_hooks_without_a_journal_are_removed(run: Run, claude: Claude, repository: Path) -> None:
    claude(NEW)
    init(run, "--hub=http")
    (repository / ".git/coord/setup.json").unlink()
    assert run("uninstall")[0] == 0
    assert not (repository / SETTINGS).exists()


def test_a_token_that_was_revoked_is_replaced(
    run: Run, claude: Claude, repository: Path, tmp_path: Path
) -> None:
    claude(NEW)
    init(run, "--hub=http")
    before = token_file(tmp_path).read_text()
    (known,) = tokens(repository)
    assert run("token", "revoke", known)[0] == 0
    init(run, "--hub=http")
    assert token_file(tmp_path).read_text() != before
    assert len(tokens(repository)) == 1


@pytest.mark.parametrize(
    ("says", "code"),
    [("2.1.294 (Claude Code)", 0), ("1.9.999 (Claude Code)", 0), ("", 0), ("new", 0), (NEW, 1)],
)
def test_a_claude_that_lets_calls_pass_is_refused(
    run: Run, claude: Claude, repository: Path, says: str, code: int
) -> None:
    """Older ones have no `onFailure`: with the hub down every write would pass."""
    claude(says, code)
    before = snapshot(repository)
    ended, _, said = run("init", "--yes", "--hub=http", "--tools", "claude")
    assert ended != 0
    assert "lets every call pass while the hub is down: it needs 2.1.295 or newer" in said
    assert snapshot(repository) == before


def test_a_claude_that_nobody_finds_is_refused(run: Run, claude: Claude, repository: Path) -> None:
    code, _, said = run("init", "--yes", "--hub=http", "--tools", "claude")
    assert code != 0
    assert "claude is not on the PATH" in said


@pytest.mark.parametrize("version", ["2.1.295", "2.1.1000", "2.2.0", "3.0.0"])
def test_newer_versions_count(claude: Claude, version: str) -> None:
    claude(f"{version} (Claude Code)")
    check_version(os.environ)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--shared",), "cannot be written with --shared"),
        (("--user",), "cannot be written with --user"),
        (("--tools", "codex"), "only Claude Code has http hooks"),
    ],
)
def test_some_options_are_refused(
    run: Run, claude: Claude, repository: Path, words: tuple[str, ...], why: str
) -> None:
    claude(NEW)
    before = snapshot(repository)
    code, _, said = run("init", "--yes", "--hub=http", *words)
    assert code != 0
    assert why in said
    assert snapshot(repository) == before


def test_agents_neither_choose_the_form_nor_see_tokens(
    run: Run, claude: Claude, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude(NEW)
    init(run, "--hub=http")
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "kid")
    assert "only people may see the tokens" in run("token", "export")[2]
    assert "only people decide" in run("init", "--yes", "--hub=http", "--tools", "claude")[2]


def test_the_doctor_names_what_stops_claude(
    run: Run, claude: Claude, repository: Path, tmp_path: Path
) -> None:
    """No hub, a token that others may read, and no token: each is loud, with the next step."""
    claude(NEW)
    init(run, "--hub=http")

    def doctor() -> tuple[str, str]:
        answer = run("doctor")[1]
        (found,) = [each for each in answer["checks"] if each["check"] == "claude"]
        assert found["state"] == "bad"
        return found["message"], found["hint"]

    message, hint = doctor()
    assert f"no hub answers at {NOBODY}" in message
    assert "so Claude Code cannot change files" in message
    assert "coord serve --listen 127.0.0.1:1" in hint
    file = token_file(tmp_path)
    file.chmod(0o640)
    assert "has mode 640" in doctor()[0]
    assert run("token", "export")[0] != 0
    file.unlink()
    assert "is gone" in doctor()[0]
    file.symlink_to("/etc/hostname")
    assert "cannot be read" in doctor()[0]
