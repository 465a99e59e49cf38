"""The pages on the hub are carried out as written, by a shell, with a real hub."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs.pages import blocks_in
from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, private_home
from tests.support.servers.postgres import PostgresServer

PAGES = (
    "docs/how-to/use-a-hub.md",
    "docs/how-to/costs.md",
    "docs/how-to/hub-for-a-team.md",
    "docs/how-to/hub-for-tenants.md",
    "docs/how-to/metrics.md",
    "docs/reference/http.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_a_hub_page_is_true(page: str, tmp_path: Path, postgres_server: PostgresServer) -> None:
    """Every command of the page succeeds, one block after the other."""
    made_repository(tmp_path / "shop")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = f"127.0.0.1:{probe.getsockname()[1]}"
    commands = [
        block.replace("coord serve >", "coord serve --listen 127.0.0.1:0 >").replace("127.0.0.1:7421", free)
        for block in blocks_in(page, "sh")
        if "pip install" not in block
    ]
    script = "\n".join(
        [
            "set -eu -o pipefail",
            "trap 'coord serve --stop >/dev/null 2>&1 || true' EXIT",
            *commands,
        ]
    )
    claude = tmp_path / "bin/claude"
    claude.parent.mkdir()
    claude.write_text("#!/bin/sh\necho '2.1.325 (Claude Code)'\n")
    claude.chmod(0o755)
    with private_home(tmp_path / "private") as home:
        environ = {
            **home,
            "PATH": f"{Path(sys.executable).parent}:{claude.parent}:{home['PATH']}",
            "STORE_URL": postgres_server.fresh_url() if "team" in page else "",
            "USER": "ann",
        }
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path / "shop",
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S * 2,
        )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
