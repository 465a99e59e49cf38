"""The disk below a hub fills up and has room again: whoever was told "granted" has the claim or the lock."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from coord.core.commands import Command
from coord.core.errors import CoordError, Unknown
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, ListLocks
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


def take(coordinator: TaskCoordinator, number: int) -> Any:
    """Claim a task, or lock a file, under an id that makes it happen once; return whether it was granted."""
    command: Command = ClaimTask("local", "shop", f"t{number}", "agent", "ada", 3_600_000)
    if number % 2:
        command = AcquireLocks(Caller("ada"), "repo", (f"file:f{number}",), ttl_ms=3_600_000)
    reply = coordinator.engine("local").call(command, command_id=f"c{number}")
    return reply.ok if number % 2 else reply.success


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16, Proof: commands fail while the disk is full, and an unknown one is told when it has room."""
    with served(tmp_path) as (url, token, disk):
        monkeypatch.setenv("COORD_TOKEN", token)
        with closing(TaskCoordinator.open(url)) as coordinator:
            told = {0: take(coordinator, 0)}
            fill(disk)
            refused: set[int] = set()
            for number in range(1, ROUNDS):
                try:
                    told[number] = take(coordinator, number)
                except CoordError as error:
                    refused.add(number)
                    if len(refused) > 3 and not isinstance(error, Unknown):
                        break
            assert refused, "the disk was not full"
            os.unlink(disk / "filler")
            for number in sorted(refused):
                told[number] = take(coordinator, number)
            assert set(told.values()) == {True}, "each command ran once, then or now"
            locked = coordinator.engine("local").call(ListLocks(Caller("ada"), own=True))
            assert {lock.resource for lock in locked} == {f"file:f{number}" for number in told if number % 2}
            for number in (each for each in told if each % 2 == 0):
                state = coordinator.engine("local").call(GetTaskState("local", "shop", f"t{number}"))
                assert (state.generation, state.claim.session_id) == (1, "ada")
            entries = coordinator.database.log("local").tail(0, 10_000)
            assert [entry.offset for entry in entries] == list(range(1, len(entries) + 1))
