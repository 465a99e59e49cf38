"""The doctor tries the sandbox of Codex; a program that answers as Codex does stands in for it here."""

import os
import stat
from pathlib import Path

import pytest

from coord.integrations.setup import sandbox_checks
from coord.integrations.setup.sandbox import CONFIG
from coord.integrations.setup.sandbox_checks import check_sandbox, find_codex
from coord.integrations.setup.text.toml_edit import with_root

PLAIN = 'shift 4\nexec "$@"\n'
"""`codex sandbox -c MODE -- COMMAND`, without a sandbox."""
FAILS = "echo bwrap: no permission >&2\nexit 1\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / ".git/coord/store").mkdir(parents=True)
    (tmp_path / ".git/hooks").mkdir()
    (tmp_path / "bin").mkdir()
    return tmp_path


def codex(place: Path, text: str) -> dict[str, str]:
    """Install the stand-in; return the environment that finds it."""
    program = place / "bin/codex"
    program.write_text(f"#!/bin/sh\n{text}")
    program.chmod(stat.S_IRWXU)
    return {"PATH": f"{place}/bin:{os.defpath}", "HOME": str(place / "home")}


def found(place: Path, environ: dict[str, str], *worktrees: Path) -> list[tuple[str, str, str]]:
    roots = [str(each) for each in worktrees or (place,)]
    return [(each.state, each.message, each.hint) for each in check_sandbox(f"{place}/.git", roots, environ)]


def answering(*words: str) -> str:
    return "".join(f"echo {word}\n" for word in words)


def test_without_codex_nothing_is_tried(place: Path) -> None:
    environ = {"PATH": os.defpath, "HOME": str(place)}
    assert found(place, environ) == [("ok", "not checked: codex is not found", "")]
    inside = codex(place, PLAIN) | {"CODEX_SANDBOX_NETWORK_DISABLED": "1"}
    assert found(place, inside) == [("ok", "not checked: this command runs inside of a sandbox", "")]


def test_codex_is_found_in_the_usual_places(place: Path) -> None:
    """An editor's extension brings its own program, which is not on the PATH."""
    program = place / ".vscode/extensions/openai.chatgpt-1.2/bin/linux-x86_64/codex"
    program.parent.mkdir(parents=True)
    program.touch()
    environ = {"PATH": os.defpath, "HOME": str(place)}
    assert find_codex(environ) == ""
    program.chmod(stat.S_IRWXU)
    assert find_codex(environ) == str(program)


def test_a_store_that_can_be_written(place: Path) -> None:
    (said,) = found(place, codex(place, answering("store", "ran")))
    assert said == ("ok", "commands in the sandbox of Codex can write the store here", "")
    both = found(place, codex(place, answering("store", "ran")), place, place / "bin")
    assert both[0][1].endswith("in 2 worktrees")


def test_a_sandbox_that_lets_too_much_through(place: Path) -> None:
    """The probe runs, removes its file, and notices that it could change the hooks of git."""
    ((state, message, _),) = found(place, codex(place, PLAIN))
    assert (state, "change the hooks" in message) == ("warn", True)
    assert not list((place / ".git/coord/store").iterdir())


def test_a_sandbox_that_does_not_start(place: Path) -> None:
    ((state, message, hint),) = found(place, codex(place, FAILS))
    assert (state, hint) == ("warn", "coord doctor --fix")
    assert message.endswith("Codex cannot start its sandbox: bwrap: no permission")
    (place / ".git/coord/store").rmdir()
    ((_, _, hint),) = found(place, codex(place, FAILS))
    assert hint == "coord init"


def test_a_store_that_cannot_be_written_names_the_next_step(place: Path) -> None:
    """The setting is missing; or the folder is not trusted; or a profile takes its place."""
    environ = codex(place, answering("ran"))
    ((state, message, hint),) = found(place, environ)
    assert (state, hint) == ("bad", "coord doctor --fix")
    assert f"cannot write {place}/.git/coord/store" in message
    (place / ".codex").mkdir()
    text = with_root("", f"{place}/.git/coord/store")
    assert text is not None
    (place / CONFIG).write_text(text)
    assert found(place, environ)[0][2] == f"start codex in {place} and trust the folder"
    (place / CONFIG).write_text(f'default_permissions = "mine"\n{text}')
    assert found(place, environ)[0][2].startswith(
        f'add "{place}/.git/coord/store" = "write" to [permissions.mine'
    )
    (place / CONFIG).write_text(f'default_permissions = ":workspace"\n{text}')
    assert found(place, environ)[0][2].startswith('remove default_permissions = ":workspace"')


def test_a_profile_is_tried_as_it_is(place: Path) -> None:
    """`sandbox_mode` would replace the profile."""
    (place / ".codex").mkdir()
    (place / CONFIG).write_text('default_permissions = "mine"\n')
    environ = codex(place, f'echo "$*" > {place}/words\n{answering("store", "ran")}')
    found(place, environ)
    assert (place / "words").read_text().startswith("sandbox -- /bin/sh")


def test_time_is_bounded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_checks, "TOTAL_S", -1)
    (said,) = found(place, codex(place, answering("store", "ran")), place, place)
    assert said == ("warn", "no time to check 2 worktrees", "coord doctor there")
