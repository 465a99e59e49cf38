"""Finding the repository: everything that git itself would find, without running git."""

import os
from pathlib import Path

import msgspec
import pytest

from coord.core.errors import Invalid
from coord.host.remote import normalised_origin, origin_url
from coord.host.repository import find_repository
from tests.support.git_folders import added_submodule, added_worktree, found, git, made_repository


def test_a_repository_is_found_from_below(tmp_path: Path) -> None:
    """The nearest repository going up, whose common directory is what git says."""
    repository = made_repository(tmp_path / "shop")
    assert repository.root == str(tmp_path / "shop")
    assert repository.commondir == git(tmp_path / "shop", "rev-parse", "--absolute-git-dir")
    assert find_repository(str(tmp_path / "shop/src")) == repository
    assert (repository.name, repository.is_submodule) == ("shop", False)


def test_outside_there_is_none(tmp_path: Path) -> None:
    """A folder in no repository has none, also if one that only looks like it is on the way."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "HEAD").touch()
    assert find_repository(str(tmp_path)) is None


def test_worktrees_share_the_common_directory(tmp_path: Path) -> None:
    """DESIGN §5: every worktree shares the store, so all find the same folder and name."""
    main = made_repository(tmp_path / "shop")
    worktree = added_worktree(tmp_path / "shop", tmp_path / "elsewhere/feature")
    assert worktree.root == str(tmp_path / "elsewhere/feature")
    assert worktree.commondir == main.commondir
    assert (worktree.name, worktree.is_submodule) == ("shop", False)


def test_a_submodule_is_a_repository_of_its_own(tmp_path: Path) -> None:
    """DESIGN §6: a path inside a submodule belongs to the submodule, also in a worktree of either."""
    made_repository(tmp_path / "shop")
    submodule = added_submodule(tmp_path / "shop", tmp_path / "lib", "vendor/lib")
    assert submodule.root == str(tmp_path / "shop/vendor/lib")
    assert submodule.commondir == git(tmp_path / "shop/vendor/lib", "rev-parse", "--absolute-git-dir")
    assert (submodule.name, submodule.is_submodule) == ("lib", True)
    worktree = added_worktree(tmp_path / "shop/vendor/lib", tmp_path / "lib-feature")
    assert worktree.commondir == submodule.commondir
    assert worktree.is_submodule


def test_a_bare_repository_has_no_root(tmp_path: Path) -> None:
    """Without a worktree there are no files, but there is a store; a worktree of it has both."""
    made_repository(tmp_path / "shop")
    git(tmp_path, "clone", "-q", "--bare", "shop", "hub.git")
    bare = found(tmp_path / "hub.git/refs")
    assert (bare.root, bare.commondir, bare.name) == (None, str(tmp_path / "hub.git"), "hub")
    worktree = added_worktree(tmp_path / "hub.git", tmp_path / "work")
    assert (worktree.root, worktree.commondir) == (str(tmp_path / "work"), str(tmp_path / "hub.git"))


def test_inside_the_git_directory_there_is_no_root(tmp_path: Path) -> None:
    """As for git, the git directory is in the repository but in no worktree."""
    repository = made_repository(tmp_path / "shop")
    assert found(tmp_path / "shop/.git/hooks") == msgspec.structs.replace(repository, root=None)


def test_a_symlink_to_a_repository_is_that_repository(tmp_path: Path) -> None:
    """A repository has one root, by whatever way one came."""
    repository = made_repository(tmp_path / "shop")
    (tmp_path / "short").symlink_to("shop/src")
    assert find_repository(str(tmp_path / "short")) == repository


def test_a_separate_git_directory_is_followed(tmp_path: Path) -> None:
    """A `.git` file names the git directory, here of a plain repository."""
    (tmp_path / "kept").mkdir()
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "kept/here"), "shop")
    repository = found(tmp_path / "shop")
    assert repository.commondir == str(tmp_path / "kept/here")
    assert not repository.is_submodule


@pytest.mark.parametrize("text", ["gitdir: ../gone/.git\n", "nonsense\n", ""])
def test_a_broken_git_file_is_refused(text: str, tmp_path: Path) -> None:
    """Doubt refuses: a repository further up is not taken in place of one that cannot be found."""
    made_repository(tmp_path / "shop")
    (tmp_path / "shop/src/.git").write_text(text)
    with pytest.raises(Invalid, match=r"src/\.git does not name a git directory"):
        find_repository(str(tmp_path / "shop/src"))


def test_a_folder_that_is_gone_has_the_repository_above(tmp_path: Path) -> None:
    """A shell may stand in a folder that was removed."""
    repository = made_repository(tmp_path / "shop")
    assert find_repository(str(tmp_path / "shop/gone/for/long")) == repository


def test_the_origin_is_read_as_git_reads_it(tmp_path: Path) -> None:
    """The first url of the remote called origin, from the configuration that worktrees share."""
    repository = made_repository(tmp_path / "shop")
    assert origin_url(repository.commondir) is None
    git(tmp_path / "shop", "remote", "add", "other", "https://host/other")
    git(tmp_path / "shop", "remote", "add", "origin", "git@host:a/b.git")
    git(tmp_path / "shop", "remote", "set-url", "--add", "origin", "git@host:second")
    assert origin_url(repository.commondir) == "git@host:a/b.git"


@pytest.mark.parametrize(
    "text",
    [
        '[remote "origin"]\n\turl = "https://host/a;b#c"\n',
        '[Remote "origin"] URL=https://host/"a;b#c" ; ours\n',
        '; [remote "origin"]\n[remote "origin"]\n # url = no\n pushurl = no\n url = https://host/"a;b#c" #\n',
        '[remote "origin"]\n url = https://host/\\\n"a;b#c"\n',
        '[remote "Origin"]\n url = no\n[remote "origin"]\n url = "https://host/a;b#c"\n',
    ],
)
def test_odd_configurations_are_read_as_git_reads_them(text: str, tmp_path: Path) -> None:
    """Quotes, comments, continued lines and upper case, each compared with git's own answer."""
    (tmp_path / "config").write_text(text)
    theirs = git(tmp_path, "config", "--file", "config", "--get", "remote.origin.url")
    assert theirs == "https://host/a;b#c"
    assert origin_url(str(tmp_path)) == theirs


def test_a_missing_or_binary_configuration_has_no_origin(tmp_path: Path) -> None:
    """No origin is an answer; the repository gets a random id then."""
    assert origin_url(str(tmp_path / "gone")) is None
    (tmp_path / "config").write_bytes(os.urandom(256) + b"\xff[remote")
    assert origin_url(str(tmp_path)) is None


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:a/b.git",
        "github.com:a/b",
        "git@GitHub.com:/a/b/",
        "https://github.com/a/b",
        "https://github.com:443/a/b.git/",
        "https://me:s3cret@github.com/a/b.git",
        "https://s3cret:x@y@github.com/a/b",
        "ssh://git@github.com:22/a/b.git",
        "SSH://github.com/a/b",
        "git://github.com/a/b.git",
        "https://github.com/a/b?key=s3cret#there",
        "me:s3cret@github.com:a/b",
    ],
)
def test_all_urls_of_one_origin_are_equal(url: str) -> None:
    """DESIGN §6: clones share locks, however each of them reaches the origin; nothing secret is kept."""
    assert normalised_origin(url) == "github.com/a/b"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ssh://git@host:2222/a/b", "host:2222/a/b"),
        ("https://host:22/a", "host:22/a"),
        ("git@[::1]:a/b", "::1/a/b"),
        ("git@[host:22]:a", "host/a"),
        ("https://host/A/b", "host/A/b"),
        ("/srv/git/shop.git", "/srv/git/shop"),
        ("file:///srv/git/shop.git/", "/srv/git/shop"),
        ("file://elsewhere/srv/shop", None),
        ("../shop.git", None),
        ("codecommit::eu-west-1://shop", None),
        ("C:\\shop", None),
        ("https://host", None),
        ("https://me:s3/cret@host/a", None),
        ("", None),
    ],
)
def test_other_origins(url: str, expected: str | None) -> None:
    """What differs stays different, and what has no host is not taken for one."""
    assert normalised_origin(url) == expected
