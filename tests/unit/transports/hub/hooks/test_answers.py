"""What the hub answers for a hook, and what it leaves to the hook itself."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coord.host.store_location import find_location, local_path, move_pin
from coord.integrations.hooks import hub_client
from coord.sdk.client.client import connect
from coord.sdk.client.open import initialise
from coord.transports.hub.hooks.answers import HookAnswers
from coord.transports.hub.hooks.exchange import HookCall, NotHere, read_call, write_answer
from coord.transports.hub.stores import HubStores
from tests.support.git_folders import made_repository
from tests.support.hub.hooks import edit, shell

Environ = dict[str, str]


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environ:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return {"HOME": str(home), "PATH": os.environ["PATH"], "USER": "somebody"}


@pytest.fixture
def repository(tmp_path: Path, environ: Environ) -> Path:
    made_repository(tmp_path / "shop")
    initialise(str(tmp_path / "shop"), environ)
    return tmp_path / "shop"


def answered(
    environ: Environ,
    payload: dict[str, Any],
    /,
    *,
    before: Callable[[HookAnswers], None] = lambda _: None,
    pid: int = 0,
    **changes: Any,
) -> str:
    """Return what a hook would print that this process runs, or why it has to answer itself."""

    async def answer() -> str:
        location = find_location(payload["cwd"], environ)
        stores = HubStores(environ, location)
        try:
            answers = HookAnswers(stores)
            await stores.at(location)
            before(answers)
            call = HookCall(
                answers.programs,
                "claude",
                "",
                os.getppid(),
                frozenset(),
                time.monotonic() + 60,
                environ,
                json.dumps(payload).encode(),
            )
            found = await answers.answer(call._replace(**changes), pid or os.getpid())
            return found.partition(b"\n")[2].decode()
        except NotHere as error:
            return error.message
        finally:
            await stores.close()

    return asyncio.run(answer())


def test_an_edit_is_allowed_and_holds_its_file(repository: Path, environ: Environ) -> None:
    assert answered(environ, edit(repository, "ada")) == ""
    assert "new.txt is locked by claude (session ada)" in answered(environ, edit(repository, "bob"))


def test_the_environment_is_that_of_the_hook(repository: Path, environ: Environ, tmp_path: Path) -> None:
    """The next step names `coord` as the agent can call it, and git is the one of its PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    noted = tmp_path / "noted"
    for name, text in (("coord", ""), ("git", f'echo "$MARK" >> {noted}; PATH="${{PATH#*:}}" exec git "$@"')):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    answered(environ, edit(repository, "ada"))
    theirs = {**environ, "PATH": f"{programs}:{environ['PATH']}", "MARK": "theirs"}
    assert "Next: `coord lock new.txt`" in answered(theirs, edit(repository, "bob"))
    answered(theirs, shell(repository, "bob", "echo x > out.txt"))
    assert set(noted.read_text().split()) == {"theirs"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"answer_by": 0.0}, "does not wait any more"),
        ({"programs": "/elsewhere/bin"}, "another installation"),
        ({"parent": 1}, "its tool has ended"),
        ({"installed_for": "shop/.git"}, "not absolute"),
        ({"payload": b'{"hook_event_name": "PreToolUse", "cwd": "shop"}'}, "not absolute"),
        ({"payload": b'{"hook_event_name": "PreToolUse"}'}, "not absolute"),
        ({"payload": b"[1]"}, "its event is not an object"),
    ],
)
def test_what_the_hook_has_to_answer_itself(
    repository: Path, environ: Environ, changes: dict[str, Any], why: str
) -> None:
    assert why in answered(environ, edit(repository, "ada"), **changes)
    assert held(repository, environ) == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1],
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.decode().encode("utf-16"),
        lambda data: data.decode().encode("utf-32-le"),
        lambda data: data.replace(b"new.txt", b"new\xff.txt"),
        lambda data: data.replace(b"new.txt", b"new\n.txt"),
        lambda _: b"[" * 100_000,
        lambda _: b"",
    ],
    ids=["half", "bom", "utf-16", "utf-32", "bytes", "control", "deep", "empty"],
)
def test_an_event_that_the_hook_refuses(
    repository: Path, environ: Environ, spoil: Callable[[bytes], bytes]
) -> None:
    """The hub answers no event that its hook cannot read: UTF-8 without a mark, and plain JSON."""
    event = edit(repository, "ada")
    data = spoil(json.dumps(event).encode())
    assert "its event cannot be read" in answered(environ, event, payload=data)
    assert held(repository, environ) == []


def held(repository: Path, environ: Environ) -> list[str]:
    with connect(cwd=str(repository), environ=environ, session="watcher") as client:
        return [lock.resource for lock in client.locks()]


def test_the_tool_is_found_above_the_process_that_asks(repository: Path, environ: Environ) -> None:
    """The process of a session is never the hub, nor one above it."""
    environ["CLAUDE_PID"] = str(os.getpid())
    with subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL) as hook:
        try:
            payload = edit(repository, "ada")
            assert answered(environ, payload, pid=hook.pid, parent=os.getpid()) == ""
        finally:
            hook.kill()
    with connect(cwd=str(repository), environ=environ, session="watcher") as client:
        assert client.show("ada").pid == os.getpid()


def test_another_home_is_left_to_the_hook(repository: Path, environ: Environ) -> None:
    assert "another home" in answered(environ, edit(repository, "ada"), environ={**environ, "HOME": "/"})


def test_a_hook_that_sees_other_files_answers_itself(repository: Path, environ: Environ) -> None:
    """The path of a file in a container is another file here."""

    def elsewhere(answers: HookAnswers) -> None:
        answers.view = ("mnt:[1]", *answers.view[1:])

    assert "sees other files" in answered(environ, edit(repository, "ada"), before=elsewhere)


def test_a_store_that_is_not_pinned_any_more_is_not_used(repository: Path, environ: Environ) -> None:
    location = find_location(str(repository), environ)

    def pin_another(_: HookAnswers) -> None:
        move_pin(location, store_id="another", epoch=location.epoch + 1)

    assert "another store is pinned now" in answered(environ, edit(repository, "ada"), before=pin_another)


def test_a_store_that_was_removed_is_not_used(repository: Path, environ: Environ) -> None:
    """The hub has the file open, and would go on with it alone."""
    path = local_path(find_location(str(repository), environ).url)
    assert "is gone" in answered(environ, edit(repository, "ada"), before=lambda _: os.unlink(path))


def test_requests_that_cannot_be_read() -> None:
    """A hook of another version, half a request and nonsense are left to the hook."""
    fields = [hub_client.VERSION, b"/bin", b"claude", b"", b"1", b"2,3", b"4.5", b"A=b=c", b"D=\xff"]

    def body(*fields: bytes, size: int | None = None) -> bytes:
        block = b"\0".join(fields)
        return b"%d\n" % (len(block) if size is None else size) + block + b"{}"

    call = read_call(body(*fields))
    assert (call.makers, call.environ["A"], call.environ["D"]) == (frozenset((2, 3)), "b=c", "\udcff")
    assert call.payload == b"{}"
    for wrong in (
        b"",
        b"x",
        b"-1\n",
        b"9" * 5000 + b"\n",
        body(*fields, size=9999),
        body(b"9.9.9", *fields[1:]),
        body(*fields[:6]),
        body(*fields[:2], b"emacs", *fields[3:]),
        body(*fields[:4], b"x", *fields[5:]),
        body(*fields[:6], b"soon"),
    ):
        with pytest.raises(NotHere):
            read_call(wrong)
    assert write_answer(2, b"out", b"said") == hub_client.VERSION + b" 2 3 -\noutsaid"
