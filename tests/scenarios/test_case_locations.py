"""Where state lives and what a path means (DESIGN §5, §6): one repository, one store, one lock per file."""

import os
import unicodedata
from pathlib import Path

import pytest

import coord
from coord import Client, Corrupt, Invalid
from coord.core.locks.commands import Outcome
from coord.host.pin import read_pin
from coord.sdk.client.open import initialise
from tests.support.client_harness import ClientHarness
from tests.support.git_folders import added_worktree, git
from tests.support.stores.lost_store import remove_store


@pytest.fixture
def environ(shared_url: str, tmp_path: Path) -> dict[str, str]:
    """An environment that proposes a store of every kind that several processes can open."""
    return {"COORD_URL": shared_url, "XDG_STATE_HOME": str(tmp_path / "state")}


def connect(repository: Path, environ: dict[str, str], session: str = "ann") -> Client:
    return coord.connect(session=session, cwd=str(repository), environ=environ)


def pin_text(repository: Path) -> str:
    return (repository / ".git/coord/coord.id").read_text()


def test_two_projects_see_each_others_files(clients: ClientHarness) -> None:
    """File locks are keyed by repository, never by project; two projects of one repository exclude.

    CFL-1.
    """
    shop, api = clients.client("ann", project="shop"), clients.client("bob", project="api")
    assert shop.acquire("src/app.py").ok
    denied = api.acquire("src/app.py")
    assert denied.outcome is Outcome.HELD
    assert denied.holder is not None
    assert denied.holder.owner == "ann"
    assert [lock.resource for lock in api.locks()] == ["file:src/app.py"]
    assert [peer.project for peer in api.peers()] == ["shop"]


def test_two_repositories_do_not(clients: ClientHarness, tmp_path: Path) -> None:
    """The same path in another repository is another file, though the store is one."""
    other = tmp_path / "other"
    (other / "src").mkdir(parents=True)
    git(other, "init", "-q")
    assert clients.client("ann").acquire("src/app.py").ok
    assert clients.client("bob", cwd=other).acquire("src/app.py").ok


def test_another_worktree_has_the_same_locks(clients: ClientHarness, tmp_path: Path) -> None:
    """The same file from a real git worktree, from a folder below, by its full path: one lock.

    CFL-4, PRB-9.
    """
    worktree = tmp_path / "feature"
    added_worktree(clients.repository, worktree)
    ann = clients.client("ann")
    there, below = clients.client("bob", cwd=worktree), clients.client("cid", cwd=worktree / "src")
    fence = ann.acquire("src/app.py").locks[0].fence
    assert there.acquire("src/app.py").outcome is Outcome.HELD
    assert there.acquire(str(worktree / "src/app.py")).outcome is Outcome.HELD
    assert there.acquire(str(clients.repository / "src/app.py")).outcome is Outcome.HELD
    assert below.acquire("app.py").outcome is Outcome.HELD
    assert below.acquire("../src/./app.py").outcome is Outcome.HELD
    assert below.acquire("*.py").outcome is Outcome.HELD
    assert below.acquire("other.py").ok
    own = clients.client("ann", cwd=worktree)
    assert own.renew("src/app.py", fence=fence).locks[0].fence == fence
    assert own.unlock("src/app.py", fence=fence).released == ["file:src/app.py"]
    assert there.acquire("src/app.py").ok


def test_a_symlink_locks_both_forms(clients: ClientHarness) -> None:
    """A path through a symlink locks its lexical and its resolved form, so either name is excluded."""
    os.symlink("src", clients.repository / "source")
    ann, bob = clients.client("ann"), clients.client("bob")
    locked = [lock.resource for lock in ann.acquire("source/app.py").locks]
    assert sorted(locked) == ["file:source/app.py", "file:src/app.py"]
    assert bob.acquire("src/app.py").outcome is Outcome.HELD
    assert bob.acquire("source/app.py").outcome is Outcome.HELD
    assert bob.acquire("source").outcome is Outcome.HELD, "the link itself could be turned elsewhere"
    assert sorted(ann.unlock("source/app.py").released) == sorted(locked)
    assert bob.acquire("src/app.py").ok
    assert ann.acquire("source/app.py").outcome is Outcome.HELD, "also the other way round"
    assert len(bob.locks()) == 1, "all or nothing"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE}.py", "cafe\N{COMBINING ACUTE ACCENT}.py"),
        ("src/App.py", "SRC/aPP.PY"),
        ("stra\N{LATIN SMALL LETTER SHARP S}e/x", "STRASSE/x"),
        ("docs/", "docs"),
        ("src//app.py", "./src/app.py"),
    ],
)
def test_spellings_of_one_name(clients: ClientHarness, one: str, other: str) -> None:
    """Compared form is NFC + casefold: spellings that some file system takes for one are one lock."""
    ann, bob = clients.client("ann"), clients.client("bob")
    (lock,) = ann.acquire(one).locks
    assert bob.acquire(other).outcome is Outcome.HELD
    assert ann.unlock(other, fence=lock.fence).released == [lock.resource]
    spelled = unicodedata.normalize("NFC", one)
    assert lock.resource == f"file:{os.path.normpath(spelled)}", "the spelling is kept"


def test_a_store_that_vanished_is_corrupt(repository: Path, environ: dict[str, str]) -> None:
    """Rule 4: a pinned store that is gone never means "no locks", and no new one is made in its place."""
    with connect(repository, environ) as ann:
        assert ann.acquire("src/app.py").ok
    pinned = pin_text(repository)
    remove_store(environ["COORD_URL"])
    for _ in range(2):
        with pytest.raises(Corrupt) as caught:
            connect(repository, environ, "bob")
        assert "coord init --new-store" in caught.value.hint
    with pytest.raises(Corrupt, match="is gone"):
        initialise(str(repository), environ)
    with pytest.raises(Corrupt, match="is gone"):
        connect(repository, environ, "bob")
    assert pin_text(repository) == pinned


def test_a_store_that_was_replaced_is_corrupt(repository: Path, environ: dict[str, str]) -> None:
    """Another store in the place of the pinned one is refused, and left as it is."""
    with connect(repository, environ) as ann:
        assert ann.acquire("src/app.py").ok
    remove_store(environ["COORD_URL"])
    coord.install(environ["COORD_URL"])
    with pytest.raises(Corrupt, match="a different store") as caught:
        connect(repository, environ, "bob")
    assert "coord init --new-store" in caught.value.hint


def test_starting_afresh_raises_the_epoch(repository: Path, environ: dict[str, str]) -> None:
    """`init --new-store` begins an epoch with fences above all before; never in place of one in order."""
    with connect(repository, environ) as ann:
        old = ann.acquire("src/app.py").locks[0]
    before = read_pin(str(repository / ".git/coord"))
    assert before is not None
    with pytest.raises(Invalid, match="is intact"):
        initialise(str(repository), environ, new_store=True)
    remove_store(environ["COORD_URL"])
    place = initialise(str(repository), environ, new_store=True)
    assert place.epoch == before.epoch + 1
    assert place.store_id != before.store_id
    assert place.repository_id == before.repository_id
    after = read_pin(str(repository / ".git/coord"))
    assert after is not None
    assert (after.store_id, after.epoch) == (place.store_id, place.epoch)
    for tenant in ("local", "acme"):
        with connect(repository, {**environ, "COORD_TENANT": tenant}) as ann:
            assert ann.locks() == []
            assert ann.acquire("src/app.py").locks[0].fence > old.fence + 2**40 - 2**20


def test_starting_afresh_after_a_damaged_pin(repository: Path, environ: dict[str, str]) -> None:
    """What the hints of a damaged pin name works, and never takes over a store with somebody's data."""
    with connect(repository, environ) as ann:
        assert ann.acquire("src/app.py").ok
    (repository / ".git/coord/coord.id").write_text("{", encoding="utf-8")
    with pytest.raises(Corrupt) as caught:
        connect(repository, environ)
    assert "coord doctor --fix" in caught.value.hint
    with pytest.raises(Invalid, match="the pinned store is intact"):
        initialise(str(repository), environ, new_store=True)
    for folder in (".git", ".git/coord"):
        (repository / folder / "coord.id").write_text("{", encoding="utf-8")
    with pytest.raises(Corrupt) as caught:
        connect(repository, environ)
    assert caught.value.hint == "coord init --new-store"
    if not environ["COORD_URL"].startswith(("sqlite:", "file:")):  # a local one is kept under another name
        with pytest.raises(Invalid, match="not empty"):
            initialise(str(repository), environ, new_store=True)
        remove_store(environ["COORD_URL"])
    assert initialise(str(repository), environ, new_store=True).epoch == 1
    with connect(repository, environ) as ann:
        assert ann.acquire("src/app.py").ok


def test_two_urls_for_one_repository(repository: Path, environ: dict[str, str], tmp_path: Path) -> None:
    """A later disagreement is refused everywhere, with both named, and makes no second store."""
    other = f"sqlite://{tmp_path}/other.db"
    with connect(repository, environ):
        pass
    pinned = pin_text(repository)
    worktree = tmp_path / "feature"
    added_worktree(repository, worktree)
    for folder in (repository, repository / "src", worktree):
        with pytest.raises(Invalid) as caught:
            connect(folder, {**environ, "COORD_URL": other})
        for url in (environ["COORD_URL"].rpartition("@")[2], other):
            assert url in caught.value.message
        assert "migrate" in caught.value.hint
    (repository / "coord.toml").write_text(f'[store]\nurl = "{other}"\n')
    with pytest.raises(Invalid, match="two stores"):
        connect(repository, {"XDG_STATE_HOME": environ["XDG_STATE_HOME"]})
    assert pin_text(repository) == pinned
    assert not (tmp_path / "other.db").exists()


def test_files_need_a_repository(tmp_path: Path) -> None:
    """Outside of a repository `file:` is refused; names and messages use the user's own store."""
    outside = tmp_path / "outside"
    outside.mkdir()
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    with connect(outside, environ) as ann:
        with pytest.raises(Invalid) as caught:
            ann.acquire("app.py")
        assert caught.value.hint
        assert ann.acquire("name:deploy").ok
        assert ann.location.repository is None
