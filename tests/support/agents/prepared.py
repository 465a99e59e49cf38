"""A repository that `coord init --yes` prepared for an agent, and others who are at work there."""

import json
import os
import subprocess
import sys
from pathlib import Path

from coord.core.locks.commands import LockInfo
from coord.host.repository import find_repository
from coord.integrations.hooks import main as program
from coord.integrations.setup.checks import examine_hooks
from coord.sdk.client.client import Client, connect
from tests.support.agents.drive import PATIENT
from tests.support.agents.sessions import Place, make_place

ADA_S, ADAS = "ada", "ada.txt"
"""A session that hooks see, and the file that it has edited."""


def environ_of(place: Place) -> dict[str, str]:
    return {"HOME": str(place.home), "USER": "somebody", "PATH": os.environ["PATH"], **PATIENT}


def prepared(folder: Path, *tools: str) -> Place:
    """Make a repository, and do as users do."""
    place = make_place(folder)
    place.home.mkdir()
    coord(place, "init", "--yes", "--tools", ",".join(tools))
    return place


def coord(place: Place, *words: str) -> None:
    """Run the `coord` command there."""
    command = [sys.executable, "-m", "coord.transports.cli.main", *words]
    subprocess.run(command, cwd=place.repository, env=environ_of(place), check=True, capture_output=True)


def client_of(place: Place, session: str) -> Client:
    return connect(session=session, cwd=str(place.repository), environ=environ_of(place))


def locks(place: Place) -> dict[str, LockInfo]:
    with client_of(place, "watcher") as watcher:
        return {lock.resource: lock for lock in watcher.locks()}


def ada_edits(place: Place) -> None:
    """Let Ada edit a file: her tool tells the hook before and after it."""
    path = place.repository / ADAS
    call = {"tool_name": "Write", "tool_input": {"file_path": str(path)}, "tool_use_id": "call-1"}

    def tell(name: str) -> None:
        told = {"session_id": ADA_S, "cwd": str(place.repository), "hook_event_name": name, **call}
        command = [sys.executable, "-I", program.__file__, "claude"]
        subprocess.run(command, input=json.dumps(told).encode(), env=environ_of(place), check=True)

    tell("PreToolUse")
    path.write_text("ada\n")
    tell("PostToolUse")


def wrong_here(place: Place) -> set[str]:
    """What the doctor finds wrong with the hooks."""
    repository = find_repository(str(place.repository))
    assert repository is not None
    found = examine_hooks(repository, environ_of(place))
    return {each.check for each in found if each.state == "bad"}
