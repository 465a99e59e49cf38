"""The real agents report their usage to a hub, set up as `coord telemetry` says."""

import shlex
import tempfile
from pathlib import Path

import pytest

from coord.core.tokens.schema import Role
from coord.integrations.telemetry.setup import RESOURCE, VARIABLE, hub_url, lines_for, with_session
from coord.sdk.log_reader import logged_events
from tests.support.agents.drive import TOOLS, run_agent
from tests.support.agents.prepared import client_of, environ_of, prepared
from tests.support.agents.script import Edit
from tests.support.hub.process import serving

REQUESTS = 2
"""The scripted model answers with one edit and one text, of one token in and one out each."""


def settings(tool: str, url: str, token: str, home: Path) -> dict[str, str]:
    """Do what `coord telemetry` prints; return the environment of the tool."""
    lines = lines_for(tool, url).replace(f"${VARIABLE}", token).replace("TOKEN", token)
    if tool == "codex":
        file = home / ".codex/config.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text((file.read_text() if file.exists() else "") + "\n" + lines)
        return {}
    words = [shlex.split(line)[1] for line in lines.splitlines() if line.startswith("export ")]
    found = dict(word.split("=", 1) for word in words)
    return {**found, "DISABLE_TELEMETRY": ""}


@pytest.mark.parametrize("tool", TOOLS)
def test_an_agent_reports_what_it_used(tool: str, tmp_path: Path) -> None:
    """The session is the one that its hooks registered; the text of the prompt is nowhere."""
    place = prepared(tmp_path, tool)
    with tempfile.TemporaryDirectory(prefix="ch-", dir="/tmp") as run:
        environ = {**environ_of(place), "XDG_RUNTIME_DIR": run}
        with serving(place.repository, environ) as hub:
            with client_of(place, "") as client:
                token = client.create_token(Role.REPORT).text
            environment = settings(tool, hub_url(environ), token, place.home)
            script = (Edit("free.txt", "new\n"),)
            outcome = run_agent(tool, script, place.repository, place.home, environment=environment)
            assert outcome.exit_code == 0, outcome.errors
            assert hub.stop() == 0, "it writes what it has gathered"
    with client_of(place, "watcher") as client:
        (session,) = client.usage("session", all_projects=True).totals
        (model,) = client.usage("model", all_projects=True).totals
        registered = client.show(session.name)
        reported = [
            each.details
            for each in logged_events(client.log.tail(0, 10_000))
            if each.event == "usage.reported"
        ]
    assert registered.session_id == session.name
    assert session.amounts.requests >= REQUESTS
    assert (session.amounts.input, session.amounts.output) == (session.amounts.requests,) * 2
    assert (session.amounts.cost > 0) is (tool == "claude"), "only Claude Code reports a cost"
    assert session.amounts.spent > 0
    assert session.context_percent == 0
    assert model.name.startswith({"claude": "claude-", "codex": "gpt-", "gemini": "gemini-"}[tool])
    assert {each["tool"] for each in reported} == {tool}
    assert "Do your work" not in repr(reported)


def test_an_agent_of_coord_work_reports_for_its_worker(tmp_path: Path) -> None:
    """The worker has the claim, and the tool another session id; its resource names the worker."""
    place = prepared(tmp_path, "codex")
    with tempfile.TemporaryDirectory(prefix="ch-", dir="/tmp") as run:
        environ = {**environ_of(place), "XDG_RUNTIME_DIR": run}
        with serving(place.repository, environ) as hub:
            with client_of(place, "") as client:
                token = client.create_token(Role.REPORT).text
            environment = settings("codex", hub_url(environ), token, place.home)
            environment[RESOURCE] = with_session({}, "work-1")
            run_agent("codex", (), place.repository, place.home, environment=environment)
            hub.stop()
    with client_of(place, "watcher") as client:
        assert [each.name for each in client.usage("session", all_projects=True).totals] == ["work-1"]
