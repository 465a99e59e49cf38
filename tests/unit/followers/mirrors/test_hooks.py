"""Hooks of agents beside mirrors: nobody locks the files of a mirror, and nobody restores them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from coord.followers.mirrors.switching import mirror_off, mirror_on
from tests.support.hook_harness import HOOK_WAYS, HookHarness, answered_by

CLAIMS = ".claude/agent-claims.json"


@pytest.fixture(params=HOOK_WAYS)
def harness(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[HookHarness]:
    harness = HookHarness(tmp_path)
    with harness.client("ann") as client:
        for name in ("contract", "agent-claims"):
            mirror_on(client, name, client.project)
    with answered_by(request.param, harness) as answered:
        yield answered


def claimed(harness: HookHarness) -> list[str]:
    return [each["file"] for each in json.loads((harness.root / CLAIMS).read_text())["claims"]]


def test_an_edit_of_a_mirror_is_nobodys_work(harness: HookHarness) -> None:
    """Agents of the fifth document write their claims by hand: no lock, no refusal, and coord's again."""
    assert not harness.write(CLAIMS, "ada").deny
    assert not harness.write(CLAIMS, "bob").deny
    assert harness.held() == {}
    assert not harness.write("src/new.py", "ada").deny
    assert list(harness.held()) == ["file:src/new.py"]
    with harness.client("ann") as client:
        client.acquire("name:build")
    assert claimed(harness) == ["src/new.py"]


def test_our_own_writes_are_no_effects_of_a_command(harness: HookHarness) -> None:
    """While a command runs, coord writes the mirror: nothing is reported, restored or salvaged."""
    call = harness.shell("make", "ada")
    assert not harness.before(call).deny
    with harness.client("bob") as client:
        client.acquire("src/held.py")
    before = (harness.root / CLAIMS).read_bytes()
    answer = harness.after(call)
    assert "agent-claims" not in str(answer)
    assert ".contract" not in str(answer)
    assert (harness.root / CLAIMS).read_bytes() == before
    assert claimed(harness) == ["src/held.py"]


def test_a_mirror_that_is_off_protects_nothing(harness: HookHarness) -> None:
    """Without the mirror the same file is a file like any other."""
    with harness.client("ann") as client:
        mirror_off(client.location, "agent-claims", 0)
    assert not harness.write(CLAIMS, "ada").deny
    assert list(harness.held()) == [f"file:{CLAIMS}"]


def test_a_mirror_is_current_when_a_hook_ends(tmp_path: Path) -> None:
    """MSG-4: the hook is a process like any other; the inbox of a session that a tool runs is shown, too."""
    harness, folder = HookHarness(tmp_path), tmp_path / "cc"
    with harness.client("ann") as client:
        mirror_on(client, "agent-claims", client.project)
        mirror_on(client, "claude-coord", client.project, folder=str(folder))
    harness.tell("SessionStart", "ada", source="startup")
    harness.write("src/new.py", "ada")
    assert claimed(harness) == ["src/new.py"]
    assert json.loads((folder / "sessions/ada.json").read_text())["claude_pid"] > 0
    with harness.client("ann") as client:
        client.send("ada", "warn", "mind the gap")
    (message,) = (folder / "messages/inbox-ada").iterdir()
    assert json.loads(message.read_text())["subject"] == "mind the gap"
