"""Folders of coord belong to their user, whatever the umask is."""

import os
import stat
from pathlib import Path

import pytest

from coord.core.errors import Unsupported
from coord.host.store_location import find_location
from coord.sdk.client.open import initialise
from coord.stores.local.folders import make_private_folder, make_readable_folder
from tests.support.git_folders import made_repository


@pytest.fixture
def umask_of_nobody() -> object:
    """The most careless umask: new files and folders are open to everybody."""
    old = os.umask(0)
    yield
    os.umask(old)


@pytest.mark.usefixtures("umask_of_nobody")
def test_every_new_folder_is_private(tmp_path: Path) -> None:
    """The folders in between, too; one that exists keeps its mode."""
    (tmp_path / "open").mkdir(mode=0o777)
    make_private_folder(str(tmp_path / "open/a/b"))
    make_private_folder(str(tmp_path / "open/a/b"))
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("open", "open/a", "open/a/b")]
    assert modes == [0o777, 0o700, 0o700]


@pytest.mark.usefixtures("umask_of_nobody")
def test_nobody_else_can_write_a_readable_folder(tmp_path: Path) -> None:
    """The folders of agents' settings: whoever could write them could add a hook."""
    make_readable_folder(str(tmp_path / "a/b"))
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b")] == [0o755, 0o755]


@pytest.mark.usefixtures("umask_of_nobody")
@pytest.mark.parametrize("url", ["", "sqlite://{tmp}/new/store/x.db", "file://{tmp}/new/store"])
def test_nobody_else_can_write_what_a_first_use_creates(tmp_path: Path, url: str) -> None:
    """The pin, its copy, the store and its files: none is open to others."""
    made_repository(tmp_path / "shop")
    initialise(
        str(tmp_path / "shop"),
        {"XDG_STATE_HOME": str(tmp_path / "state")},
        url=url.replace("{tmp}", str(tmp_path)),
    )
    made = [tmp_path / "shop/.git/coord", tmp_path / "shop/.git/coord.id"]
    made += [path for top in (made[0], tmp_path / "new") for path in top.rglob("*")]
    made += [tmp_path / "new"] * bool(url)
    open_to_others = [path for path in made if path.stat().st_mode & 0o077]
    assert open_to_others == []


def test_a_folder_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    """Whoever can write it can replace the pin; the error names the way out."""
    made_repository(tmp_path / "shop")
    initialise(str(tmp_path / "shop"), {})
    folder = tmp_path / "shop/.git/coord"
    folder.chmod(0o777)
    with pytest.raises(Unsupported, match="every user") as caught:
        find_location(str(tmp_path / "shop"), {})
    assert "chmod" in caught.value.hint
    folder.chmod(0o700)
    assert find_location(str(tmp_path / "shop"), {}).pinned
