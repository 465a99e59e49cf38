"""Codex runs only hooks that somebody trusts; it can be asked which, and told so in its configuration."""

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ANSWER_S = 30


def hooks_known_to_codex(program: list[str], home: Path, repository: Path) -> list[Json]:
    """Ask Codex itself for its hooks in a repository, each with its hash and whether that is trusted."""
    questions: list[Json] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "coord", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(repository)]}},
    ]
    trusted = f'projects={{"{repository}"={{trust_level="trusted"}}}}'
    process = subprocess.Popen(
        [*program, "-c", trusted, "app-server"],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home / ".codex")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    deadline = threading.Timer(ANSWER_S, process.kill)
    deadline.start()
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        # Left open until the answer is there: at the end of its input it ends, answered or not.
        process.stdin.write("".join(json.dumps(question) + "\n" for question in questions))
        process.stdin.flush()
        answers = (json.loads(line) for line in process.stdout)
        answer = next((answer for answer in answers if answer.get("id") == 2), None)
        deadline.cancel()
        process.kill()
    assert answer is not None, "Codex did not say which hooks it knows"
    hooks: list[Json] = answer["result"]["data"][0]["hooks"]
    return hooks


def trust_hooks(program: list[str], home: Path, repository: Path) -> None:
    """Write into the user's configuration what Codex writes when a user trusts all hooks."""
    states = [
        f'[hooks.state."{hook["key"]}"]\ntrusted_hash = "{hook["currentHash"]}"\n'
        for hook in hooks_known_to_codex(program, home, repository)
    ]
    with (home / ".codex/config.toml").open("a") as file:
        file.write("".join(states))
