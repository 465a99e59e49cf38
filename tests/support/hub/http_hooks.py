"""Hooks that Claude Code sends by HTTP: a process of that name with one connection to the hub."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from coord.integrations.hooks.http_hooks import PATH

STAND_IN = """
import http.client, json, sys
open("/proc/self/comm", "w").write(sys.argv[1])
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), timeout=60)
for line in sys.stdin:
    path, body, headers, leaves = json.loads(line)
    connection.request("POST", path, body.encode(), headers)
    if leaves:
        connection.close()
        print("[0, \\"\\"]", flush=True)
        continue
    answer = connection.getresponse()
    print(json.dumps([answer.status, answer.read().decode()]), flush=True)
"""


class Answered(NamedTuple):
    """What the hub answered to a hook."""

    status: int
    body: str

    @property
    def allows(self) -> bool:
        """Whether Claude Code would run the call: it takes every object without a decision for a yes."""
        return self.status == 200 and not self.denied

    @property
    def denied(self) -> str:
        """Why the call is refused; "" if it is not."""
        said = json.loads(self.body or "{}").get("hookSpecificOutput", {})
        return str(said["permissionDecisionReason"]) if said.get("permissionDecision") == "deny" else ""


class StandIn(NamedTuple):
    """A process that sends hooks."""

    process: "subprocess.Popen[str]"
    token: str
    git_directory: str = ""

    def send(
        self,
        event: Mapping[str, Any] | str,
        *,
        token: str | None = None,
        leaves: bool = False,
        **headers: str,
    ) -> Answered:
        """Send an event over the same connection as before; one that `leaves` waits for no answer."""
        body = event if isinstance(event, str) else json.dumps(event)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        bearer = self.token if token is None else token
        head = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json", **named}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        path = f"{PATH}?git={quote(self.git_directory)}"
        self.process.stdin.write(json.dumps([path, body, head, leaves]) + "\n")
        self.process.stdin.flush()
        return Answered(*json.loads(self.process.stdout.readline()))


@contextmanager
def claude(
    url: str, environ: Mapping[str, str], token: str, *, name: str = "claude", git_directory: str = ""
) -> Iterator[StandIn]:
    """Run a process called `claude` that sends hooks to a hub."""
    process = subprocess.Popen(
        [sys.executable, "-c", STAND_IN, name, str(urlsplit(url).port)],
        env=dict(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield StandIn(process, token, git_directory)
    finally:
        process.kill()
        process.communicate()
