"""Symlinks and hard links: which further names a folder or a glob has."""

import os
from pathlib import Path

import pytest

from coord.host import links
from coord.host.paths import ResolvedPath, resolve_path
from coord.host.repository import Repository
from tests.support.git_folders import added_submodule, added_worktree, git, made_repository


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with two folders and a file in each."""
    made_repository(tmp_path / "shop")
    shop = tmp_path / "shop"
    for path in ("lib/real.py", "lib/deep/other.py", "src/app.py"):
        (shop / path).parent.mkdir(parents=True, exist_ok=True)
        (shop / path).write_text("x\n")
    return shop


def resolved(shop: Path, text: str, *, literal: bool = False) -> ResolvedPath:
    return resolve_path(Repository(str(shop), str(shop / ".git")), text, str(shop), literal=literal)


def found(shop: Path, text: str) -> list[str]:
    return list(resolved(shop, text).links)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("src", ["lib"]),
        ("SRC", ["lib"]),
        ("src/**", ["lib"]),
        ("src/*", ["lib"]),
        ("src/*/real.py", ["lib/real.py"]),
        ("src/**/*.py", ["lib/**/*.py"]),
        ("**/real.py", []),  # it covers lib/real.py itself
        ("s*/link/real.py", ["lib/real.py"]),
        ("src/[l]ink/{real,x}.py", ["lib/real.py", "lib/x.py", r"lib/\{real,x\}.py"]),
        ("src/*.py", []),
        ("src/app.py", []),
        ("lib", []),
        (".", []),
        ("SRC/LINK/real.py", ["lib/real.py"]),
        ("src/link/new/*.py", []),  # both forms are in the texts
    ],
)
def test_a_link_below_gives_its_target(text: str, expected: list[str], shop: Path) -> None:
    """Issue 15: a folder or glob that contains links covers their targets, and no more of them."""
    (shop / "src/link").symlink_to("../lib")
    assert found(shop, text) == expected


def test_a_target_in_a_target_is_not_named(shop: Path) -> None:
    """Whichever is found first, the wider one covers both; links near the root are found first."""
    (shop / "src/inner").symlink_to("../lib/deep")
    assert found(shop, "src") == ["lib/deep"]
    (shop / "src/below").mkdir()
    (shop / "src/below/outer").symlink_to("../../lib")
    assert found(shop, "src") == ["lib"]
    (shop / "src/below").rename(shop / "src2")
    (shop / "src2/outer").unlink()
    (shop / "src2/outer").symlink_to("../lib")
    (shop / "src2/below").mkdir()
    (shop / "src2/below/inner").symlink_to("../../lib/deep")
    assert found(shop, "src2") == ["lib"]


def test_case_does_not_matter(shop: Path) -> None:
    """A text in another case covers the same files, so it covers their links."""
    (shop / "Docs").mkdir()
    (shop / "Docs/Link").symlink_to("../lib")
    for text in ("docs", "Docs", "docs/*/real.py", "docs/link/real.py"):
        assert found(shop, text)


@pytest.mark.parametrize("text", ["src", "src/**", "src/*"])
def test_a_link_to_a_file_gives_the_file(text: str, shop: Path) -> None:
    """Nothing is below a file, so a glob that goes on below it does not reach it."""
    (shop / "src/one.py").symlink_to("../lib/real.py")
    assert found(shop, text) == ["lib/real.py"]
    assert found(shop, "src/*/one.py") == []
    assert found(shop, "src/**/*.txt") == []


def test_a_chain_is_followed_to_its_end(shop: Path) -> None:
    """Links in the target of a link count, too."""
    (shop / "third").mkdir()
    (shop / "src/link").symlink_to("hop")
    (shop / "src/hop").symlink_to("../lib/deep")
    (shop / "lib/deep/on").symlink_to("../../third")
    (shop / "third/back").symlink_to("../src")
    assert found(shop, "src") == ["lib/deep", "third"]


@pytest.mark.parametrize("target", ["link", "../src/link", "other"])
def test_a_loop_is_named(target: str, shop: Path) -> None:
    """A link to itself leads nowhere, and the request says so."""
    (shop / "src/link").symlink_to(target)
    (shop / "src/other").symlink_to("link")
    result = resolved(shop, "src")
    assert result.links == {}
    assert "src/link (it leads to itself)" in result.unfollowed[0]


def test_a_link_to_a_folder_above_covers_that(shop: Path) -> None:
    """Whoever writes src/up/lib/real.py writes lib/real.py."""
    (shop / "src/up").symlink_to("..")
    (shop / "src/self").symlink_to(".")
    assert found(shop, "src") == ["."]
    assert found(shop, "src/up/*/real.py") == []
    assert sorted(found(shop, "src/*/lib/*.py")) == ["lib/*.py", "src/lib/*.py"]


@pytest.mark.parametrize("target", ["/etc", "../../outside", "../.git/hooks", "../vendor/lib/src"])
def test_a_link_that_cannot_be_covered_is_named(target: str, shop: Path, tmp_path: Path) -> None:
    """Outside of the repository, in the git directory, in a submodule: the request says so."""
    added_submodule(shop, tmp_path / "lib", "vendor/lib")
    (shop / "src/out").symlink_to(target)
    result = resolved(shop, "src")
    assert result.links == {}
    assert "not covered, because it cannot be locked here: src/out (it leads to " in result.unfollowed[0]


def test_a_target_that_does_not_exist_yet_is_covered(shop: Path) -> None:
    """A dangling link may lead somewhere later."""
    (shop / "src/soon").symlink_to("../lib/soon")
    assert found(shop, "src") == ["lib/soon"]


def test_another_worktree_is_the_same_repository(shop: Path, tmp_path: Path) -> None:
    """A link into another worktree leads to the path there; what lies in that worktree is not ours."""
    added_worktree(shop, tmp_path / "feature")
    inside = added_worktree(shop, shop / "src/inner")
    (Path(str(inside.root)) / "deep").symlink_to("src")
    (shop / "src/theirs").symlink_to(tmp_path / "feature/docs")
    assert found(shop, "src") == ["docs"]


def test_another_repository_inside_is_left_alone(shop: Path) -> None:
    """Its links are its own."""
    git(shop, "init", "-q", "src/inner")
    (shop / "src/inner/link").symlink_to("../../lib")
    assert resolved(shop, "src") == (["src"], {}, [])


@pytest.mark.parametrize("text", ["src", "src/*.py", "src/two.py"])
def test_a_hard_link_gives_the_other_names(text: str, shop: Path) -> None:
    """The same file by another name: found by its inode, wherever it is in the worktree."""
    os.link(shop / "lib/real.py", shop / "src/two.py")
    os.link(shop / "lib/real.py", shop / "lib/deep/three.py")
    assert sorted(found(shop, text)) == ["lib/deep/three.py", "lib/real.py"]
    assert sorted(found(shop, "lib/real.py")) == ["lib/deep/three.py", "src/two.py"]
    assert found(shop, "lib") == ["src/two.py"]
    assert resolved(shop, "lib/real.py", literal=True).links


def test_a_hard_link_outside_is_named(shop: Path, tmp_path: Path) -> None:
    """Nobody can lock a name that is not in the repository."""
    os.link(shop / "src/app.py", tmp_path / "outside.py")
    assert "hard links outside of this worktree to src/app.py" in resolved(shop, "src").unfollowed[0]
    assert resolved(shop, "lib").unfollowed == []


def test_a_plain_file_costs_no_search(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is a file with one name is looked up, and nothing else."""

    def refuse(*_: object) -> None:
        raise AssertionError("a folder was read")

    monkeypatch.setattr(os, "scandir", refuse)
    assert resolved(shop, "src/app.py") == (["src/app.py"], {}, [])
    assert resolved(shop, "src/new.py", literal=True) == (["src/new.py"], {}, [])


def test_too_many_files_are_named(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends at a limit, and says where it did not look; near links are found first."""
    monkeypatch.setattr(links, "ENTRIES_MAX", 3)
    (shop / "src/deep").mkdir()
    (shop / "src/link").symlink_to("../lib")
    for number in range(5):
        (shop / f"src/deep/{number}").symlink_to("../../docs")
    result = resolved(shop, "src")
    assert result.links == {"lib": "src/link"}
    assert result.unfollowed == [
        "links were not looked for in src/deep/, lib/: there are too many files",
    ]


def test_too_many_links_are_named(shop: Path) -> None:
    """A request covers so many targets, and says which link comes after them."""
    for number in range(links.LINKS_MAX + 2):
        (shop / f"src/{number:03}").symlink_to(f"../out/{number:03}")
    result = resolved(shop, "src")
    assert len(result.links) == links.LINKS_MAX
    assert f"more than {links.LINKS_MAX} links" in result.unfollowed[0]


def test_names_that_no_lock_can_have(shop: Path) -> None:
    """A link with an odd name is followed; an odd target is named."""
    (shop / "src/a\nb").symlink_to("../lib")
    (shop / "src/odd").symlink_to("../c\nd")
    result = resolved(shop, "src")
    assert result.links == {"lib": "src/a\nb"}
    assert "src/odd" in result.unfollowed[0]
