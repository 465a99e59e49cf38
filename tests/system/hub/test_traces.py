"""A real hub sends spans to the collector that a person named, and commands never wait for it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.consent import write_configuration
from tests.support.git_folders import made_repository
from tests.support.hub.collector import collecting
from tests.support.hub.process import PATIENCE_S, private_home, serving
from tests.support.servers.server import poll_until


def coord(shop: Path, environ: Mapping[str, str], *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "coord", *words],
        cwd=shop,
        env={**environ, "COORD_SESSION_ID": "ada", "COORD_AGENT": "ada"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_claims_and_locks_of_agents_become_one_trace(tmp_path: Path) -> None:
    """Only after a person has confirmed the file; without a hub, the list says that nobody sends them."""
    made_repository(tmp_path / "shop")
    shop = tmp_path / "shop"
    with private_home(tmp_path / "private") as environ, collecting() as collector:
        text = f'[telemetry]\ntraces = "{collector.url}"\n'
        (shop / "coord.toml").write_text(text)
        coord(shop, environ, "task", "add", "T1")
        rows = {row["name"]: row for row in coord(shop, environ, "follow", "list")["followers"]}
        assert rows["traces"]["state"] == "off", "the file is not confirmed"
        write_configuration(shop, text, environ)
        rows = {row["name"]: row for row in coord(shop, environ, "follow", "list")["followers"]}
        assert rows["traces"]["error"].startswith("nobody runs it")
        with serving(shop, environ) as hub:
            poll_until(
                lambda: coord(shop, environ, "follow", "list")["followers"][-1]["state"] == "running",
                PATIENCE_S,
                "the hub does not trace",
            )
            coord(shop, environ, "task", "claim", "T1")
            coord(shop, environ, "lock", "a.py")
            coord(shop, environ, "unlock", "a.py")
            coord(shop, environ, "task", "submit", "T1", "1")
            poll_until(
                lambda: sorted(collector.names()) == ["coord.claim", "coord.lock.hold"],
                PATIENCE_S,
                "the spans did not arrive",
            )
            assert len({span["traceId"] for span in collector.spans}) == 1
            assert hub.stop() == 0
        assert len(collector.spans) == 2, "a stop sends nothing again"
