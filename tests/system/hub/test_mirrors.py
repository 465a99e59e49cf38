"""Mirrors that a real hub writes, and that commands write when it is gone."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, private_home, serving
from tests.support.servers.server import poll_until

AGENTS = ("ada", "bob")


def coord(repository: Path, environ: Mapping[str, str], *words: str, who: str = "ada") -> dict:
    said = subprocess.run(
        [sys.executable, "-m", "coord", "--session", f"s-{who}", "--agent", who, *words],
        cwd=repository,
        env=dict(environ),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    found: dict = json.loads(said.stdout)
    return found


def claims(repository: Path) -> list[str]:
    text = (repository / ".claude/agent-claims.json").read_text()
    return [each["file"] for each in json.loads(text)["claims"]]


def test_a_hub_writes_mirrors_and_commands_go_on_without_it(tmp_path: Path) -> None:
    """LCK-84, AUD-10: within a moment of a change, and each line once, also when the hub is killed."""
    repository = tmp_path / "shop"
    made_repository(repository)
    log = repository / ".contract/logs/coordination.log"
    with private_home(tmp_path) as environ:
        coord(repository, environ, "register")
        with serving(repository, environ) as hub:
            for name in ("contract", "agent-claims"):
                coord(repository, environ, "mirror", "on", name)
            for number, who in enumerate((*AGENTS, *AGENTS)):
                coord(repository, environ, "lock", f"f{number}.py", who=who)
            poll_until(lambda: len(claims(repository)) == 4, PATIENCE_S, "the hub did not write the claims")
            (repository / ".claude/agent-claims.json").write_text("{}")
            coord(repository, environ, "unlock", "f0.py")
            poll_until(lambda: log.read_text().count("\n") == 5, PATIENCE_S, "the hub did not write its log")
            hub.kill()
        coord(repository, environ, "unlock", "f1.py", who="bob")
        assert claims(repository) == ["f2.py", "f3.py"]
        lines = [line.split(" ", 1)[1] for line in log.read_text().splitlines()]
        assert len(lines) == len(set(lines)) == 6
        with serving(repository, environ):
            coord(repository, environ, "mirror", "off", "contract")
            coord(repository, environ, "lock", "f9.py", "--ttl", "3")
            poll_until(lambda: "f9.py" in claims(repository), PATIENCE_S, "the second hub did not go on")
            assert not (repository / ".contract").exists()
            poll_until(lambda: "f9.py" not in claims(repository), PATIENCE_S, "an expired lock is shown")
