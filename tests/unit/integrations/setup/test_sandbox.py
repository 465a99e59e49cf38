"""`coord init` lets the sandbox of Codex write the store, and nothing else."""

import os
import subprocess
from pathlib import Path

import pytest

from coord.host.repository import find_repository
from coord.integrations.setup.changes import Plan
from coord.integrations.setup.installer import plan_repository
from coord.integrations.setup.removal import plan_removal
from coord.integrations.setup.sandbox import CONFIG, store_folder
from coord.integrations.setup.text.toml_edit import parse, writable_roots
from coord.integrations.setup.tools import CLAUDE, CODEX, TOOLS, Tool
from coord.sdk.client.open import initialise

MINE = '# mine\n[sandbox_workspace_write]\nwritable_roots = ["/mine"]\n'


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a store, and a home without settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    folder = tmp_path.resolve() / "shop"
    git(tmp_path, "init", "-q", str(folder))
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "begin")
    initialise(str(folder), {})
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def planned(shop: Path, *tools: Tool, shared: bool = False, by_user: bool = False) -> Plan:
    repository = find_repository(str(shop))
    assert repository is not None
    plan = plan_repository(repository, os.environ, tools or TOOLS, shared=shared, by_user=by_user)
    plan.apply()
    return plan


def roots(folder: Path) -> list[str] | None:
    return writable_roots(parse((folder / CONFIG).read_text()) or {})


def removed(shop: Path) -> None:
    repository = find_repository(str(shop))
    assert repository is not None
    plan_removal(repository).apply()


@pytest.mark.parametrize("scope", ["local", "shared", "by_user"])
def test_only_the_folder_of_the_store_is_writable(shop: Path, scope: str) -> None:
    """The pin, the journal and the copies of hooks are outside of it; git shows nothing."""
    planned(shop, shared=scope == "shared", by_user=scope == "by_user")
    assert roots(shop) == [f"{shop}/.git/coord/store"]
    assert sorted(path.name for path in (shop / ".git/coord/store").iterdir()) == ["coord.db"]
    assert CONFIG not in git(shop, "status", "--short", "-uall")
    removed(shop)
    assert not (shop / ".codex").exists()


def test_a_worktree_names_the_store_of_its_repository(shop: Path) -> None:
    """Also one that git makes later, and one that a removal finds."""
    git(shop, "worktree", "add", "-q", "../early")
    planned(shop)
    git(shop, "worktree", "add", "-q", "../late")
    for name in ("early", "late"):
        assert roots(shop.parent / name) == [f"{shop}/.git/coord/store"]
    assert planned(shop).changes == [], "the copy counts"
    removed(shop)
    assert not list(shop.parent.glob(f"*/{CONFIG}"))


def test_a_copy_that_no_journal_names_is_removed(shop: Path) -> None:
    planned(shop)
    git(shop, "worktree", "add", "-q", "../late")
    removed(shop)
    assert not (shop.parent / "late/.codex").exists()


def test_the_roots_of_the_user_stay_writable(shop: Path, tmp_path: Path) -> None:
    """Codex takes the list of the project instead of the user's, so it repeats that."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text(
        '[sandbox_workspace_write]\nwritable_roots = ["/cache", "near"]\n'
    )
    planned(shop)
    assert roots(shop) == [f"{shop}/.git/coord/store", "/cache", f"{tmp_path}/.codex/near"]


def test_what_people_wrote_stays(shop: Path) -> None:
    """A list of the project gets one more root, and loses it again; later changes stay."""
    (shop / ".codex").mkdir()
    (shop / CONFIG).write_text(MINE)
    planned(shop)
    assert roots(shop) == [f"{shop}/.git/coord/store", "/mine"]
    with (shop / CONFIG).open("a") as file:
        file.write("network_access = true\n")
    assert planned(shop).changes == []
    removed(shop)
    assert (shop / CONFIG).read_text() == MINE + "network_access = true\n"


def test_a_file_in_git_stays_and_the_way_out_is_named(shop: Path) -> None:
    (shop / ".codex").mkdir()
    (shop / CONFIG).write_text(MINE)
    git(shop, "add", CONFIG)
    plan = planned(shop)
    assert (shop / CONFIG).read_text() == MINE
    (note,) = [note for note in plan.notes if CONFIG in note]
    assert f"add {shop}/.git/coord/store to sandbox_workspace_write.writable_roots" in note


@pytest.mark.parametrize("text", ["[broken\n", "sandbox_workspace_write = { network_access = true }\n"])
def test_a_file_without_a_safe_place_stays(shop: Path, text: str) -> None:
    (shop / ".codex").mkdir()
    (shop / CONFIG).write_text(text)
    assert any("no safe place" in note for note in planned(shop).notes)
    assert (shop / CONFIG).read_text() == text


def test_a_link_out_of_the_repository_is_not_followed(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs.toml").write_text("")
    (shop / ".codex").mkdir()
    (shop / CONFIG).symlink_to(tmp_path / "theirs.toml")
    assert any("leaves the repository" in note for note in planned(shop).notes)
    assert (tmp_path / "theirs.toml").read_text() == ""


def test_without_codex_nothing_is_written(shop: Path) -> None:
    planned(shop, CLAUDE)
    assert not (shop / ".codex").exists()
    planned(shop, CLAUDE, CODEX)
    assert roots(shop)
    planned(shop, CLAUDE)
    assert not (shop / ".codex").exists()


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("file://{tmp}/files", "{tmp}/files"),
        ("sqlite://{tmp}/elsewhere.db", ""),
    ],
)
def test_a_store_elsewhere(tmp_path: Path, url: str, folder: str) -> None:
    """A folder of coord alone becomes writable; a folder with other files does not."""
    git(tmp_path, "init", "-q", "market")
    initialise(str(tmp_path / "market"), {}, url=url.format(tmp=tmp_path))
    assert store_folder(f"{tmp_path}/market/.git") == folder.format(tmp=tmp_path)
