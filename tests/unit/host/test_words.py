"""What a word means: bare words, spellings, links; the same before and after a file exists."""

import os
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from unicodedata import normalize

import pytest

from coord.core.errors import LockLost, NotFound, NotOwner
from tests.support.client_harness import ClientHarness, open_client_harness
from tests.support.git_folders import added_worktree, made_repository


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[ClientHarness]:
    root = tmp_path / "repository"
    made_repository(root)
    with open_client_harness("memory:", root, tmp_path / "state") as clients:
        yield clients


def named(reply: object) -> list[str]:
    return [lock.resource for lock in reply.locks]  # type: ignore[attr-defined]


@pytest.mark.parametrize("exists", [False, True])
def test_a_bare_word_is_a_file_and_a_name(clients: ClientHarness, exists: bool) -> None:
    """Issue 15: `LICENSE` covers both, whether or not the file exists; a prefix means one of them."""
    ann, bob = clients.client("ann"), clients.client("bob")
    if exists:
        (clients.repository / "LICENSE").touch()
    before = clients.head
    reply = ann.acquire("LICENSE")
    assert clients.head == before + 1, "one commit"
    assert {(lock.resource, lock.profile, lock.mode, lock.expires_in_s) for lock in reply.locks} == {
        ("file:LICENSE", "file", "write", 300),
        ("name:LICENSE", "name", "exclusive", 3600),
    }
    for word in ("LICENSE", "./LICENSE", "file:LICENSE", "name:LICENSE", "license", "LICENSE/x"):
        assert not bob.check(word).free
        assert not bob.acquire(word).ok
    assert ann.unlock("LICENSE").released == ["file:LICENSE", "name:LICENSE"]
    for mine, others in (("name:LICENSE", "./LICENSE"), ("file:LICENSE", "name:LICENSE")):
        assert named(ann.acquire(mine)) == [mine]
        assert bob.acquire(others).ok
        assert not clients.client("cid").acquire("LICENSE").ok
        ann.unlock()
        bob.unlock()


def test_all_or_nothing(clients: ClientHarness) -> None:
    """If another session has one of the two, the word gets none."""
    ann, bob = clients.client("ann"), clients.client("bob")
    for held in ("name:Makefile", "./Makefile"):
        bob.acquire(held)
        assert not ann.acquire("Makefile").ok
        assert ann.locks() == bob.locks()
        assert not ann.check("Makefile").free
        assert ann.steal("Makefile", force=True, reason="needed").ok
        assert len(ann.unlock("Makefile").released) == 2


def test_what_is_not_bare(clients: ClientHarness) -> None:
    """A separator, a dot or a wildcard makes a file; a name of the machine stays one; so does one outside."""
    ann = clients.client("ann")
    assert ann.resolve("a.py") == ("file:a.py",)
    assert ann.resolve("Claude-Config") == ("name:Claude-Config",)
    assert ann.resolve("!x") == ("file:!x", "name:!x")
    assert ann.resolve("x" * 101) == (f"file:{'x' * 101}",), "too long for a name"
    inside = clients.client("ann", cwd=clients.repository / "src")
    assert inside.resolve("Makefile") == ("file:src/Makefile", "name:Makefile")
    outside = clients.client("ann", cwd=clients.repository.parent)
    words = outside.read_words("LICENSE")
    assert words.texts == ("name:LICENSE",)
    assert words.notes == ("LICENSE is only a name here: there is no worktree whose files it could mean",)
    assert outside.acquire("LICENSE").warnings == list(words.notes)


def test_one_of_the_two_is_enough_to_release(clients: ClientHarness) -> None:
    """A word releases, renews and hands over what the session has of it; it fails only without any."""
    ann, bob = clients.client("ann"), clients.client("bob")
    ann.acquire("./LICENSE")
    assert named(ann.renew("LICENSE")) == ["file:LICENSE"]
    assert ann.unlock("LICENSE").released == ["file:LICENSE"]
    with pytest.raises(NotFound):
        ann.unlock("LICENSE")
    bob.acquire("name:LICENSE")
    with pytest.raises((NotOwner, NotFound)):
        ann.unlock("LICENSE")
    ann.acquire("file:LICENSE")
    assert named(ann.handoff("LICENSE", "bob")) == ["file:LICENSE"]
    assert sorted(bob.unlock("LICENSE").released) == ["file:LICENSE", "name:LICENSE"]


@pytest.mark.parametrize("swept", [False, True])
def test_a_lost_half_is_not_renewed_silently(clients: ClientHarness, swept: bool) -> None:
    """The file's lease ends before the name's: to renew or to prove the word fails; to release it works."""
    ann = clients.client("ann")
    fence = ann.acquire("LICENSE").locks[0].fence
    assert ann.check("LICENSE", fence=fence).free
    clients.now += 301_000
    if swept:
        clients.client("bob").acquire("LICENSE.md")
        clients.client("bob").acquire("./LICENSE")
        clients.client("bob").unlock("./LICENSE")
    with pytest.raises((LockLost, NotFound), match="file:LICENSE"):
        ann.renew("LICENSE")
    assert not ann.check("LICENSE", fence=fence).free
    assert ann.unlock("LICENSE").released == ["name:LICENSE"]


def test_a_half_that_was_released_is_not_lost(clients: ClientHarness) -> None:
    """Who released the name itself may go on renewing the word."""
    ann = clients.client("ann")
    fence = ann.acquire("LICENSE").locks[0].fence
    ann.unlock("name:LICENSE")
    assert named(ann.renew("LICENSE")) == ["file:LICENSE"]
    assert ann.check("LICENSE", fence=fence).free


def test_a_block_holds_both(clients: ClientHarness) -> None:
    """SDK-5: a block locks the file and the name, and releases both."""
    ann = clients.client("ann")
    with ann.lock("LICENSE"):
        assert len(ann.locks()) == 2
    assert ann.locks() == []


def test_a_task_names_files(clients: ClientHarness) -> None:
    """The files of a task are files, also without an extension; globs cover both readings."""
    ann = clients.client("ann", project="shop")
    ann.add_task("T1", files=["LICENSE", "app/[id]/page.tsx"])
    assert named(ann.next_task()) == ["file:LICENSE", "file:app/[id]/page.tsx"]
    bob = clients.client("bob")
    assert not bob.acquire(r"app/\[id]/page.tsx").ok
    assert not bob.acquire("app/i/page.tsx").ok
    assert bob.acquire("name:LICENSE").ok


SPELLINGS = {
    "app/[id]/page.tsx": (
        "./app/[id]/page.tsx",
        "app//[id]/page.tsx",
        "APP/[ID]/page.tsx",
        "app/[id]",
        "app/",
    ),
    "app/[id]/*.tsx": (r"app/\[id]/page.tsx", "app/i/x.tsx", "app/[id]"),
    "{a,b}.txt": ("./{a,b}.txt", "a.txt", "b.txt", r"\{a,b\}.txt"),
    "a*b": ("a\\*b", "A*B", "axb"),
    "what?.md": ("what\\?.md", "whatx.md"),
    "!x.md": ("./!x.md", "src/../!x.md"),
    "docs": ("docs/", "docs/deep/x.md", "Docs", "docs/*.md", "docs/**/y"),
    "[[...slug]]/page.tsx": ("./[[...slug]]/page.tsx", r"\[\[...slug]]/page.tsx"),
    "é.md": (normalize("NFD", "é.md"), "É.md"),
    "src/{id}.ts": (r"src/\{id\}.ts", "src/../src/{id}.ts"),
}
APART = (("app/[id]/page.tsx", "app/x/page.tsx"), ("a*b", "a*c"), ("{a,b}.txt", "c.txt"), ("docs", "docs2"))


@pytest.mark.parametrize("word", SPELLINGS)
@pytest.mark.parametrize("exists", [False, True])
def test_all_spellings_meet(clients: ClientHarness, word: str, exists: bool, tmp_path: Path) -> None:
    """Issue 15: two texts get the same answer in either order, before and after the files exist."""
    if exists:
        (clients.repository / word).parent.mkdir(parents=True, exist_ok=True)
        (clients.repository / word).touch()
    other = tmp_path / "other"
    added_worktree(clients.repository, other)
    words = [word, *SPELLINGS[word], str(clients.repository / word), str(other / word)]
    ann, bob = clients.client("ann"), clients.client("bob", cwd=other)
    for one, two in [pair for spelling in words for pair in ((word, spelling), (spelling, word))]:
        assert ann.acquire(one).ok
        assert not bob.check(two).free, (one, two)
        assert not bob.acquire(two).ok, (one, two)
        ann.unlock(one)
        assert ann.locks() == []


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("pair", APART)
def test_these_stay_apart(clients: ClientHarness, pair: tuple[str, str], exists: bool) -> None:
    """What no reading has in common is free, in either order."""
    for path in pair if exists else ():
        (clients.repository / path).parent.mkdir(parents=True, exist_ok=True)
        (clients.repository / path).touch()
    ann, bob = clients.client("ann"), clients.client("bob")
    for one, two in (pair, pair[::-1]):
        assert ann.acquire(one).ok
        assert bob.acquire(two).ok
        ann.unlock()
        bob.unlock()


LINKED = ("src", "lib/real.py", "hard.py", "src/link/real.py")


def link_tree(root: Path) -> None:
    for path in ("lib/real.py", "lib/deep/other.py", "src/app.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x\n")
    (root / "src/link").symlink_to("../lib")
    (root / "src/hop").symlink_to("link/deep")
    os.link(root / "lib/real.py", root / "hard.py")


MEET_BY_LINKS = (
    *(
        ("src", path)
        for path in ("lib/real.py", "lib", "lib/*.py", "hard.py", "lib/deep", "src/hop/other.py")
    ),
    *(("src/**", path) for path in ("lib/real.py", "lib/deep/other.py", "hard.py")),
    *(("src/*/real.py", path) for path in ("lib/real.py", "lib", "hard.py", "src/link")),
    *(("src/link/real.py", path) for path in ("lib/real.py", "hard.py", "l*/real.py")),
    *(("hard.py", path) for path in ("lib/real.py", "src", "src/link/real.py", "lib")),
    *(("src/hop", path) for path in ("lib/deep/other.py", "lib")),
)


@pytest.mark.parametrize("pair", MEET_BY_LINKS, ids="+".join)
def test_links_are_covered_in_both_directions(clients: ClientHarness, pair: tuple[str, str]) -> None:
    """Issue 15: with src/link → ../lib, no two sessions hold the same file by two names."""
    link_tree(clients.repository)
    ann, bob = clients.client("ann"), clients.client("bob")
    for one, two in (pair, pair[::-1]):
        assert ann.acquire(one).ok
        assert not bob.check(two).free
        assert not bob.acquire(two).ok
        ann.unlock(one)
        assert ann.locks() == []


def test_the_reply_names_the_targets(clients: ClientHarness) -> None:
    """The locks and one sentence show which links are covered, and which cannot be."""
    link_tree(clients.repository)
    (clients.repository / "src/out").symlink_to("/etc")
    reply = clients.client("ann").acquire("src/*")
    assert named(reply) == ["file:hard.py", "file:lib", "file:src/*"]
    assert reply.warnings == [
        "src/*: not covered, because it cannot be locked here: src/out (it leads to '/etc')",
        "src/*: links lead to lib (src/link), hard.py (lib/real.py), which it covers, too",
    ]


def test_a_link_that_came_or_went_keeps_nobody_from_unlocking(clients: ClientHarness) -> None:
    """A word releases what the session has of it."""
    link_tree(clients.repository)
    ann = clients.client("ann")
    ann.acquire("./lib")
    (clients.repository / "lib/more").symlink_to("../docs")
    assert ann.unlock("./lib").released
    assert [lock.resource for lock in ann.locks()] == []


@pytest.mark.parametrize(("one", "two"), list(combinations(LINKED, 2)))
def test_linked_names_of_a_task_and_a_lock(clients: ClientHarness, one: str, two: str) -> None:
    """A task that names a folder with links is not claimed beside a lock on their target."""
    link_tree(clients.repository)
    ann, bob = clients.client("ann", project="shop"), clients.client("bob")
    ann.add_task("T1", files=[one])
    bob.acquire(two)
    assert ann.next_task().task is None
    bob.unlock()
    assert ann.next_task().task is not None
    assert not bob.acquire(two).ok
