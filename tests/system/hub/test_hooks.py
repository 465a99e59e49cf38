"""Hooks through a hub: the same answers as without one, and never a worse one than the hook's own."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coord.integrations.hooks import hub_client
from coord.sdk.client.client import connect
from coord.sdk.client.open import initialise
from coord.sdk.remote import wire
from tests.support.git_folders import made_repository
from tests.support.hub.hooks import ONLY_THROUGH_HUB, PROGRAM, Printed, edit, masked, run_hook, shell
from tests.support.hub.process import private_home, serving

Environ = dict[str, str]
Step = Callable[[Path], tuple[str, dict[str, Any]]]


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[Environ]:
    with private_home(tmp_path / "private") as home:
        yield {**home, "USER": "somebody", "COORD_HOOK_DEADLINE": "60"}


@pytest.fixture
def repository(tmp_path: Path, environ: Environ) -> Path:
    return prepared(tmp_path / "shop", environ)


def prepared(root: Path, environ: Environ) -> Path:
    made_repository(root)
    initialise(str(root), environ)
    return root


def event(name: str, session: str, **more: Any) -> Step:
    return lambda root: (
        "claude",
        {"session_id": session, "cwd": str(root), "hook_event_name": name, **more},
    )


def edits(session: str, path: str = "new.txt", tool: str = "claude", **more: Any) -> Step:
    return lambda root: (tool, edit(root, session, path, **more))


def types(session: str, line: str, tool: str = "claude", **more: Any) -> Step:
    return lambda root: (tool, shell(root, session, line, **more))


after: dict[str, Any] = {"hook_event_name": "PostToolUse"}
STEPS: tuple[Step, ...] = (
    event("SessionStart", "ada", source="startup", model="some"),
    event("SessionStart", "bob", source="startup"),
    edits("ada"),
    edits("bob"),
    edits("ada", **after),
    edits("bob", "src/app.py"),
    types("ada", "echo x > src/app.py"),
    types("ada", "cd src && sed -i s/a/b/ app.py && make"),
    types("ada", "echo $HOME/$USER > ~/x && ls"),
    types("ada", "git push origin main", run_in_background=True),
    types("ada", "npm publish"),
    types("bob", "npm publish"),
    types("ada", "npm publish", **after, tool_response={"stderr": "failed"}),
    types("bob", "git commit -am x", **after, tool_response={"stderr": "index.lock exists"}),
    edits("ada", ".claude/settings.json"),
    types("ada", "rm -rf .git/coord"),
    types("ada", "coord uninstall"),
    edits("ada", "../elsewhere.txt"),
    lambda root: ("claude", edit(root, "ada", tool_name="mcp__files__write")),
    lambda root: ("gemini", edit(root, "eve", hook_event_name="BeforeTool", tool_name="write_file")),
    lambda root: (
        "codex",
        edit(
            root,
            "kim",
            tool_name="apply_patch",
            tool_input={"command": "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch"},
        ),
    ),
    event("UserPromptSubmit", "ada", prompt="hello"),
    event("UserPromptSubmit", "bob", prompt="hello"),
    event("SubagentStart", "ada", agent_id="sub1", agent_type="review"),
    edits("ada", "sub.txt", agent_id="sub1", agent_type="review"),
    edits("bob", "sub.txt"),
    event("SubagentStop", "ada", agent_id="sub1", agent_type="review"),
    event("Stop", "bob"),
    event("Stop", "bob", stop_hook_active=True),
    event("Stop", "ada"),
    event("Notification", "ada", message="?"),
    lambda root: ("claude", {**edit(root, "ada"), "session_id": "bad id"}),
    event("SessionEnd", "bob", reason="other"),
    edits("ada", "src/app.py"),
    event("SessionEnd", "ada", reason="other"),
)


def test_every_answer_is_that_of_the_hook_itself(tmp_path: Path, environ: Environ) -> None:
    """INT-5: one list of events, in two repositories, with and without a hub: the same bytes."""
    direct, through = prepared(tmp_path / "a/shop", environ), prepared(tmp_path / "b/shop", environ)
    with serving(through, environ):
        for number, step in enumerate(STEPS):
            tool, payload = step(direct)
            expected = run_hook({**environ, "COORD_HUB": "off"}, payload, tool, str(direct / ".git"))
            tool, payload = step(through)
            found = run_hook(environ, payload, tool, str(through / ".git"))
            assert masked(found, through) == masked(expected, direct), (number, payload)
    assert held(direct, environ) == held(through, environ)


@pytest.mark.parametrize("number", [2, 3, 4, 6, 7, 21, 27])
def test_the_hub_itself_answers(tmp_path: Path, environ: Environ, number: int) -> None:
    """The table above would prove nothing if each hook fell back."""
    root = prepared(tmp_path / "shop", environ)
    tool, payload = STEPS[number](root)
    with serving(root, environ):
        found = run_hook(environ, payload, tool, program=ONLY_THROUGH_HUB)
    assert "fell back" not in found.said


def held(root: Path, environ: Environ) -> dict[str, str]:
    with connect(cwd=str(root), environ={**environ, "COORD_HUB": "off"}, session="watcher") as client:
        return {lock.resource: lock.owner for lock in client.locks()}


def locked_by_bob(root: Path, environ: Environ, path: str = "new.txt") -> None:
    with connect(cwd=str(root), environ={**environ, "COORD_HUB": "off"}, session="bob") as client:
        client.acquire(path)


def refused(found: Printed) -> bool:
    return "new.txt is locked by session bob" in found.out


def test_a_session_lives_in_the_process_of_its_tool(repository: Path, environ: Environ) -> None:
    """The kernel tells the hub which process asks, so the tool is found as the hook would find it."""
    with serving(repository, environ):
        for session, hub in (("ada", ""), ("bob", "off")):
            payload = edit(repository, session, f"{session}.txt")
            run_hook({**environ, "COORD_HUB": hub, "CLAUDE_PID": str(os.getpid())}, payload)
    with connect(cwd=str(repository), environ={**environ, "COORD_HUB": "off"}, session="eve") as client:
        assert [client.show(session).pid for session in ("ada", "bob")] == [os.getpid()] * 2


def test_a_killed_hub_is_replaced_by_the_hook_itself(repository: Path, environ: Environ) -> None:
    """A hub that was killed leaves its socket behind; held files stay held."""
    locked_by_bob(repository, environ)
    with serving(repository, environ) as hub:
        assert refused(run_hook(environ, edit(repository, "ada"), program=ONLY_THROUGH_HUB))
        hub.kill()
        assert os.path.exists(hub.socket)
        assert refused(run_hook(environ, edit(repository, "ada")))
        assert run_hook(environ, edit(repository, "ada", "free.txt")) == (0, "", "")


def test_a_frozen_hub_freezes_nobody(repository: Path, environ: Environ) -> None:
    """The hook answers itself in time, and the hub does nothing in its name when it wakes up."""
    locked_by_bob(repository, environ)
    with serving(repository, environ) as hub:
        os.kill(hub.process.pid, signal.SIGSTOP)
        soon = {**environ, "COORD_HOOK_DEADLINE": "20"}
        try:
            assert refused(run_hook(soon, edit(repository, "ada")))
            assert run_hook(soon, edit(repository, "ada", "free.txt")) == (0, "", "")
            end = {"session_id": "ada", "cwd": str(repository), "hook_event_name": "SessionEnd"}
            assert run_hook(soon, end) == (0, "", "")
            assert held(repository, environ) == {"file:new.txt": "bob"}
        finally:
            os.kill(hub.process.pid, signal.SIGCONT)
        assert refused(run_hook(environ, edit(repository, "eve"), program=ONLY_THROUGH_HUB))
        assert held(repository, environ) == {"file:new.txt": "bob"}


@contextmanager
def false_hub(environ: Environ, answer: bytes | None) -> Iterator[list[bytes]]:
    """Serve a socket in the place of the hub's, with one answer to everything; yield what it gets."""
    folder = Path(environ["XDG_RUNTIME_DIR"]) / "coord"
    folder.mkdir(mode=0o700, exist_ok=True)
    got: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "hub.sock"))
        server.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    got.append(client.recv(65536))
                    if answer is None:
                        client.recv(1)  # until the hook gives up
                    else:
                        client.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield got
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + body


ALLOWED = b"%b 0 0 -\n" % hub_client.VERSION


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\r\n\r\n",
        b"garbage\r\n\r\n",
        http(ALLOWED, "409 Conflict"),
        http(ALLOWED, "404 Not Found"),
        http(b"9.9.9 0 0 -\n"),
        http(ALLOWED, length=100),
        http(ALLOWED[:-4]),
        http(b""),
        http(b"%b 0 77 -\n{}" % hub_client.VERSION),
        http(b"%b x 0 -\n" % hub_client.VERSION),
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + ALLOWED,
        None,
    ],
    ids=[
        *("closed", "empty", "garbage", "refused", "unknown", "version", "half", "cut", "nothing"),
        *("short", "code", "alive", "endless", "silent"),
    ],
)
def test_anything_but_a_whole_answer_is_no_answer(
    repository: Path, environ: Environ, answer: bytes | None
) -> None:
    """A hook that asks a broken hub refuses what it would refuse without one."""
    locked_by_bob(repository, environ)
    with false_hub(environ, answer) as got:
        assert refused(run_hook({**environ, "COORD_HOOK_DEADLINE": "20"}, edit(repository, "ada")))
    assert got, "the hook asked"


def spoil_folder(folder: Path) -> None:
    folder.chmod(0o755)


def make_link(folder: Path) -> None:
    (folder / "hub.sock").rename(folder / "other.sock")
    (folder / "hub.sock").symlink_to("other.sock")


def link_folder(folder: Path) -> None:
    folder.rename(folder.with_name("real"))
    folder.symlink_to("real")


def give_away(folder: Path) -> None:
    if os.getuid():
        pytest.skip("only root can give a socket to another user")
    os.chown(folder / "hub.sock", 12345, 12345)


@pytest.mark.parametrize("spoil", [spoil_folder, make_link, link_folder, give_away])
def test_a_socket_that_others_could_have_made_is_not_used(
    repository: Path, environ: Environ, spoil: Callable[[Path], None]
) -> None:
    locked_by_bob(repository, environ)
    with false_hub(environ, http(ALLOWED)) as got:
        spoil(Path(environ["XDG_RUNTIME_DIR"]) / "coord")
        assert refused(run_hook(environ, edit(repository, "ada")))
    assert got == []


def test_the_environment_cannot_lead_a_hook_elsewhere(
    repository: Path, environ: Environ, tmp_path: Path
) -> None:
    """COORD_HUB may switch the hub off; a socket that it names gets nothing from a hook."""
    locked_by_bob(repository, environ)
    with private_home(tmp_path / "other") as other, false_hub(other, http(ALLOWED)) as got:
        where = f"{other['XDG_RUNTIME_DIR']}/coord/hub.sock"
        assert refused(run_hook({**environ, "COORD_HUB": where}, edit(repository, "ada")))
    assert got == []


def test_an_agent_may_not_replace_the_socket(repository: Path, environ: Environ) -> None:
    """A false hub in the place of the real one would allow everything."""
    path = f"{environ['XDG_RUNTIME_DIR']}/coord/hub.sock"
    with serving(repository, environ):
        for payload in (
            edit(repository, "ada", tool_input={"file_path": path, "content": ""}),
            shell(repository, "ada", f"rm {path}"),
            shell(repository, "ada", "mv $XDG_RUNTIME_DIR/coord/hub.sock x"),
            shell(repository, "ada", f"rm -rf {environ['XDG_RUNTIME_DIR']}/coord"),
        ):
            found = run_hook(environ, payload, program=ONLY_THROUGH_HUB)
            assert "configures hooks, and agents may not" in found.out, (payload, found)


def test_reads_do_not_ask_the_hub(repository: Path, environ: Environ) -> None:
    with false_hub(environ, http(b"%b 2 0 -\nno" % hub_client.VERSION)) as got:
        assert run_hook(environ, edit(repository, "ada", tool_name="Read")) == (0, "", "")
    assert got == []


DIES = [
    *ONLY_THROUGH_HUB[:2],
    "import os; from coord.integrations.hooks import hub_client\n"
    "hub_client.HubAnswer.confirm = lambda *_: os._exit(9)\n" + ONLY_THROUGH_HUB[2],
]


@pytest.mark.parametrize(("program", "left"), [(ONLY_THROUGH_HUB, 0), (DIES, 1)])
def test_a_message_that_nobody_printed_is_not_received(
    repository: Path, environ: Environ, program: list[str], left: int
) -> None:
    """A hook that dies between the hub's answer and its own loses no message."""
    prompt = {"session_id": "ada", "cwd": str(repository), "hook_event_name": "UserPromptSubmit"}
    run_hook(environ, edit(repository, "ada"))
    with connect(cwd=str(repository), environ={**environ, "COORD_HUB": "off"}, session="bob") as bob:
        bob.send("ada", "note", "look at this")
    with serving(repository, environ) as hub:
        found = run_hook(environ, prompt, program=program)
        assert hub.stop() == 0
    assert "look at this" in found.out
    with connect(cwd=str(repository), environ={**environ, "COORD_HUB": "off"}, session="ada") as ada:
        assert len(ada.recv(peek=True).messages) == left


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b'{"tool_name": "Write"', b"\xef\xbb\xbf{}"])
def test_input_that_cannot_be_read_is_refused_through_the_hub_too(
    repository: Path, environ: Environ, data: bytes
) -> None:
    with serving(repository, environ):
        found = run_hook(environ, data)
    assert found == run_hook({**environ, "COORD_HUB": "off"}, data)
    assert found.code == 2


ALWAYS_LOADED = "import sys; print(*sorted(sys.modules))"


def test_through_the_hub_a_hook_loads_next_to_nothing(repository: Path, environ: Environ) -> None:
    """Python takes 5.8 ms to start; `os`, `json` and the packages of coord would add a fifth."""
    bare = subprocess.run([sys.executable, "-I", "-S", "-c", ALWAYS_LOADED], capture_output=True, check=True)
    words = [sys.executable, "-I", "-S", "-X", "importtime", PROGRAM[-1], "claude"]
    with serving(repository, environ):
        found = run_hook(environ, edit(repository, "ada"), program=words[:-1])
    assert (found.code, found.out) == (0, "")
    loaded = {line.rpartition("|")[2].strip() for line in found.said.splitlines()}
    assert loaded - set(bare.stdout.decode().split()) <= {"imported package", "_stat", "_socket", "zipimport"}


def test_the_versions_are_one(repository: Path) -> None:
    assert hub_client.VERSION.decode() == wire.VERSION


def test_many_hooks_at_once(repository: Path, environ: Environ) -> None:
    """Twelve sessions want one file: one gets it, and the others hear who has it."""
    with serving(repository, environ):
        running = [
            subprocess.Popen([*PROGRAM, "claude"], env=environ, stdin=-1, stdout=-1, stderr=-1)
            for _ in range(12)
        ]
        found = [
            each.communicate(json.dumps(edit(repository, f"s{number}")).encode())[0]
            for number, each in enumerate(running)
        ]
    assert sum(not each for each in found) == 1
    assert all(b"new.txt is locked by claude" in each for each in found if each)
