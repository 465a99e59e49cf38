"""`coord init` and `coord uninstall`, killed as whole commands, are finished or undone by the next ones."""

import os
import random
import shutil
from pathlib import Path

import pytest

from coord.transports.cli.main import main
from tests.support.cli import Coord
from tests.support.kill_points import count_changes, run_until
from tests.support.setup_folders import snapshot, write

SOAK = bool(os.environ.get("COORD_SOAK"))
ROUNDS = 6
FORMER = "#!/bin/sh\nexit 0\n"


@pytest.mark.long
@pytest.mark.parametrize("killed", ["init --yes", "uninstall", "init --yes --user"])
def test_a_killed_program_is_finished_or_undone(
    killed: str, coord: Coord, repository: Path, tmp_path: Path
) -> None:
    """Issue 15: also while it creates the store; the next commands work, and each file is as it was."""
    write(repository / ".git/hooks/pre-commit", FORMER, 0o755)
    write(repository / "AGENTS.md", "# Rules\n")
    before = without_state(tmp_path)
    if killed == "uninstall":
        assert coord("ann init --yes").code == 0
    state = tmp_path.parent / f"{tmp_path.name}-state"
    shutil.copytree(tmp_path, state, symlinks=True)
    changes = count_changes(lambda: main(killed.split()))
    points = range(1, changes + 1)
    for number, point in enumerate(random.Random(15).sample(points, changes if SOAK else ROUNDS)):
        start_again(state, tmp_path)
        run_until(point, lambda: main(killed.split()))
        follow = ("init --yes", "uninstall", "doctor --fix")[number % 3]
        coord(f"ann {follow}")
        said = coord("ann init --yes")
        assert (said.code, said.answer["problems"]) == (0, []), (killed, point, follow, said)
        assert coord("ann doctor").code == 0, (killed, point, follow)
        coord("ann uninstall")
        coord("ann uninstall --user")
        assert without_state(tmp_path) == before, (killed, point, follow)
    shutil.rmtree(state)


def start_again(state: Path, folder: Path) -> None:
    """Make the content of a folder equal to a copy; the folder itself stays."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(state, folder, symlinks=True, dirs_exist_ok=True)
    os.chdir(folder / "shop")


def without_state(folder: Path) -> dict[str, object]:
    """Return a snapshot without the store and without what coord knows about the user."""
    own = (str(folder / "shop/.git/coord"), str(folder / "state"), str(folder / ".config"))
    return {path: each for path, each in snapshot(folder).items() if not path.startswith(own)}
