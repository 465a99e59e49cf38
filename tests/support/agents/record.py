"""Records what hooks are given: `python -m tests.support.agents.record [claude|codex|gemini]`."""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.agents.drive import TOOLS
from tests.support.agents.recordings import FOLDER
from tests.support.agents.script import MAIN, Script, Shell
from tests.support.agents.sessions import WORK, Place, make_place
from tests.support.agents.stand_in_hook import hooks_for

COMPACTION = ("SessionStart", "PreCompact", "PostCompact")
# Claude looks at its settings now and then.
CHANGE_SETTINGS = "mkdir -p .claude && echo '{}' > .claude/settings.local.json && sleep 3"


def record(tool: str) -> None:
    with tempfile.TemporaryDirectory(prefix="coord-record-") as folder:
        place = make_place(Path(folder))
        place.run(tool, WORK)
        MORE[tool](place)
        payloads = place.payloads()
    shutil.rmtree(FOLDER / tool, ignore_errors=True)
    (FOLDER / tool).mkdir(parents=True)
    for name, event in payloads.items():
        (FOLDER / tool / f"{name}.json").write_text(json.dumps(event, indent=2, ensure_ascii=False) + "\n")


def more_of_claude(place: Place) -> None:
    script: Script = (Shell("false"), Shell(CHANGE_SETTINGS))
    place.run("claude", script, hooks=hooks_of(place, "claude", "PostToolUseFailure", "ConfigChange"))
    hooks = hooks_of(place, "claude", *COMPACTION)
    place.run("claude", (), hooks=hooks, arguments=("--continue",), prompt="/compact")


def more_of_codex(place: Place) -> None:
    arguments = ("resume", "--last", "-c", "model_auto_compact_token_limit=1")
    hooks = hooks_of(place, "codex", *COMPACTION)
    place.run("codex", (), hooks=hooks, arguments=arguments, prompt=f"Go on. ({MAIN})")


def more_of_gemini(place: Place) -> None:
    hooks = hooks_of(place, "gemini", "SessionStart", "PreCompress")
    place.run("gemini", (), hooks=hooks, arguments=("--resume", "latest"))


MORE: dict[str, Callable[[Place], None]] = {
    "claude": more_of_claude,
    "codex": more_of_codex,
    "gemini": more_of_gemini,
}


def hooks_of(place: Place, tool: str, *events: str) -> dict[str, list[dict]]:
    return hooks_for(tool, place.hook_command(tool), events)


if __name__ == "__main__":
    for name in sys.argv[1:] or TOOLS:
        record(name)
