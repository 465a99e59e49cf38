"""The hub of the demo: `coord serve` in the repository of the demo, for the agents of the demo only."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STOP_S = 30


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run a hub until the block ends; yield its address. Agents find it by XDG_RUNTIME_DIR.

    If the demo itself is killed, the hub ends because nobody uses it.
    """
    # A longer path is none for sockets: the hub of the user would be meant.
    with tempfile.TemporaryDirectory(prefix="cd-", dir="/tmp") as private:
        os.environ["XDG_RUNTIME_DIR"] = private
        os.environ.pop("COORD_HUB", None)
        command = [sys.executable, "-m", "coord", "serve", "--listen", "127.0.0.1:0", "--idle", "1m"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as hub:
            assert hub.stdout is not None
            try:
                yield json.loads(hub.stdout.readline())["listen"]
            finally:
                hub.terminate()
                hub.wait(STOP_S)


def page_link(folder: Path) -> str:
    """Return a link to the page of the hub; on a desktop the page opens by itself.

    A visitor may try everything there, as an admin: the repository is for the demo only.
    """
    browser = ["--browser"] if sys.stdout.isatty() and _has_desktop() else []
    command = [sys.executable, "-m", "coord", "open", "--role", "admin", *browser]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    link: str = json.loads(done.stdout)["url"]
    return link


def _has_desktop() -> bool:
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
