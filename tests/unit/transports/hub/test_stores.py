"""The stores of a hub follow their repositories: what a repository has left is given to nobody."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from coord.core.errors import Corrupt, NotFound, Unreachable
from coord.core.tasks.commands import ClaimTask
from coord.host.store_location import StoreLocation, find_location
from coord.sdk.admin.migrate import migrate
from coord.sdk.client.open import initialise, open_location
from coord.transports.hub import stores as hub_stores
from coord.transports.hub.stores import HubStores, OpenStore
from tests.support.git_folders import made_repository

PATIENCE_S = 60.0
CLAIM = ClaimTask("local", "shop", "t1", "agent", "ada", 60_000)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no earlier look at a pin count, however fast the test is."""
    monkeypatch.setattr(hub_stores, "LOOKED_S", 0.0)


@pytest.fixture
def roots(tmp_path: Path, environ: dict[str, str]) -> list[str]:
    """Two repositories in which coord is in use."""
    for name in ("shop", "bank"):
        made_repository(tmp_path / name)
        initialise(str(tmp_path / name), environ)
    return [str(tmp_path / "shop"), str(tmp_path / "bank")]


@pytest.fixture
def run(environ: dict[str, str], roots: list[str]) -> Callable[..., None]:
    """Run a test with the stores of a hub that was started in the first repository."""

    def run_it(test: Callable[[HubStores], Awaitable[None]]) -> None:
        async def main() -> None:
            stores = HubStores(environ, find_location(roots[0], environ))
            try:
                await asyncio.wait_for(test(stores), PATIENCE_S)
            finally:
                await stores.close()
            assert not list(stores)

        asyncio.run(main())

    return run_it


async def claim(stores: HubStores, store: OpenStore) -> bool:
    with store.in_use():
        engine = await stores.engine(store, "local")
        return bool((await engine.ask(CLAIM)).success)


def test_each_repository_has_its_own_store(run: Callable[..., None], roots: list[str]) -> None:
    """Opened on demand, and the same object for every worktree and subfolder."""

    async def test(stores: HubStores) -> None:
        shop, bank = await asyncio.gather(*map(stores.of_root, roots))
        assert shop.database.store_id != bank.database.store_id
        assert [await claim(stores, each) for each in (shop, bank)] == [True, True]
        assert await stores.of_root(roots[1]) is bank
        assert await stores.of_repository(bank.location.repository_id) is bank
        assert await stores.of_repository("") is shop

    run(test)


def test_an_idle_store_is_closed_and_opened_again(run: Callable[..., None], roots: list[str]) -> None:
    """By its folder, by its repository's id, and by the id that a token names."""

    async def test(stores: HubStores) -> None:
        bank = await stores.of_root(roots[1])
        with bank.in_use():
            await stores.close_idle(-1.0)
            assert not bank.database.closed, "somebody uses it"
        await stores.close_idle(-1.0)
        assert (bank.database.closed, list(stores)) == (True, [])
        again = await stores.of_store_id(bank.database.store_id[:8])
        assert again is not None
        assert again.database.store_id == bank.database.store_id
        await stores.close_idle(-1.0)
        third = await stores.of_repository(bank.location.repository_id)
        assert await stores.of_root(roots[1]) is third
        assert await stores.of_store_id("nobody") is None

    run(test)


def lose(root: str, environ: dict[str, str]) -> None:
    shutil.rmtree(f"{root}/.git/coord")
    initialise(root, environ, new_store=True)


def start_afresh(root: str, environ: dict[str, str]) -> None:
    os.unlink(f"{root}/.git/coord/store/coord.db")
    initialise(root, environ, new_store=True)


def replace_file(root: str, environ: dict[str, str]) -> None:
    """What a repair does: the same store in another file."""
    path = f"{root}/.git/coord/store/coord.db"
    shutil.copy2(path, f"{path}.new")
    os.replace(f"{path}.new", path)


@pytest.mark.parametrize("change", [lose, start_afresh, replace_file])
@pytest.mark.parametrize("by", ["root", "default", "token"])
def test_a_store_that_the_repository_has_left_is_not_used(
    run: Callable[..., None],
    roots: list[str],
    environ: dict[str, str],
    change: Callable[[str, dict[str, str]], None],
    by: str,
) -> None:
    """The next request gets the new store; one that is under way may end with the old one."""

    async def test(stores: HubStores) -> None:
        old = await stores.of_root(roots[0])
        assert old.is_current
        await stores.run(change, roots[0], environ)
        with old.in_use():
            if by == "root":
                new: OpenStore | None = await stores.of_root(roots[0])
            elif by == "default":
                new = await stores.of_repository("")
            else:
                new = await stores.of_store_id(old.database.store_id)
            assert new is not old
            assert not old.database.closed
        if new is not None:
            assert new.database.store_id == find_location(roots[0], environ).store_id
            assert await claim(stores, new)
        else:
            assert (by, change is not replace_file) == ("token", True), "a token names one store"
        await stores.close_idle()
        assert old.database.closed

    run(test)


def test_requests_that_come_together_share_a_look_at_the_pin(
    run: Callable[..., None], roots: list[str], environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a look that found the store unchanged counts for those after it; a closed store never does."""
    looks: list[StoreLocation] = []

    def look(location: StoreLocation) -> hub_stores.Signature:
        looks.append(location)
        return look_now(location)

    async def test(stores: HubStores) -> None:
        store, left = await stores.of_root(roots[0]), await stores.of_root(roots[1])
        monkeypatch.setattr(hub_stores, "signature", look)
        monkeypatch.setattr(hub_stores, "LOOKED_S", 3600.0)
        assert [store.is_current for _ in range(3)] == [True] * 3
        assert len(looks) == 1
        lose(roots[1], environ)
        assert [left.is_current for _ in range(3)] == [False] * 3
        assert len(looks) == 4
        store.close()
        assert not store.is_current

    look_now = hub_stores.signature
    run(test)


def test_a_store_that_is_gone_is_an_error(run: Callable[..., None], roots: list[str]) -> None:
    """The hub does not go on with a file that has no name any more."""

    async def test(stores: HubStores) -> None:
        await stores.of_root(roots[1])
        shutil.rmtree(f"{roots[1]}/.git/coord")
        with pytest.raises(Corrupt, match="is gone"):
            await stores.of_root(roots[1])
        with pytest.raises(NotFound):
            await stores.of_root("/")

    run(test)


def test_a_reload_opens_everything_again(run: Callable[..., None], roots: list[str]) -> None:
    async def test(stores: HubStores) -> None:
        old = await stores.of_root(roots[0])
        stores.reopen()
        assert await stores.of_root(roots[0]) is not old
        await stores.close_idle()
        assert old.database.closed

    run(test)


def test_the_environment_of_the_hub_names_no_store(
    roots: list[str], environ: dict[str, str], tmp_path: Path
) -> None:
    """COORD_URL was meant for the folder in which the hub was started."""

    async def main() -> None:
        location: StoreLocation = find_location(roots[0], environ)
        stores = HubStores({**environ, "COORD_URL": f"sqlite:{tmp_path}/other.db"}, location)
        try:
            bank = await stores.of_root(roots[1])
            assert bank.database.store_id == find_location(roots[1], environ).store_id
        finally:
            await stores.close()

    asyncio.run(main())


def test_nothing_is_opened_after_the_stop(run: Callable[..., None], roots: list[str]) -> None:
    """Not even what was being opened when it came."""

    async def test(stores: HubStores) -> None:
        opening = asyncio.ensure_future(stores.of_root(roots[1]))
        await asyncio.sleep(0)
        await stores.close()
        with pytest.raises((Unreachable, RuntimeError)):
            await opening
        assert not list(stores)

    run(test)


def test_waits_end_when_their_store_is_left(run: Callable[..., None], roots: list[str]) -> None:
    async def test(stores: HubStores) -> None:
        old = await stores.of_root(roots[0])
        with old.in_use():
            waiting = asyncio.ensure_future(old.watcher("local").wait(10**15, PATIENCE_S))
            await asyncio.sleep(0)
            stores.reopen()
            assert not await waiting
            assert not await old.watcher("other").wait(10**15, PATIENCE_S)

    run(test)


def test_a_location_is_opened_once(run: Callable[..., None], roots: list[str]) -> None:
    async def test(stores: HubStores) -> None:
        found = await asyncio.gather(*[stores.of_root(roots[1]) for _ in range(20)])
        assert len(set(map(id, found))) == 1

    run(test)


def test_another_process_may_use_the_same_store(
    run: Callable[..., None], roots: list[str], environ: dict[str, str]
) -> None:
    """Opening it elsewhere changes no pin, so the hub keeps what it has."""

    async def test(stores: HubStores) -> None:
        store = await stores.of_root(roots[0])
        with closing(open_location(find_location(roots[0], environ))[0]) as direct:
            direct.log("local")
        assert await stores.of_root(roots[0]) is store

    run(test)


def test_tokens_of_a_migrated_store_mean_its_copy(
    run: Callable[..., None], roots: list[str], tmp_path: Path
) -> None:
    """A token names its store by id. The old store is sealed, so only its copy can revoke the token."""

    async def test(stores: HubStores) -> None:
        old = (await stores.of_root(roots[0])).database.store_id
        bank = (await stores.of_root(roots[1])).database.store_id
        for number in (1, 2):
            migrate(f"sqlite:{tmp_path}/copy{number}.db", cwd=roots[0])
        copy = await stores.of_store_id(old[:8])
        assert copy is not None
        assert copy is await stores.of_root(roots[0])
        assert copy.ids[1:] == (old, copy.database.metadata["copied_from"])
        await stores.close_idle(0.0)
        assert await stores.of_store_id(old[:8]) is not None, "also if it has to be opened again"
        copy.ids = (copy.database.store_id, bank)
        found = await stores.of_store_id(bank[:8])
        assert (found is not None, found is copy) == (True, False), "a store that is served comes first"

    run(test)
