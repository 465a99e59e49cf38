"""Records what hooks are given: `python -m tests.agents.record [claude|codex|gemini]`."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.agents.drive import TOOLS
from tests.agents.recordings import FOLDER
from tests.agents.sessions import make_place, work_of


def record(tool: str) -> None:
    with tempfile.TemporaryDirectory(prefix="coord-record-") as folder:
        place = make_place(Path(folder))
        place.run(tool, work_of(tool))
        payloads = place.payloads()
    shutil.rmtree(FOLDER / tool, ignore_errors=True)
    (FOLDER / tool).mkdir(parents=True)
    for name, event in payloads.items():
        (FOLDER / tool / f"{name}.json").write_text(json.dumps(event, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or TOOLS:
        record(name)
