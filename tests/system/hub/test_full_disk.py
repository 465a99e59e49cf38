"""The disk below a hub fills up and has room again: whoever was told "granted" has the claim."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import CoordError, Unknown
from coord.core.tasks.commands import ClaimTask, GetTaskState
from coord.sdk.coordinator import TaskCoordinator
from tests.support.hub.process import PATIENCE_S, private_home

SERVE = """
mount -t tmpfs -o size=2m,mode=0700 tmpfs "$PWD/disk"
cd disk
git init -q .
"$0" -m coord init >&2
"$0" -m coord token create --role admin -o json
exec "$0" -m coord serve --listen 127.0.0.1:0
"""
"""A hub whose repository is on a small disk that only it sees."""
ROUNDS = 400


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield the address of the hub, a token, and its disk as seen from here."""
    (folder / "disk").mkdir()
    as_root = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    with (
        private_home(folder / "private") as environ,
        subprocess.Popen(
            [*as_root, "sh", "-ec", SERVE, sys.executable],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        ) as hub,
    ):
        assert hub.stdout is not None
        try:
            first = hub.stdout.readline()
            if not first:
                pytest.skip("no disk can be mounted here")
            ready = json.loads(hub.stdout.readline())
            seen = Path(f"/proc/{ready['pid']}/root{folder}/disk")
            yield ready["listen"], json.loads(first)["token"], seen
        finally:
            hub.terminate()
            hub.wait(PATIENCE_S)


def fill(disk: Path) -> None:
    with open(disk / "filler", "wb", buffering=0) as file:
        for size in (65536, 4096, 512):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue


def claim(coordinator: TaskCoordinator, number: int) -> Any:
    command = ClaimTask("local", "shop", f"t{number}", "agent", "ada", 3_600_000)
    return coordinator.engine("local").call(command, command_id=f"c{number}")


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16, Proof: commands fail while the disk is full, and an unknown one is told when it has room."""
    with served(tmp_path) as (url, token, disk):
        monkeypatch.setenv("COORD_TOKEN", token)
        with closing(TaskCoordinator.open(url)) as coordinator:
            told = {0: claim(coordinator, 0).success}
            fill(disk)
            refused: set[int] = set()
            for number in range(1, ROUNDS):
                try:
                    told[number] = claim(coordinator, number).success
                except CoordError as error:
                    refused.add(number)
                    if len(refused) > 3 and not isinstance(error, Unknown):
                        break
            assert refused, "the disk was not full"
            os.unlink(disk / "filler")
            for number in sorted(refused):
                told[number] = claim(coordinator, number).success
            assert set(told.values()) == {True}, "each command ran once, then or now"
            for number in told:
                state = coordinator.engine("local").call(GetTaskState("local", "shop", f"t{number}"))
                assert (state.generation, state.claim.session_id) == (1, "ada")
            entries = coordinator.database.log("local").tail(0, 10_000)
            assert [entry.offset for entry in entries] == list(range(1, len(entries) + 1))
