"""Telemetry is on for one store, by a token that only reports, in files that only its user can read."""

import os
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coord import connect
from coord.core.errors import Refused
from coord.core.tokens.schema import Role
from coord.integrations.telemetry.setup import CLAUDE, GEMINI, variables
from coord.integrations.telemetry.switch import (
    STATE,
    read_telemetry,
    switch_off,
    switch_on,
    variables_of_worker,
)
from coord.sdk.client.client import Client
from tests.support.git_folders import made_repository

URL = "http://127.0.0.1:7420"


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Return the client of a person in a repository."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("COORD_SESSION_ID", "COORD_AGENT", "CLAUDECODE", "AI_AGENT"):
        monkeypatch.delenv(name, raising=False)
    made_repository(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    with connect() as client:
        yield client


def test_on_writes_private_files_with_a_token_that_only_reports(person: Client) -> None:
    found = switch_on(person, URL)
    for name in os.listdir(found.folder):
        assert stat.S_IMODE(os.stat(f"{found.folder}/{name}").st_mode) == 0o600
    assert stat.S_IMODE(os.stat(found.folder).st_mode) == 0o700
    (token,) = person.tokens()
    assert (token.role, token.label, token.session) == (Role.REPORT, "telemetry", "")
    said = subprocess.run(
        ["sh", "-c", f". {shlex.quote(found.script)}; env"], capture_output=True, text=True, check=True
    )
    environ = dict(line.split("=", 1) for line in said.stdout.splitlines() if "=" in line)
    assert {**environ, **variables(URL, found.token, CLAUDE, GEMINI)} == environ
    assert environ["OTEL_EXPORTER_OTLP_HEADERS"] == f"Authorization=Bearer {found.token}"
    assert f'"Bearer {found.token}"' in Path(found.codex).read_text()


def test_on_again_keeps_the_token_and_off_ends_it(person: Client) -> None:
    assert not switch_off(person)
    first = switch_on(person, URL)
    again = switch_on(person, "http://127.0.0.1:7777")
    assert (again.token, again.url) == (first.token, "http://127.0.0.1:7777")
    person.revoke_token(person.tokens()[0].id)
    third = switch_on(person, URL)
    assert third.token != first.token, "one that was revoked is replaced"
    assert switch_off(person)
    assert person.tokens() == []
    assert read_telemetry(person) is None
    assert not os.path.exists(first.folder)


def test_what_coord_work_starts_reports_by_itself(person: Client) -> None:
    """Unless the user sends telemetry elsewhere."""
    assert variables_of_worker(person, {}) == {}
    found = switch_on(person, URL)
    assert variables_of_worker(person, {}) == variables(URL, found.token, CLAUDE, GEMINI)
    assert variables_of_worker(person, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://mine"}) == {}


def test_a_file_that_others_can_read_is_not_believed(person: Client) -> None:
    found = switch_on(person, URL)
    os.chmod(f"{found.folder}/{STATE}", 0o644)
    with pytest.raises(Refused, match="not private"):
        read_telemetry(person)
    assert variables_of_worker(person, {}) == {}
    Path(found.folder, STATE).write_text("{")
    os.chmod(f"{found.folder}/{STATE}", 0o600)
    with pytest.raises(Refused, match="damaged"):
        read_telemetry(person)
    assert switch_off(person), "it removes what it cannot read"


def test_an_agent_cannot_switch_it_on(person: Client) -> None:
    """It would get a token for sessions that are not its own."""
    with connect(session="ann", agent="ann") as agent, pytest.raises(Refused, match="is an agent"):
        switch_on(agent, URL)
    assert read_telemetry(person) is None
