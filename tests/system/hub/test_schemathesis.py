"""Schemathesis against a running hub: the OpenAPI document is true, and nothing makes the hub fail."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, private_home, serving

ROOT = Path(__file__).parents[3]
SOAK = "COORD_SOAK" in os.environ
PHASES, EXAMPLES = ("examples,coverage,fuzzing,stateful", "400") if SOAK else ("fuzzing", "4")
HOOKS = "tests.support.hub.schemathesis_hooks"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
)


def test_the_document_of_a_running_hub_is_true(tmp_path: Path) -> None:
    """No answer but those that the document lists, each of its schema, and no 5xx."""
    repository = tmp_path / "shop"
    made_repository(repository)
    with private_home(tmp_path / "private") as environ, serving(repository, environ) as hub:
        made = subprocess.run(
            [sys.executable, "-m", "coord", "token", "create", "--role", "admin"],
            cwd=repository,
            env=environ,
            capture_output=True,
            check=True,
            timeout=PATIENCE_S,
        )
        token = json.loads(made.stdout)["token"]
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{hub.url}/openapi.json"),
                *("--header", f"Authorization: Bearer {token}", "--seed", "7", "--workers", "1"),
                *("--phases", PHASES, "--max-examples", EXAMPLES, "--mode", "all"),
                *("--checks", ",".join(CHECKS), "--generation-database", "none", "--no-color"),
            ],
            cwd=tmp_path,
            env={**environ, "SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
        assert hub.process.poll() is None
