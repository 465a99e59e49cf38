"""From what a person calls a file to its path in the repository."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.core.locks.paths import covers, literal_path, parse_pattern
from coord.host.paths import repository_path
from coord.host.repository import Repository
from tests.support.git_folders import added_submodule, added_worktree, git, made_repository


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository in a folder of its own."""
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


def paths(shop: Path, text: str, cwd: str = ".", *, literal: bool = False) -> list[str]:
    repository = Repository(str(shop), str(shop / ".git"))
    return repository_path(repository, text, str(shop / cwd), literal=literal)


@pytest.mark.parametrize(
    ("text", "cwd", "expected"),
    [
        ("src/app.py", ".", "src/app.py"),
        ("./src//app.py", ".", "src/app.py"),
        ("app.py", "src", "src/app.py"),
        ("../lib/y", "src", "lib/y"),
        ("not/yet/there.py", "src", "src/not/yet/there.py"),
        ("src/", ".", "src"),
        (".", ".", "."),
        (".", "src", "src"),
        ("..", "src", "."),
        ("*.py", "src", "src/*.py"),
        ("../**/test_?.py", "src", "**/test_?.py"),
        ("src/{a,b/c}.py", ".", "src/{a,b/c}.py"),
        ("a\\[1].py", ".", "a\\[1].py"),
        ("ünï/x", ".", "ünï/x"),
    ],
)
def test_a_path_is_told_from_the_root(text: str, cwd: str, expected: str, shop: Path) -> None:
    """DESIGN §6: relative to where the person stands, normalised, also for files that are not there yet."""
    assert paths(shop, text, cwd) == [expected]


def test_an_absolute_path_inside_is_told_from_the_root(shop: Path) -> None:
    """Tools give absolute paths."""
    assert paths(shop, f"{shop}/src/app.py", "src") == ["src/app.py"]
    assert paths(shop, f"{shop}/src/*.py") == ["src/*.py"]
    assert paths(shop, str(shop)) == ["."]


def test_every_way_to_the_repository_gives_the_same_path(shop: Path, tmp_path: Path) -> None:
    """A symlink that leads into the repository from outside is only another way to it."""
    (tmp_path / "short").symlink_to("shop")
    (tmp_path / "deep").symlink_to("short/src")
    assert paths(shop, f"{tmp_path}/short/src/app.py") == ["src/app.py"]
    assert paths(shop, f"{tmp_path}/deep/app.py") == ["src/app.py"]
    assert paths(shop, "app.py", "../deep") == ["src/app.py"]


def test_another_worktree_gives_the_same_path(shop: Path, tmp_path: Path) -> None:
    """DESIGN §6: the same file from another worktree is the same lock, also one inside the other."""
    outside = added_worktree(shop, tmp_path / "feature")
    inside = added_worktree(shop, shop / ".claude/worktrees/fix")
    for repository in (outside, inside):
        assert repository_path(repository, "src/app.py", str(repository.root)) == ["src/app.py"]
        assert repository_path(repository, f"{shop}/src/app.py", str(repository.root)) == ["src/app.py"]
    assert paths(shop, ".claude/worktrees/fix/src/app.py") == ["src/app.py"]
    assert paths(shop, ".claude/worktrees/fix/src/*.py") == ["src/*.py"]
    assert paths(shop, f"{tmp_path}/feature/src/new.py") == ["src/new.py"]


def test_what_lies_above_the_repository_is_of_no_interest(shop: Path, tmp_path: Path) -> None:
    """A broken repository further up does not keep anybody from naming files here."""
    (tmp_path / ".git").write_text("nonsense")
    assert paths(shop, "src/app.py") == ["src/app.py"]
    assert paths(shop, ".") == ["."]


def test_a_path_through_a_symlink_has_two_forms(shop: Path) -> None:
    """DESIGN §6: a path through a symlink locks its lexical and its resolved form."""
    (shop / "current").symlink_to("src")
    (shop / "again").symlink_to("current")
    (shop / "src/main.py").symlink_to("app.py")
    assert paths(shop, "current/app.py") == ["current/app.py", "src/app.py"]
    assert paths(shop, "current/new.py") == ["current/new.py", "src/new.py"]
    assert paths(shop, "again/main.py") == ["again/main.py", "src/app.py"]
    assert paths(shop, "current/*.py") == ["current/*.py", "src/*.py"]
    assert paths(shop, f"{shop}/current/app.py") == ["current/app.py", "src/app.py"]
    assert paths(shop, "src/app.py") == ["src/app.py"]


def test_above_a_symlink_is_where_the_system_sees_it(shop: Path) -> None:
    """`..` behind a symlink is the folder above its target, as for every program that opens the file."""
    (shop / "lib/deep").mkdir(parents=True)
    (shop / "current").symlink_to("lib/deep")
    (shop / "lib/x").write_text("the one that is opened")
    assert (shop / "current/../x").read_text() == "the one that is opened"
    assert paths(shop, "current/../x") == ["lib/x"]


def test_a_symlink_into_another_worktree_leads_to_the_same_file(shop: Path, tmp_path: Path) -> None:
    """The other worktree's file is this repository's file."""
    added_worktree(shop, tmp_path / "feature")
    (shop / "theirs").symlink_to(tmp_path / "feature")
    assert paths(shop, "theirs/src/app.py") == ["theirs/src/app.py", "src/app.py"]


def test_a_dangling_symlink_inside_is_no_error(shop: Path) -> None:
    """What it will lead to is known, even if it does not exist yet."""
    (shop / "soon").symlink_to("src/soon.py")
    assert paths(shop, "soon") == ["soon", "src/soon.py"]


@pytest.mark.parametrize("target", ["/etc", "/etc/gone", "../outside", "../../../../../../../../etc"])
@pytest.mark.parametrize("rest", ["", "/hosts", "/*"])
def test_a_symlink_out_of_the_repository_is_refused(target: str, rest: str, shop: Path) -> None:
    """DESIGN §6: nothing is followed out of the tree."""
    (shop / "out").symlink_to(target)
    with pytest.raises(Invalid, match=r"outside the repository.*symlink.*out leads"):
        paths(shop, f"out{rest}")


def test_leaving_and_coming_back_is_refused(shop: Path, tmp_path: Path) -> None:
    """A path that runs through a foreign folder can be made to lead elsewhere by whoever owns that."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/back").symlink_to(shop / "src")
    (shop / "out").symlink_to(tmp_path / "outside")
    with pytest.raises(Invalid, match="outside the repository"):
        paths(shop, "out/back/app.py")


def test_a_loop_of_symlinks_is_refused(shop: Path, tmp_path: Path) -> None:
    """A symlink to itself leads nowhere."""
    (shop / "a").symlink_to("b")
    (shop / "b").symlink_to("a")
    (tmp_path / "self").symlink_to("self")
    for text in ("a", "a/x", f"{tmp_path}/self/x"):
        with pytest.raises(Invalid, match="leads to itself"):
            paths(shop, text)


@pytest.mark.parametrize("text", ["/etc/passwd", "../x", "..", "src/../../x", "../shop-2/x", "/", "../*"])
def test_outside_is_refused(text: str, shop: Path) -> None:
    """Issue 3, bad input: absolute paths outside and escapes are refused with a hint."""
    with pytest.raises(Invalid, match="outside the repository") as caught:
        paths(shop, text)
    assert caught.value.hint


def test_the_git_directory_is_refused(shop: Path) -> None:
    """What is inside `.git` is git's own; also by another spelling, through a symlink, or in a worktree."""
    (shop / "hidden").symlink_to(".git/hooks")
    for text in (
        ".git",
        ".git/config",
        ".GIT/config",
        "src/.git/x",
        "hidden/pre-commit",
        f"{shop}/.git/HEAD",
    ):
        with pytest.raises(Invalid, match="inside the git directory"):
            paths(shop, text)


def test_a_submodule_is_refused_with_the_way_there(shop: Path, tmp_path: Path) -> None:
    """DESIGN §6: a path inside a submodule belongs to the submodule; the entry itself to the repository."""
    submodule = added_submodule(shop, tmp_path / "lib", "vendor/lib")
    (shop / "near").symlink_to("vendor")
    for text in ("vendor/lib/src/app.py", "vendor/lib/new", "near/lib/src", "vendor/lib/src/*"):
        with pytest.raises(Invalid, match="inside a submodule") as caught:
            paths(shop, text)
        assert f"cd {submodule.root}" in caught.value.hint
    assert paths(shop, "vendor/lib") == ["vendor/lib"]
    assert repository_path(submodule, "src/app.py", str(submodule.root)) == ["src/app.py"]
    with pytest.raises(Invalid, match="outside"):
        repository_path(submodule, "../../src/app.py", str(submodule.root))


def test_a_repository_inside_is_refused(shop: Path) -> None:
    """A clone that lies in the tree is not ours either."""
    git(shop, "init", "-q", "inner")
    with pytest.raises(Invalid, match="inside another repository"):
        paths(shop, "inner/x")


@pytest.mark.parametrize("text", ["", "a\0b", "a\nb", "a\tb", "\x1b[31m", "\udcff", "a" * 5000, "a/" * 300])
def test_what_is_no_path_is_refused(text: str, shop: Path) -> None:
    """Issue 3, bad input: empty, control characters, half characters, overlong."""
    with pytest.raises(Invalid) as caught:
        paths(shop, text)
    assert caught.value.hint
    with pytest.raises(Invalid):
        paths(shop, text, literal=True)


@pytest.mark.parametrize("text", ["*/../x", "src/*/../../..", "[a", "{a", "src\\app.py"])
def test_malformed_patterns_are_refused(text: str, shop: Path) -> None:
    """What the core would refuse is refused here too, before anything is asked of a store."""
    with pytest.raises(Invalid):
        paths(shop, text)


@pytest.mark.parametrize(
    "text", ["app/[slug]/page.tsx", "app/[slug]/*.tsx", "app/[[...slug]]", "app/{id}", "app/*"]
)
def test_a_text_means_the_same_before_and_after_its_file_exists(text: str, shop: Path) -> None:
    """Issue 15: nothing but links is decided by what lies on the disk."""
    before = paths(shop, text)
    (shop / text).parent.mkdir(parents=True)
    (shop / text).touch()
    assert paths(shop, text) == before
    assert covers(parse_pattern(before[0])[0], literal_path(text))


@pytest.mark.parametrize("name", ["[[...slug]]", "{id}", "[]", "{{name}}"])
def test_a_balanced_name_that_is_no_pattern_is_that_name(name: str, shop: Path) -> None:
    """Frameworks name folders so; a bracket that somebody forgot is still an error."""
    (found,) = paths(shop, f"app/{name}/*.tsx")
    assert covers(parse_pattern(found)[0], literal_path(f"app/{name}/page.tsx"))
    (found,) = paths(shop, f"../src/{name}", "src")
    assert parse_pattern(found)[0].literal


def test_a_repository_in_a_folder_with_odd_characters(tmp_path: Path) -> None:
    """The folders above the root are never patterns."""
    made_repository(tmp_path / "shop [1] {x}")
    shop = tmp_path / "shop [1] {x}"
    assert paths(shop, f"{shop}/src/app.py") == ["src/app.py"]


def test_a_folder_above_the_repository_is_no_pattern(tmp_path: Path) -> None:
    """From outside, by another way and from another worktree: only what is inside can have wildcards."""
    made_repository(tmp_path / "a [1]" / "shop")
    shop = tmp_path / "a [1]" / "shop"
    (tmp_path / "way {x}").symlink_to(shop / "src")
    added_worktree(shop, tmp_path / "b [2]")
    assert paths(shop, f"{shop}/src/*.py") == ["src/*.py"]
    assert paths(shop, "../../../a [1]/shop/src/*.py", "src") == ["src/*.py"]
    assert paths(shop, f"{tmp_path}/way {{x}}/*.py") == ["src/*.py"]
    assert paths(shop, f"{tmp_path}/b [2]/src/*.py") == ["src/*.py"]


@pytest.mark.parametrize("name", ["a[1].py", "a*b", "what?", "{x}", "back\\slash", "a,b"])
def test_a_literal_path_has_no_wildcards(name: str, shop: Path) -> None:
    """Tools name files, not patterns."""
    (found,) = paths(shop, f"src/{name}", literal=True)
    (pattern,) = parse_pattern(found)
    assert pattern.literal
    assert covers(pattern, literal_path(f"src/{name}"))


@pytest.mark.parametrize("repository", [None, Repository(None, "/srv/hub.git")])
def test_without_a_worktree_there_are_no_files(repository: Repository | None) -> None:
    """DESIGN §5: outside a repository `file:` is refused (2); so it is in a bare one."""
    with pytest.raises(Invalid, match="in no worktree"):
        repository_path(repository, "x", "/")


WORDS = st.lists(
    st.sampled_from(["..", ".", "src", "*", "[a]", "{a,b}", "\\*", "x", "", ".git", "~"]), max_size=6
)


@given(words=WORDS, literal=st.booleans(), absolute=st.booleans())
def test_any_text_gives_a_valid_path_or_is_refused(
    words: list[str], literal: bool, absolute: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever comes in, what comes out is a path that the core accepts, and none of it leads out."""
    shop = tmp_path_factory.getbasetemp() / "fuzzed"
    if not shop.exists():
        made_repository(shop)
    text = ("/" if absolute else "") + "/".join(words)
    with contextlib.suppress(Invalid):
        for found in paths(shop, text, "src", literal=literal):
            assert all(".." not in pattern.spelled for pattern in parse_pattern(found))
