"""The program itself: a process that answers in time, whatever becomes of its store or of its input."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coord.integrations.hooks import main as hook_main
from tests.support.consent import write_configuration
from tests.support.hook_harness import HookHarness
from tests.support.servers.redis import RedisServer
from tests.support.servers.server import running

PROGRAM = [sys.executable, "-I", "-S", hook_main.__file__]
ANSWERS_S = 30
"""Far more than a hook may take, and far less than a stuck one would."""


@pytest.fixture
def scene(tmp_path: Path) -> HookHarness:
    return HookHarness(tmp_path)


def hook(
    scene: HookHarness, told: dict[str, Any] | bytes, tool: str = "claude", *of: str, **environ: str
) -> tuple[int, Any, str]:
    data = told if isinstance(told, bytes) else json.dumps({"cwd": str(scene.root), **told}).encode()
    done = subprocess.run(
        [*PROGRAM, tool, *of],
        input=data,
        env={**scene.environ, **environ},
        capture_output=True,
        timeout=ANSWERS_S,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr.decode()


def edit(session: str = "ada") -> dict[str, Any]:
    call = {"tool_name": "Write", "tool_input": {"file_path": "new.txt"}, "tool_use_id": "c1"}
    return {"session_id": session, "hook_event_name": "PreToolUse", **call}


def shell(line: str) -> dict[str, Any]:
    call = {"tool_name": "Bash", "tool_input": {"command": line}, "tool_use_id": "c2"}
    return {"session_id": "ada", "hook_event_name": "PreToolUse", **call}


def reason_in(answer: Any) -> str:
    return str(answer["hookSpecificOutput"]["permissionDecisionReason"])


def test_a_whole_exchange(scene: HookHarness) -> None:
    """The first edit passes in silence; the second one is denied in the tool's own form, by exit code 0."""
    assert hook(scene, edit()) == (0, None, "")
    code, answer, said = hook(scene, edit("bob"))
    assert (code, said) == (0, "")
    assert "new.txt is locked by claude (session ada)" in reason_in(answer)
    code, answer, said = hook(
        scene,
        {**edit("eve"), "hook_event_name": "BeforeTool", "tool_name": "write_file"},
        "gemini",
    )
    assert (code, answer["decision"], said) == (0, "deny", "")


def test_an_emergency_stops_the_program_s_calls(scene: HookHarness) -> None:
    """MSG-3: an edit is denied, `coord ack` passes and ends it, and then the same edit passes."""
    hook(scene, {"session_id": "ada", "hook_event_name": "SessionStart", "source": "startup"})
    with scene.client("bob") as bob:
        sent = bob.send("ada", "emergency", "main is broken")
    ack = f"coord ack {sent.id}"
    for told in (edit(), shell("make")):
        code, answer, _ = hook(scene, told)
        assert code == 0
        assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
        assert 'from bob (emergency): "main is broken"' in reason_in(answer)
        assert f"{ack}` acknowledges it" in reason_in(answer)
    assert hook(scene, shell(ack)) == (0, None, "")
    done = subprocess.run(
        [sys.executable, "-m", "coord.transports.cli.main", "ack", sent.id],
        env={**scene.environ, "COORD_SESSION_ID": "ada"},
        cwd=scene.root,
        check=False,
    )
    assert done.returncode == 0
    assert hook(scene, edit()) == (0, None, "")


def test_a_repository_whose_store_was_removed_is_closed_for_writes(
    scene: HookHarness, tmp_path: Path
) -> None:
    """INT-5: the hook knows for which repository it was set up, and that somebody took the store away."""
    shutil.rmtree(scene.root / ".git/coord")
    (scene.root / ".git/coord.id").unlink()
    of = str(scene.root / ".git")
    for told in (edit(), {**edit(), "cwd": "/", "tool_input": {"file_path": f"{scene.root}/new.txt"}}):
        _, answer, _ = hook(scene, told, "claude", of)
        assert "set up in this repository, but" in reason_in(answer)
        assert "run coord init" in reason_in(answer)
        assert "doctor` shows what is wrong" in reason_in(answer)
    assert "set up in" in reason_in(hook(scene, shell("make"), "claude", of)[1])
    assert "set up in" in reason_in(hook(scene, shell("coord status"), "claude", of)[1])
    for line in ("git status", "coord doctor"):
        assert hook(scene, shell(line), "claude", of) == (0, None, "")
    assert not (scene.root / ".git/coord").exists()
    assert hook(scene, edit(), "claude", str(tmp_path / "another/.git")) == (0, None, "")
    assert hook(scene, edit()) == (0, None, "")


@pytest.mark.parametrize(
    "told",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"hook_event_name": "PreToolUse", "tool_name": "Write"', b"null"],
)
def test_input_that_cannot_be_read_is_refused(scene: HookHarness, told: bytes) -> None:
    """Exit 2 with words on stderr is a no in every tool."""
    code, answer, said = hook(scene, told)
    assert (code, answer) == (2, None)
    assert said.startswith("coord: ")


def test_an_edit_without_a_session_is_refused(scene: HookHarness) -> None:
    """Whose edit it is has to be known."""
    assert "session id" in reason_in(hook(scene, {**edit(), "session_id": ""})[1])
    assert "session id" in reason_in(hook(scene, {**edit(), "session_id": "a/b"})[1])


def test_an_unknown_tool_is_refused(scene: HookHarness) -> None:
    """The program names the tools that it knows."""
    code, _, said = hook(scene, edit(), "emacs")
    assert code == 2
    assert "claude|codex|gemini" in said


def lose(scene: HookHarness) -> None:
    for file in (scene.root / ".git/coord/store").glob("coord.db*"):
        file.unlink()


def test_without_a_store_writes_are_closed_and_reads_open(scene: HookHarness) -> None:
    """Doubt refuses writes; what only reads goes on, so that the agent can find out what is wrong."""
    lose(scene)
    deny = reason_in(hook(scene, edit())[1])
    assert "is gone" in deny
    assert "doctor` shows what is wrong" in deny
    assert "is gone" in reason_in(hook(scene, shell("make"))[1])
    assert hook(scene, shell("coord doctor; git status")) == (0, None, "")
    assert hook(scene, {**edit(), "hook_event_name": "PostToolUse"}) == (0, None, "")
    said = hook(scene, {"session_id": "ada", "hook_event_name": "SessionStart", "source": "startup"})[1]
    assert "writes are blocked until" in said["hookSpecificOutput"]["additionalContext"]


def test_closed_or_open_is_a_setting(scene: HookHarness) -> None:
    """PRB-36: Who would rather lose the locks than the work, says so."""
    write_configuration(scene.root, '[hooks]\nwrites_without_store = "open"\n', scene.environ)
    lose(scene)
    assert hook(scene, edit()) == (0, None, "")


def test_wrong_settings_close_the_gate(scene: HookHarness) -> None:
    """What is not understood is no permission."""
    write_configuration(scene.root, '[hooks]\nwrites_without_store = "sometimes"\n', scene.environ)
    assert "writes_without_store" in reason_in(hook(scene, edit())[1])


def test_a_stuck_store_is_answered_for_in_time(scene: HookHarness) -> None:
    """Another process holds the database: the hook says no before its tool would let the call pass."""
    path = scene.root / ".git/coord/store/coord.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        code, answer, _ = hook(scene, edit(), COORD_HOOK_DEADLINE="0.7")
        assert "did not answer within 0.7 s" in reason_in(answer)
        assert code == 0
        ended = {"session_id": "ada", "hook_event_name": "SessionEnd", "reason": "other"}
        assert hook(scene, ended, COORD_HOOK_DEADLINE="0.7") == (0, None, "")
        assert time.monotonic() - began < ANSWERS_S


def test_a_server_that_is_down_is_answered_for_in_time(tmp_path: Path) -> None:
    """REC-20: the hook retries in a part of its deadline, and says no before its tool lets the call pass."""
    with running(RedisServer) as server:
        scene = HookHarness(tmp_path, server.fresh_store_url())
        assert hook(scene, edit()) == (0, None, "")
        server.stop()
        code, answer, _ = hook(scene, edit(), COORD_HOOK_DEADLINE="2", COORD_CONNECT_TIMEOUT="3600")
        assert reason_in(answer)
        assert code == 0
        assert hook(scene, shell("git status"), COORD_HOOK_DEADLINE="2") == (0, None, "")


def test_a_tool_that_tells_nothing_is_refused_in_time(scene: HookHarness) -> None:
    """Standard input that never ends does not hold the hook for ever."""
    reader, writer = os.pipe()
    try:
        done = subprocess.run(
            [*PROGRAM, "claude"],
            stdin=reader,
            env={**scene.environ, "COORD_HOOK_DEADLINE": "0.3"},
            capture_output=True,
            timeout=ANSWERS_S,
            check=False,
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert done.returncode == 2
    assert b"gave its hook no input" in done.stderr


def test_nobody_has_to_read_the_answer(scene: HookHarness) -> None:
    """A tool that has gone away meanwhile does not make the hook fail."""
    hook(scene, edit())
    process = subprocess.Popen([*PROGRAM, "claude"], stdin=-1, stdout=-1, stderr=-1, env=scene.environ)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write(json.dumps({"cwd": str(scene.root), **edit("bob")}).encode())
    process.stdin.close()
    assert process.wait(ANSWERS_S) == 0
    assert process.stderr is not None
    with process.stderr as errors:
        assert errors.read() == b""


def imported_before(scene: HookHarness, told: dict[str, Any]) -> set[str]:
    """Return the modules that the hook imports before a call that it lets pass."""
    done = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", hook_main.__file__, "claude"],
        input=json.dumps({"cwd": str(scene.root), **told}).encode(),
        env=scene.environ,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b""
    return {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}


def test_before_a_reading_tool_next_to_nothing_is_imported(scene: HookHarness) -> None:
    """Most calls only read: they pass before even `typing` is there, with a store or without one."""
    lose(scene)
    assert not imported_before(scene, {**edit(), "tool_name": "Read"}) & {
        "typing",
        "re",
        "json",
        "enum",
        "msgspec",
        "sqlite3",
        "coord.integrations.hooks.handler",
    }


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ('{"tool_input": {"tool_name": "Read", "file_path": "new.txt"}, "tool_name": "Write"', False),
        ('{"tool_name": "Read", "tool_name": "Write", "tool_input": {"file_path": "new.txt"}', False),
        ('{"tool_input": {"tool_name": "Write", "file_path": "new.txt"}, "tool_name": "Read"', True),
        ('{"tool\\u005fname": "\\u0052ead", "tool_input": {"file_path": "new.txt"}', True),
        (
            '{"a": "\\"tool_name\\":\\"Read\\"", "tool_name":"Write", "tool_input": {"file_path":"new.txt"}',
            False,
        ),
        (
            '{"a": ["tool_name", "Read"], "tool_name" :\n"Write", "tool_input": {"file_path": "new.txt"}',
            False,
        ),
        ('{"tool_name": "Read"', True),
    ],
)
def test_only_the_tool_of_the_event_counts(scene: HookHarness, text: str, allowed: bool) -> None:
    """A name that stands elsewhere, or first, or is spelled with escapes, allows and refuses nothing."""
    hook(scene, edit("bob"))
    rest = {"session_id": "ada", "hook_event_name": "PreToolUse", "cwd": str(scene.root)}
    code, answer, _ = hook(scene, f"{text}, {json.dumps(rest)[1:]}".encode())
    assert (code, answer is None) == (0, allowed)


def test_before_an_edit_no_command_of_another_domain_is_imported(scene: HookHarness) -> None:
    """A lock needs no command of tasks, plans or messages, and every edit would pay for defining them."""
    imported = imported_before(scene, edit())
    assert "coord.core.locks.commands" in imported
    other_domains = ("tasks", "plans", "routing", "lifecycle", "messages.commands")
    assert not {name for name in imported if name.startswith(tuple(f"coord.core.{d}" for d in other_domains))}


def test_a_module_is_found_when_it_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook and its watcher may load the same module at the same time."""
    name, found = "coord.loaded_by_its_file", []

    class Loader:
        def __init__(self, name: str, path: str) -> None:
            assert path == f"/packages/{name.replace('.', '/')}.py"

        def exec_module(self, module: Any) -> None:
            found.append(name in sys.modules)

    monkeypatch.setattr(hook_main, "SourceFileLoader", Loader)
    monkeypatch.setattr(hook_main, "ROOT", "/packages", raising=False)
    try:
        hook_main.load(name)
        hook_main.load(name)
        assert found == [False]
    finally:
        del sys.modules[name]


def test_the_command_is_the_same_program(scene: HookHarness) -> None:
    """`coord hook claude` answers as the program does."""
    hook(scene, edit())
    done = subprocess.run(
        [sys.executable, "-m", "coord.transports.cli.main", "hook", "claude"],
        input=json.dumps({"cwd": str(scene.root), **edit("bob")}).encode(),
        env=scene.environ,
        cwd=scene.root,
        capture_output=True,
        timeout=ANSWERS_S,
        check=False,
    )
    assert "new.txt is locked" in reason_in(json.loads(done.stdout))
    assert done.returncode == 0


def test_an_answer_that_is_late_by_a_moment_is_written_out() -> None:
    """When time is up just as a refusal is being written, the call is not let pass by half of it."""
    program = """if True:
        import os, time
        from _thread import start_new_thread
        from coord.integrations.hooks import hook as client
        from coord.integrations.hooks.events import Answer
        hook = client.Hook("claude")
        os.environ["COORD_HOOK_DEADLINE"] = "0.2"
        hook._parse_event({"hook_event_name": "PreToolUse", "tool_name": "Bash"})
        output_of = hook._form.output_of
        def slowly(event, answer):
            while time.monotonic() < hook.began + 0.6: pass
            return output_of(event, answer)
        hook._form.output_of = slowly
        start_new_thread(hook._watch, ())
        hook._reply(Answer(deny="held by ann"))
        os._exit(hook._code)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert b"held by ann" in done.stdout, done
