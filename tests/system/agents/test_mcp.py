"""Real agents that use coord through MCP: over `coord mcp`, and over HTTP with a token."""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents.drive import TOOLS, USER_SETTINGS, Outcome, running_agent
from tests.support.agents.prepared import environ_of, locks, prepared
from tests.support.agents.programs import command_of
from tests.support.agents.script import Edit, McpCall, Script
from tests.support.agents.sessions import Place
from tests.support.docs.pages import blocks_in
from tests.support.hub.process import PATIENCE_S, serving

BRIDGE = (sys.executable, "-m", "coord", "mcp")
LOCKED = "by-mcp.txt"
FROM_ELSEWHERE = "from-elsewhere.txt"
SCRIPT: Script = (
    McpCall("coord", "lock", {"action": "acquire", "resources": [LOCKED], "reason": "mine"}),
    Edit(LOCKED, "mine\n"),
    McpCall("hub", "lock", {"action": "acquire", "resources": [FROM_ELSEWHERE], "session": "remote"}),
    McpCall("hub", "lock", {"action": "acquire", "resources": [LOCKED], "session": "remote"}),
)


def settings(tool: str, place: Place, url: str, token: str) -> tuple[str, ...]:
    """Let a tool know both servers, as docs/how-to/mcp.md says; return its arguments for that."""
    bridge = {"command": BRIDGE[0], "args": list(BRIDGE[1:])}
    bearer = {"Authorization": f"Bearer {token}"}
    if tool == "claude":
        servers: dict[str, Any] = {"coord": bridge, "hub": {"type": "http", "url": url, "headers": bearer}}
        (place.home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        return ("--mcp-config", str(place.home / "mcp.json"), "--strict-mcp-config")
    if tool == "codex":
        words = ",".join(f'"{word}"' for word in BRIDGE[1:])
        return (
            *("-c", f'mcp_servers.coord={{command="{BRIDGE[0]}",args=[{words}]}}'),
            *("-c", f'mcp_servers.hub={{url="{url}",bearer_token_env_var="COORD_TOKEN"}}'),
        )
    servers = {"coord": bridge | {"trust": True}, "hub": {"httpUrl": url, "headers": bearer, "trust": True}}
    path = place.home / USER_SETTINGS[tool]
    found = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**found, "mcpServers": servers}))
    return ()


def new_token(place: Place, environ: dict[str, str]) -> str:
    words = [sys.executable, "-m", "coord", "token", "create", "--role", "operate"]
    done = subprocess.run(
        words, cwd=place.repository, env=environ, capture_output=True, check=True, timeout=PATIENCE_S
    )
    return str(json.loads(done.stdout)["token"])


@pytest.mark.parametrize("tool", TOOLS)
def test_an_agent_locks_through_mcp(tool: str, tmp_path: Path) -> None:
    """The lock of the bridge is that of the agent's own session, so its hooks let it edit the file."""
    place = prepared(tmp_path, tool)
    with tempfile.TemporaryDirectory(prefix="ch-", dir="/tmp") as run:
        environ = {**environ_of(place), "XDG_RUNTIME_DIR": run}
        with serving(place.repository, environ) as hub:
            token = new_token(place, environ)
            arguments = settings(tool, place, f"{hub.url}/mcp", token)
            needs = {"XDG_RUNTIME_DIR": run, "COORD_TOKEN": token}
            with running_agent(
                tool, SCRIPT, place.repository, place.home, arguments=arguments, environment=needs
            ) as agent:
                outcome = agent.wait()
    told = outcome.model.was_told()
    results = "\n".join(outcome.model.results())
    assert place.read(LOCKED) == "mine\n", told
    assert "coord coordinates agents" in json.dumps(outcome.model.requests[0]), "the instructions"
    assert f"file:{LOCKED}" in results, told
    assert f"file:{FROM_ELSEWHERE}" in results, told
    assert f"held by {tool}" in results, told
    assert "call wait, then lock again" in results, told
    found = locks(place)
    assert found[f"file:{FROM_ELSEWHERE}"].owner == "remote"
    check_listed(tool, outcome)


def check_listed(tool: str, outcome: Outcome) -> None:
    """Both servers are connected, and their tools known to the agent."""
    if tool == "claude":  # it shows its model only names, until the model looks for one
        begin = next(event for event in outcome.events() if event.get("subtype") == "init")
        assert {each["name"]: each["status"] for each in begin["mcp_servers"]} == {
            "coord": "connected",
            "hub": "connected",
        }
        assert {"mcp__coord__lock", "mcp__hub__wait"} <= {*begin["tools"]}
    elif tool == "gemini":
        offered = json.dumps(outcome.model.requests[0]["tools"])
        assert all(
            f"mcp_{server}_{name}" in offered for server in ("coord", "hub") for name in ("lock", "wait")
        )
    else:
        calls = [event["item"] for event in outcome.events() if event["type"] == "item.completed"]
        used = [(call["server"], call["tool"], call["status"]) for call in calls if "server" in call]
        assert used == [
            ("coord", "lock", "completed"),
            ("hub", "lock", "completed"),
            ("hub", "lock", "failed"),
        ]


PAGE = "docs/how-to/mcp.md"
FILES = {"claude": ".mcp.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json"}


def test_the_page_is_true(tmp_path: Path) -> None:
    """Every command of the page succeeds, and the tools write the settings that it shows."""
    programs = {tool: command_of(tool) for tool in TOOLS}
    if None in programs.values():
        pytest.skip("the coding agents are not installed (tools/setup agents)")
    place = prepared(tmp_path, *TOOLS)
    shims = tmp_path / "bin"
    shims.mkdir()
    for name, words in {**programs, "coord": (sys.executable, "-m", "coord")}.items():
        (shims / name).write_text(f'#!/bin/sh\nexec {shlex.join(words or ())} "$@"\n')
        (shims / name).chmod(0o755)
    blocks = [
        block.replace("coord serve >", "coord serve --listen 127.0.0.1:0 >")
        for block in blocks_in(PAGE, "sh")
    ]
    script = "\n".join(["set -eu", "trap 'coord serve --stop >/dev/null 2>&1 || true' EXIT", *blocks])
    with tempfile.TemporaryDirectory(prefix="ch-", dir="/tmp") as run:
        environ = {**environ_of(place), "XDG_RUNTIME_DIR": run}
        environ["PATH"] = f"{shims}:{environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=place.repository,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S * 2,
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Lock acquired" in done.stdout
    assert re.search("hub: .*/mcp .* Connected", done.stdout)
    shown = [json.loads(block) for block in blocks_in(PAGE, "json")]
    servers = {"claude": shown[0], "gemini": shown[1]}
    for tool, wanted in servers.items():
        where = place.repository if tool == "claude" else place.home
        assert (
            json.loads((where / FILES[tool]).read_text())["mcpServers"]["coord"]
            == wanted["mcpServers"]["coord"]
        )
    (block,) = blocks_in(PAGE, "toml")
    assert block.strip() in (place.home / FILES["codex"]).read_text()
