"""A private Prometheus that scrapes a hub with the shipped configuration and rules."""

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from importlib.resources import files
from pathlib import Path
from typing import Any

from tests.support.servers.server import Server

EXAMPLES = Path(str(files("coord"))) / "examples"
RULES = "prometheus-rules.yml"
CONFIGURATION = "prometheus.yml"
TOKEN = "coord-token"
TARGET = "127.0.0.1:7420"
ASK_S = 10


class PrometheusServer(Server):
    """One server process with its data in a folder; `scrape` says what it reads."""

    name = "prometheus"

    @classmethod
    def program(cls) -> str | None:
        return shutil.which("prometheus")

    @property
    def url(self) -> str:
        """What a client connects to."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        self.scrape(TARGET, "not-a-token")

    def scrape(self, target: str, token: str) -> None:
        """Write the shipped configuration for a target and a token; a server that runs reads it again."""
        (self.folder / TOKEN).write_text(token)
        self.own(self.folder / TOKEN)
        text = (EXAMPLES / CONFIGURATION).read_text().replace(TARGET, target)
        (self.folder / CONFIGURATION).write_text(text.replace("scrape_interval: 15s", "scrape_interval: 1s"))
        shutil.copy(EXAMPLES / RULES, self.folder / RULES)
        if self._process is not None:
            asked = urllib.request.Request(f"{self.url}/-/reload", method="POST")
            with urllib.request.urlopen(asked, timeout=ASK_S):
                pass

    def command(self) -> list[str]:
        settings = {
            "config.file": str(self.folder / CONFIGURATION),
            "storage.tsdb.path": str(self.folder / "data"),
            "web.listen-address": f"127.0.0.1:{self.port}",
        }
        flags = [f"--{name}={value}" for name, value in settings.items()]
        return [str(self.program()), *flags, "--web.enable-lifecycle"]

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=ASK_S) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def ask(self, path: str, **query: str) -> Any:
        """Return what the HTTP API answers."""
        words = f"?{urllib.parse.urlencode(query)}" if query else ""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}{words}", timeout=ASK_S) as answer:
            return json.loads(answer.read())["data"]

    def value(self, expression: str) -> float | None:
        """Return the value of an expression that has one; None if it has none yet."""
        found = self.ask("query", query=expression)["result"]
        return float(found[0]["value"][1]) if found else None


def promtool(*words: str, stdin: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the checker of Prometheus."""
    return subprocess.run(
        ["promtool", *words], input=stdin, cwd=folder, capture_output=True, text=True, check=False
    )
