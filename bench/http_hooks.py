"""A hook that Claude Code sends to the hub by HTTP, as a process sees it that keeps its connection."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from coord.integrations.hooks.http_hooks import PATH
from coord.sdk.client.client import connect

CLAUDE = """
import http.client, json, sys
from time import perf_counter
open("/proc/self/comm", "w").write("claude")
port, times, path, token, before, after = sys.argv[1:]
connection = http.client.HTTPConnection("127.0.0.1", int(port))
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
took = []
for _ in range(int(times)):
    for event in (before, after):
        began = perf_counter()
        connection.request("POST", path, event, headers)
        answer = connection.getresponse()
        body = answer.read()
        assert (answer.status, b"deny" in body) == (200, False), body
        if event is before:
            took.append((perf_counter() - began) * 1000)
print(json.dumps(took))
"""
"""A program of the name that the hub asks the kernel for."""


def http_hooks(hub: str, repository: Path, environ: dict[str, str], times: int) -> list[float]:
    """Return what the answer before an edit takes in ms."""
    with connect(cwd=str(repository), environ=environ) as person:
        token = person.create_token("operate").text
    call = {"tool_name": "Write", "tool_input": {"file_path": f"{repository}/2"}, "tool_use_id": "c"}
    event = {"session_id": "bench-http", "cwd": str(repository), **call}
    events = [json.dumps({**event, "hook_event_name": name}) for name in ("PreToolUse", "PostToolUse")]
    words = [sys.executable, "-c", CLAUDE, str(urlsplit(hub).port), str(times), PATH, token, *events]
    done = subprocess.run(words, env=environ, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[float] = json.loads(done.stdout)
    return found
