"""A store moves elsewhere: nothing is lost, no fence changes, nobody goes on in the old one."""

import contextlib
import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import coord
from coord.core.errors import Corrupt, Invalid, NotFound, Refused, Trimmed, Unavailable
from coord.host.store_location import move_pin, pinned_location
from coord.sdk.admin import migrate as module
from coord.sdk.admin.migrate import MigrationReport, cancel_migration, migrate
from coord.sdk.client.client import Client
from coord.sdk.coordinator import TaskCoordinator
from coord.stores.files.io import FileLayer
from coord.stores.open import migrator, open_store
from coord.stores.urls import redact
from tests.support.fork_server import end, start
from tests.support.git_folders import git
from tests.support.programs.migrate_and_die import FILE_STEPS, Doom, Over, doomed, over
from tests.support.servers.kinds import NEIGHBOURS

PATIENCE_S = 60
LARGE = "x" * 9000
"""More than a files store keeps in memory; forty times that is more than a record holds."""


class Shop:
    """A repository whose store moves."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.url = url
        if not folder.exists():
            folder.mkdir()
            git(folder, "init", "-q")
            self.client(proposed=url).close()

    def client(self, session: str = "ann-1", proposed: str = "") -> Client:
        environ = {"XDG_STATE_HOME": str(self.folder / "state"), "COORD_URL": proposed}
        return coord.connect(session=session, agent="ann", cwd=str(self.folder), environ=environ)

    def move(self, url: str, **options: Any) -> MigrationReport:
        return migrate(url, cwd=str(self.folder), **options)

    @property
    def pin(self) -> str:
        return pinned_location(str(self.folder)).url

    def fill(self) -> None:
        """Do a bit of everything, in two tenants."""
        with self.client() as ann, self.client("bob-1") as bob:
            ann.register(task="T", blob={"large": LARGE, "ß": "\u2028"})
            ann.acquire(["src/app.py", "name:release"], ttl_s=3000)
            ann.acquire("docs/*", ttl_s=3000, command_id="once")
            ann.unlock("name:release")
            bob.acquire("src/app.py")
            ann.send("bob-1", "status", "hello", body=LARGE)
            tasks = TaskCoordinator(ann.database)
            claim = tasks.claim_task("other", "shop", "A-001-x", "ann", "ann-1").claim
            assert claim is not None
            tasks.submit_result("other", "shop", "A-001-x", "ann-1", claim.generation, {"a": LARGE * 40})

    def seen(self) -> dict[str, Any]:
        """Return what users see of it."""
        with self.client() as ann, self.client("bob-1") as bob:
            tasks = TaskCoordinator(ann.database)
            return {
                "locks": {lock.resource: (lock.fence, lock.owner, lock.expires_ms) for lock in ann.locks()},
                "blob": ann.show().blob,
                "messages": [(each.id, each.body) for each in bob.recv(peek=True).messages],
                "history": tasks.get_claim_history("other", "shop", "A-001-x"),
                "result": tasks.get_result("other", "shop", "A-001-x").result_data,
                "grants": ann.database.log("local").scan("ended/", by="key", limit=10),
            }


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A repository with the store it has by default, and something in it."""
    made = Shop(tmp_path / "shop")
    made.fill()
    return made


@pytest.mark.parametrize(("old", "new"), NEIGHBOURS)
def test_all_of_it_is_there_afterwards(
    old: str, new: str, make_url: Callable[[str], str], tmp_path: Path
) -> None:
    """CLI-22: from any store to any other; records with versions and lines, history, messages, fences."""
    shop = Shop(tmp_path / "shop", make_url(old))
    shop.fill()
    before, url = shop.seen(), make_url(new)
    late = shop.client("late-1")
    moved = shop.move(url)
    assert (moved.migrated, shop.pin) == (True, url)
    assert moved.records["local"]["lock"] == 2
    assert set(moved.records) == {"local", "other"}
    assert shop.seen() == before
    check_it_goes_on(shop, before["locks"]["file:docs/*"][0])
    with late, pytest.raises(Unavailable, match="migrated to") as refused:
        late.acquire("src/late.py")
    assert f"--to-url {redact(url)}" in refused.value.hint


def check_it_goes_on(shop: Shop, fence: int) -> None:
    """LCK: fences go on rising, earlier ones still prove, a repeated command gets its fence again."""
    with shop.client() as ann:
        log = ann.database.log("local")
        head = log.load(["x"]) and log.seen.offset
        with pytest.raises(Trimmed) as trimmed:
            log.tail(head - 2, 10)
        assert trimmed.value.first == head
        assert [entry.offset for entry in log.tail(head - 1, 10)] == [head]
        assert ann.acquire("docs/*", ttl_s=3000, command_id="once").locks[0].fence == fence
        assert ann.acquire("src/new.py").locks[0].fence == head + 1
        assert ann.unlock("docs/*", fence=fence).released == ["file:docs/*"]
    with shop.client() as again:
        assert {lock.resource for lock in again.locks()} == {"file:src/app.py", "file:src/new.py"}


def test_where_tenants_live_is_known_in_the_copy(shop: Shop, tmp_path: Path) -> None:
    """TEN-3: a tenant with a store of its own is looked for in no shared store, before and after a move."""
    tenants = {"acme": f"sqlite://{tmp_path}/acme.db"}
    coord.install(shop.pin, tenant="acme", tenants=tenants)
    shop.move(f"file://{tmp_path}/new")
    with contextlib.closing(open_store(shop.pin)) as plain, pytest.raises(Unavailable, match="its own store"):
        plain.log("acme")
    with contextlib.closing(open_store(shop.pin, tenants=tenants)) as routed:
        assert routed.log("acme").load(["k"])["k"].value is None


def test_a_dry_run_only_counts(shop: Shop, tmp_path: Path) -> None:
    """`--dry-run` says what would be moved by tenant and kind, and makes and changes nothing."""
    before, pin = shop.seen(), shop.pin
    would = shop.move(f"file://{tmp_path}/new", dry_run=True)
    assert not would.migrated
    assert would.records["local"]["session"] == 2
    assert would.records["other"] == {"blob": 3, "count": 2, "result": 1, "task": 1}
    assert not (tmp_path / "new").exists()
    assert (shop.pin, shop.seen()) == (pin, before)
    with shop.client() as ann:
        assert ann.acquire("src/new.py").ok


def test_progress_is_told(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long copy shows how far it is."""
    monkeypatch.setattr(module, "PAGE_RECORDS", 4)
    told: list[tuple[str, int]] = []
    moved = shop.move(f"sqlite://{tmp_path}/new.db", progress=lambda *each: told.append(each))
    assert told[:2] == [("local", 4), ("local", 8)]
    assert told[-1] == ("other", sum(moved.records["other"].values()))


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_a_store_that_holds_something_is_refused(
    kind: str, shop: Shop, make_url: Callable[[str], str], tmp_path: Path
) -> None:
    """Nothing is ever mixed: a target with anything in it is refused, and nothing has changed."""
    other = Shop(tmp_path / "other", make_url(kind))
    other.fill()
    theirs, before = other.seen(), shop.seen()
    for dry_run in (True, False):
        with pytest.raises(Refused, match="is not empty"):
            shop.move(other.url, dry_run=dry_run)
    assert (other.seen(), shop.seen()) == (theirs, before)
    with shop.client() as ann:
        assert ann.acquire("src/new.py").ok


def test_what_cannot_be_moved_is_refused(shop: Shop, tmp_path: Path) -> None:
    """The current store, memory, an unpinned repository and no repository at all: each with its reason."""
    with pytest.raises(Invalid, match="is the current store"):
        shop.move(shop.pin)
    with pytest.raises(Invalid, match="memory keeps no data"):
        shop.move("memory:")
    (tmp_path / "fresh").mkdir()
    with pytest.raises(Invalid, match="not in a git repository"):
        migrate(f"sqlite://{tmp_path}/new.db", cwd=str(tmp_path / "fresh"))
    git(tmp_path / "fresh", "init", "-q")
    with pytest.raises(NotFound, match="no store yet"):
        migrate(f"sqlite://{tmp_path}/new.db", cwd=str(tmp_path / "fresh"))
    assert not (tmp_path / "new.db").exists()


def test_other_clones_follow(shop: Shop, tmp_path: Path) -> None:
    """Who is pinned to the old store is refused with the new url, and the same command moves that pin."""
    clone = Shop(tmp_path / "clone", shop.pin)
    url = f"file://{tmp_path}/new"
    shop.move(url)
    with shop.client() as ann:
        fence = ann.acquire("src/after.py").locks[0].fence
    with pytest.raises(Unavailable, match="migrated to") as refused:
        clone.client()
    assert f"coord migrate --to-url {url}" in refused.value.hint
    with pytest.raises(Refused, match="cannot be cancelled"):
        cancel_migration(str(clone.folder))
    assert clone.move(url).migrated
    assert clone.pin == url
    with clone.client() as ann:
        assert fence in [lock.fence for lock in ann.locks()]


def test_a_copy_that_differs_is_noticed(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy is read back and compared before the pin moves; then the old store can be opened again."""

    def forgetful(database: Any) -> Any:
        made: Any = migrator(database)
        add = made.add
        made.add = lambda tenant, records: add(tenant, records[1:])
        return made

    before, pin = shop.seen(), shop.pin
    with monkeypatch.context() as patched:
        patched.setattr(module, "migrator", forgetful)
        with pytest.raises(Corrupt, match="differs"):
            shop.move(f"sqlite://{tmp_path}/new.db")
    assert shop.pin == pin
    assert cancel_migration(str(shop.folder))
    assert shop.seen() == before


def test_a_cancelled_move_begins_anew(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `--cancel` the old store is in use again; a later move copies what it holds then."""
    url = f"file://{tmp_path}/new"
    with monkeypatch.context() as patched:
        doomed(Doom(8, over), patched.setattr)
        with pytest.raises(Over):
            shop.move(url)
    with pytest.raises(Unavailable, match="migrated to"):
        shop.client()
    with pytest.raises(Unavailable, match="incomplete copy"):
        open_store(url)
    with pytest.raises(Refused, match="being migrated to"):
        shop.move(f"sqlite://{tmp_path}/third.db")
    assert cancel_migration(str(shop.folder))
    assert not cancel_migration(str(shop.folder))
    with shop.client() as ann:
        ann.unlock("docs/*")
        ann.acquire("src/more.py", ttl_s=3000)
    before = shop.seen()
    assert shop.move(url).resumed
    assert shop.seen() == before
    assert {"file:src/more.py", "file:src/app.py"} == set(before["locks"])


def test_two_migrations_at_once(shop: Shop, tmp_path: Path) -> None:
    """A second migration of the same repository is refused while one runs."""
    refused: list[str] = []

    def again(_tenant: str, _count: int) -> None:
        with pytest.raises(Unavailable, match="another migration") as second:
            shop.move(f"sqlite://{tmp_path}/third.db")
        refused.append(second.value.hint)

    shop.move(f"sqlite://{tmp_path}/new.db", progress=again)
    assert refused
    assert not (tmp_path / "third.db").exists()


class Template:
    """A filled repository with its store, to be copied as often as it is needed."""

    def __init__(self, folder: Path, kind: str) -> None:
        folder.mkdir()
        self._folder = folder
        self._kind = kind
        self._count = 0
        shop = Shop(folder / "shop", self._url(folder))
        shop.fill()
        self.seen = shop.seen()

    def _url(self, folder: Path) -> str:
        return f"file://{folder}/store" if self._kind == "files" else ""

    def copy(self) -> Shop:
        """Return a copy with a pin of its own."""
        self._count += 1
        folder = self._folder.with_name(f"copy-{self._count}")
        shutil.copytree(self._folder, folder)
        move_pin(pinned_location(str(folder / "shop")), url=self._url(folder))
        return Shop(folder / "shop")


@pytest.mark.parametrize(("old", "new"), [("sqlite", "files"), ("files", "sqlite")])
def test_it_goes_on_after_a_crash_at_any_step(
    old: str, new: str, tmp_path: Path, make_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was the last step that happened, down to single files: the same call completes the move."""
    monkeypatch.setattr(module, "PAGE_RECORDS", 6)
    template = Template(tmp_path / "template", old)
    for step in range(1, 1000):
        shop, url, doom = template.copy(), make_url(new), Doom(step, over)
        with monkeypatch.context() as patched:
            doomed(doom, patched.setattr)
            for name in FILE_STEPS:
                patched.setattr(FileLayer, name, doom.on(getattr(FileLayer, name)))
            with contextlib.suppress(Over):
                shop.move(url)
        if doom.steps < step:
            assert step > 20
            return
        if shop.pin != url:
            shop.move(url)
        assert (shop.pin, shop.seen()) == (url, template.seen)
    raise AssertionError("it never ends")


@pytest.mark.parametrize(("old", "new"), [("sqlite", "files"), ("files", "sqlite")])
def test_it_goes_on_after_kill_9(old: str, new: str, tmp_path: Path, make_url: Callable[[str], str]) -> None:
    """Killed between any two steps, or pages, it is completed by the same command; no commit is lost."""
    template = Template(tmp_path / "template", old)
    killed = 0
    for step in range(1, 100):
        shop, url = template.copy(), make_url(new)
        process = start("tests.support.programs.migrate_and_die", str(shop.folder), url, str(step))
        ended = process.wait(PATIENCE_S)
        end(process, PATIENCE_S)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        killed += 1
        before = written_meanwhile(shop)
        shop.move(url)
        assert shop.pin == url
        with shop.client() as ann:
            assert {lock.resource: lock.fence for lock in ann.locks()} == before
    assert killed >= 10


def written_meanwhile(shop: Shop) -> dict[str, int]:
    """Write to the old store if it takes commits; return the locks that have to be there afterwards."""
    try:
        with shop.client() as ann:
            ann.acquire("src/meanwhile.py", ttl_s=3000)
            return {lock.resource: lock.fence for lock in ann.locks()}
    except Unavailable:
        database = open_store(shop.pin, migrating=True)
        try:
            holds = database.log("local").scan("lock/", by="key", limit=100)
            assert all(head for head in migrator(database).heads().values())
            found = [(json.loads(hold.value or b""), hold.version) for hold in holds]
            return {hold["resource"]: hold.get("fence") or version for hold, version in found}
        finally:
            database.close()
