"""Hooks that Claude Code sends by HTTP: the hook program's answers, and a refusal in any doubt."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coord.integrations.setup.http.checks import check_http
from coord.integrations.setup.http.token_file import token_path
from coord.integrations.setup.tools import HttpForm
from coord.sdk.client.client import Client, connect
from coord.sdk.client.open import initialise
from tests.support.git_folders import made_repository
from tests.support.hub.hooks import edit, run_hook, shell
from tests.support.hub.http_hooks import StandIn, claude
from tests.support.hub.process import RunningHub, private_home, serving
from tests.support.servers.server import poll_until

AFTER = {"hook_event_name": "PostToolUse"}


class Served(NamedTuple):
    """A repository with a hub, and a token that may act there."""

    root: Path
    environ: dict[str, str]
    hub: RunningHub
    token: str

    def client(self, session: str, root: Path | None = None) -> Client:
        return connect(session=session, cwd=str(root or self.root), environ=self.environ)

    def owners(self) -> dict[str, str]:
        with self.client("watcher") as watcher:
            return {lock.resource: lock.owner for lock in watcher.locks()}

    def new_token(self, role: str = "operate", **limits: Any) -> str:
        with connect(cwd=str(self.root), environ=self.environ) as person:
            return str(person.create_token(role, **limits).text)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("http")
    with private_home(folder / "private") as home:
        environ = {**home, "USER": "somebody", "COORD_HOOK_DEADLINE": "60"}
        root = prepared(folder / "shop", environ)
        with serving(root, environ) as hub:
            served = Served(root, environ, hub, "")
            yield served._replace(token=served.new_token())


def prepared(root: Path, environ: dict[str, str]) -> Path:
    made_repository(root)
    initialise(str(root), environ)
    return root


@pytest.fixture
def ada(served: Served) -> Iterator[StandIn]:
    with claude(served.hub.url, served.environ, served.token) as found:
        yield found


def test_the_answers_are_those_of_the_hook_program(served: Served, ada: StandIn) -> None:
    """INT-5: a lock for an edit, the same refusal for others in both forms, and a session with a process."""
    assert ada.send(edit(served.root, "http-ada", "one.txt")).allows
    assert served.owners()["file:one.txt"] == "http-ada"
    with served.client("watcher") as watcher:
        assert watcher.show("http-ada").pid == ada.process.pid
    by_program = run_hook(served.environ, edit(served.root, "http-bob", "one.txt"))
    with claude(served.hub.url, served.environ, served.token) as bob:
        by_http = bob.send(edit(served.root, "http-bob", "one.txt"))
    assert by_http.denied == by_program.reason
    assert "one.txt is locked by claude (session http-ada)" in by_http.denied
    forbidden = ada.send(shell(served.root, "http-ada", "coord uninstall"))
    assert "removes the hooks" in forbidden.denied
    assert ada.send(edit(served.root, "http-ada", "one.txt", **AFTER)).status == 200


def test_messages_arrive_once(served: Served, ada: StandIn) -> None:
    ada.send(edit(served.root, "reader", "two.txt"))
    with served.client("writer") as writer:
        writer.send("reader", "lunch", "lunch?")
    seen = [ada.send(edit(served.root, "reader", "two.txt", **AFTER)).body for _ in range(2)]
    assert ["lunch?" in each for each in seen] == [True, False]
    with served.client("reader") as reader:
        poll_until(lambda: not reader.recv(peek=True).messages, 10, "it is not received")


def test_a_process_acts_for_its_own_session(served: Served, ada: StandIn) -> None:
    """Another process with the same token that names the session of ada gets none of its locks."""
    assert ada.send(edit(served.root, "owner", "three.txt")).allows
    with claude(served.hub.url, served.environ, served.token) as thief:
        assert (
            "locked by claude (session owner)" in thief.send(edit(served.root, "owner", "three.txt")).denied
        )
        thief.send(edit(served.root, "owner", "three.txt", **AFTER))
    assert served.owners()["file:three.txt"] == "owner"


def test_a_hub_that_wakes_up_late_takes_no_lock(served: Served, ada: StandIn) -> None:
    """Claude Code gave up, blocked the call and closed its connection while the hub was frozen."""
    assert ada.send(edit(served.root, "sleepy", "before.txt")).allows
    os.kill(served.hub.process.pid, signal.SIGSTOP)
    ada.send(edit(served.root, "sleepy", "late.txt"), leaves=True)
    os.kill(served.hub.process.pid, signal.SIGCONT)
    assert ada.send(edit(served.root, "sleepy", "next.txt")).allows
    owners = served.owners()
    assert ("file:next.txt" in owners, "file:late.txt" in owners) == (True, False)


@pytest.mark.parametrize("name", ["curl", "python3"])
def test_only_claude_asks(served: Served, name: str) -> None:
    """A program that found the token is no hook: the kernel names the process."""
    with claude(served.hub.url, served.environ, served.token, name=name) as other:
        assert "does not come from a process of Claude Code" in other.send(edit(served.root, "x", "4")).denied
    assert "file:4" not in served.owners()


@pytest.mark.parametrize("token", ["", "coord_x", "coord_0123456789abcdef_default_aaaa"])
def test_a_wrong_token_is_no_permission(served: Served, ada: StandIn, token: str) -> None:
    assert ada.send(edit(served.root, "stranger", "six.txt"), token=token).status == 401
    assert "file:six.txt" not in served.owners()


def test_a_token_without_the_right_to_act_refuses(served: Served, ada: StandIn) -> None:
    answered = ada.send(edit(served.root, "viewer", "seven.txt"), token=served.new_token("view"))
    assert "the role operate" in answered.denied
    assert "file:seven.txt" not in served.owners()


def test_the_limits_of_a_token_hold(served: Served, ada: StandIn) -> None:
    """A token for one session or one project answers no hook of another."""
    mine = served.new_token(session="limited")
    assert ada.send(edit(served.root, "limited", "eight.txt"), token=mine).allows
    assert "limited to session" in ada.send(edit(served.root, "other", "nine.txt"), token=mine).denied
    project = served.new_token(project="elsewhere")
    assert (
        "this token is for project elsewhere"
        in ada.send(edit(served.root, "p", "ten.txt"), token=project).denied
    )
    assert not {"file:nine.txt", "file:ten.txt"} & set(served.owners())


def test_a_token_is_for_its_own_repository(served: Served, ada: StandIn, tmp_path: Path) -> None:
    """The folder of the event decides the repository, and so does the file that an edit writes."""
    other = prepared(tmp_path / "other", served.environ)
    refused = ada.send(edit(other, "guest", "new.txt"))
    assert "this token is for another repository" in refused.denied
    across = edit(served.root, "guest", "new.txt", tool_input={"file_path": str(other / "new.txt")})
    assert "this token is for another repository" in ada.send(across).denied
    with served.client("watcher", other) as watcher:
        assert watcher.locks() == []


def test_a_store_that_is_gone_is_no_permission(served: Served, ada: StandIn, tmp_path: Path) -> None:
    other = prepared(tmp_path / "gone", served.environ)
    shutil.rmtree(other / ".git/coord")
    (other / ".git/coord.id").unlink(missing_ok=True)
    found = ada._replace(git_directory=str(other / ".git")).send(edit(other, "guest", "new.txt"))
    assert "coord was set up in this repository" in found.denied
    assert "writes are blocked" in found.denied


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "[]", "null", '"PreToolUse"', "[" * 100_000, '{"hook_event_name": 5}'),
        *('{"hook_event_name": "SessionEnd"}', '{"hook_event_name": "ConfigChange"}', "\u00e9"),
    ],
)
def test_what_is_no_event_of_a_call_is_refused(ada: StandIn, body: str) -> None:
    """Claude Code blocks a call whose hook gets an error; any object with status 200 would allow it."""
    answered = ada.send(body)
    assert answered.status == 400
    assert not answered.allows


@pytest.mark.parametrize(
    "changes", [{"cwd": "relative"}, {"cwd": 5}, {"session_id": "a b"}, {"session_id": ""}, {"cwd": ""}]
)
def test_a_damaged_event_is_no_permission(served: Served, ada: StandIn, changes: dict[str, Any]) -> None:
    event = {**edit(served.root, "damaged", "eleven.txt"), **changes}
    assert not ada.send(event).allows
    assert "file:eleven.txt" not in served.owners()


def test_variables_come_as_headers(served: Served, ada: StandIn) -> None:
    """Settings of Claude Code may change them after its start, and commands of hooks see them."""
    event = edit(served.root, "tools-own-id", "twelve.txt")
    assert ada.send(event, Coord_Session_Id="chosen").allows
    assert served.owners()["file:twelve.txt"] == "chosen"
    assert not ada.send(event, Coord_Tenant="acme").allows


@pytest.mark.parametrize(
    ("headers", "status"), [({"Host": "evil.example"}, 421), ({"Origin": "http://evil.example"}, 403)]
)
def test_a_web_page_is_refused(served: Served, ada: StandIn, headers: dict[str, Any], status: int) -> None:
    assert ada.send(edit(served.root, "page", "thirteen.txt"), **headers).status == status


def test_another_home_is_refused(served: Served, tmp_path: Path) -> None:
    """The hub sees other files and settings than such a tool."""
    environ = {**served.environ, "HOME": str(tmp_path)}
    with claude(served.hub.url, environ, served.token) as stranger:
        assert "it has another home" in stranger.send(edit(served.root, "homeless", "14.txt")).denied


def test_the_doctor_sees_what_the_hub_says_of_a_token(served: Served) -> None:
    """It measures the form that is in use, and finds a token that ended or may not act."""
    form = HttpForm(served.hub.url, "COORD_HOOK_TOKEN_0")
    path = Path(token_path(served.environ, form.variable))
    path.parent.mkdir(parents=True, exist_ok=True)

    def found(token: str) -> list[tuple[str, str]]:
        path.unlink(missing_ok=True)
        path.touch(0o600)
        path.write_text(token)
        return [(each.state, each.message) for each in check_http(form, str(served.root), served.environ)]

    good, unset = found(served.token)
    assert good[0] == "ok"
    assert re.search(r"hooks by HTTP, the hub answers in \d+\.\d ms \(p50 of 5\)", good[1])
    assert unset == (
        "warn",
        "COORD_HOOK_TOKEN_0 is not set in this shell: Claude Code started here cannot change files",
    )
    assert "may not act" in found(served.new_token("view"))[0][1]
    with connect(cwd=str(served.root), environ=served.environ) as person:
        new = person.create_token("operate")
        person.revoke_token(new.info.id)
    assert "it was revoked, or has expired" in found(new.text)[0][1]
