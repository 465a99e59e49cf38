"""The ledger of hooks: which files the tools of a session changed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coord.sdk.log_reader import logged_events
from tests.support.hook_harness import HOOK_WAYS, HookHarness, answered_by


@pytest.fixture(params=HOOK_WAYS)
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[HookHarness]:
    with answered_by(request.param, HookHarness(tmp_path)) as found:
        yield found


def edited(scene: HookHarness) -> list[tuple[str, str]]:
    with scene.client("watcher") as client:
        events = list(logged_events(client.log.tail(0, 10_000)))
    return [
        (each.details["session"], each.details["resource"]) for each in events if each.event == "file.edited"
    ]


def test_an_edit_is_in_the_ledger(scene: HookHarness) -> None:
    """AUD-5: after the call, for whoever made it."""
    call = scene.edit("src/app.py")
    scene.before(call)
    assert edited(scene) == []
    scene.after(call)
    scene.write("new.txt", "bob")
    assert edited(scene) == [("ada", "file:src/app.py"), ("bob", "file:new.txt")]


def test_a_refused_or_failed_edit_is_not_in_the_ledger(scene: HookHarness) -> None:
    scene.write("src/app.py")
    scene.write("src/app.py", "bob")
    call = scene.edit("other.txt", "bob")
    scene.before(call)
    scene.tell("PostToolUseFailure", **call, error="no space left")
    assert edited(scene) == [("ada", "file:src/app.py")]


def test_what_a_shell_changed_is_in_the_ledger(scene: HookHarness) -> None:
    """By its effect: what the command line says counts for nothing."""
    call = scene.shell("make -s")
    scene.before(call)
    (scene.root / "src/app.py").write_text("changed by a program\n")
    (scene.root / "made.txt").write_text("made\n")
    scene.after(call)
    assert sorted(edited(scene)) == [("ada", "file:made.txt"), ("ada", "file:src/app.py")]
    quiet = scene.shell("echo src/app.py")
    scene.before(quiet)
    scene.after(quiet)
    assert len(edited(scene)) == 2
