"""Where the store is: proposed once, pinned for good, and never guessed."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from coord.core.errors import CoordError, Corrupt, Invalid, Unavailable, Unsupported
from coord.core.ids import check_id
from coord.host.pin import read_pin
from coord.host.processes import this_machine
from coord.host.store_location import (
    StoreLocation,
    check_pinned,
    check_store_exists,
    find_location,
    local_path,
    move_pin,
    propose_location,
    remember_project,
    store_exists,
    user_location,
    write_pin,
)
from coord.sdk.client.client import connect
from coord.sdk.client.open import initialise
from coord.stores.open import open_store
from tests.support.git_folders import added_worktree, git, made_repository

SERVER = "postgresql://me:s3cret@host/db"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository in which coord was never used."""
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


def pinned(location: StoreLocation, store_id: str = "id1", epoch: int = 0) -> StoreLocation:
    return write_pin(location._replace(store_id=store_id, epoch=epoch))


def pin_file(shop: Path) -> Path:
    return shop / ".git/coord/coord.id"


def changed(shop: Path, **fields: object) -> None:
    """Change fields of the pin as another version or machine would have written them."""
    pin_file(shop).write_text(json.dumps({**json.loads(pin_file(shop).read_text()), **fields}))


def test_the_default_is_a_file_in_the_common_directory(shop: Path, tmp_path: Path) -> None:
    """DESIGN §5: SQLite in `coord/` inside the common git directory, so that every worktree shares it.

    PRB-18.
    """
    location = find_location(str(shop / "src"), {})
    assert location.url == f"sqlite://{shop}/.git/coord/store/coord.db"
    assert (location.pinned, location.local, location.folder) == (False, True, f"{shop}/.git/coord")
    added_worktree(shop, tmp_path / "feature")
    there = find_location(str(tmp_path / "feature"), {})
    assert there == location._replace(repository=there.repository)
    assert not pin_file(shop).exists()


def test_a_pin_is_found_again_by_everyone(shop: Path, tmp_path: Path) -> None:
    """DESIGN §5: `coord.id` pins url, store id and epoch, and says of which repository the locks are."""
    written = pinned(find_location(str(shop), {}), epoch=3)
    assert find_location(str(shop), {}) == written
    assert (written.store_id, written.epoch, written.pinned) == ("id1", 3, True)
    added_worktree(shop, tmp_path / "feature")
    assert find_location(str(tmp_path / "feature"), {})[:2] == written[:2]


def test_a_pin_is_private_and_whole(shop: Path) -> None:
    """A url may hold a password: folder and file belong to the user alone, and no draft is left."""
    pinned(find_location(str(shop), {}))
    folder = pin_file(shop).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(pin_file(shop).stat().st_mode) == 0o600
    assert os.listdir(folder) == ["coord.id"]
    assert json.loads(pin_file(shop).read_text())["format"] == 1


def test_a_lost_pin_does_not_lose_the_repository(shop: Path) -> None:
    """DESIGN rule 4: missing state never means "no locks": the store beside the pin names the repository."""
    before = pinned(find_location(str(shop), {}), store_id="aa11")
    pin_file(shop).unlink()
    assert pinned(find_location(str(shop), {}), store_id="aa11") == before
    assert check_id("repository", before.repository_id) == "aa11"


def test_a_moved_repository_keeps_its_store(shop: Path, tmp_path: Path) -> None:
    """The store beside the pin is found where the pin is, not where it was made."""
    pinned(find_location(str(shop), {}))
    shop.rename(tmp_path / "market")
    location = find_location(str(tmp_path / "market"), {})
    assert location.url == f"sqlite://{tmp_path}/market/.git/coord/store/coord.db"
    assert location.store_id == "id1"


def test_who_pins_second_gets_the_first_pin(shop: Path) -> None:
    """Two processes may use coord first at the same moment: both must work on one repository id."""
    elsewhere = {"COORD_URL": f"sqlite://{shop}.db"}
    one, other = (find_location(str(shop), elsewhere) for _ in range(2))
    assert one.repository_id != other.repository_id
    assert pinned(one).repository_id == pinned(other).repository_id == one.repository_id
    different = find_location(str(shop), elsewhere)._replace(url="sqlite:///elsewhere.db")
    with pytest.raises(Invalid, match="two stores"):
        pinned(different)


def test_racing_processes_agree_on_one_pin(shop: Path) -> None:
    """The same with eight real processes that all wait for one signal."""
    code = f"""
import sys
from coord.host.store_location import find_location, write_pin
place = find_location({str(shop)!r}, {{"COORD_URL": "sqlite:///elsewhere.db"}})
print("ready", flush=True)
sys.stdin.read()
print(write_pin(place._replace(store_id="id1")).repository_id)
"""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    ids = {child.communicate()[0] for child in children}
    assert ids == {find_location(str(shop), {}).repository_id + "\n"}


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({"COORD_URL": "file:///srv/shop"}, "file:///srv/shop"),
        ({"COORD_BACKEND": "redis", "COORD_REDIS_URL": "redis://host"}, "redis://host"),
        ({"COORD_BACKEND": "postgres", "COORD_POSTGRES_URL": SERVER}, SERVER),
        ({"COORD_BACKEND": "mysql", "COORD_MYSQL_URL": "mysql://me@host/db"}, "mysql://me@host/db"),
        ({"COORD_BACKEND": "nats", "COORD_NATS_URL": "nats://host/shop"}, "nats://host/shop"),
        ({"COORD_BACKEND": "sqlite"}, "sqlite://{shop}/.git/coord/store/coord.db"),
        ({"COORD_REDIS_URL": "redis://host"}, "sqlite://{shop}/.git/coord/store/coord.db"),
        ({"COORD_URL": ""}, "sqlite://{shop}/.git/coord/store/coord.db"),
    ],
)
def test_the_environment_proposes(environ: dict[str, str], url: str, shop: Path) -> None:
    """STO-14: COORD_URL, or COORD_BACKEND with COORD_<BACKEND>_URL, at creation."""
    assert find_location(str(shop), environ).url == url.format(shop=shop)


def test_a_backend_without_its_url_is_refused(shop: Path) -> None:
    """Nobody who asked for a server is given a local store."""
    with pytest.raises(Invalid, match="COORD_REDIS_URL is not set"):
        find_location(str(shop), {"COORD_BACKEND": "redis"})


def test_the_file_in_the_repository_proposes(shop: Path) -> None:
    """DESIGN §5: `coord.toml` proposes a store, and the environment may add as whom to come."""
    (shop / "coord.toml").write_text('[store]\nurl = "postgresql://host/db"\n')
    assert find_location(str(shop), {}).url == "postgresql://host/db"
    assert find_location(str(shop), {"COORD_URL": SERVER}).url == SERVER
    with pytest.raises(Invalid, match="two stores"):
        find_location(str(shop), {"COORD_URL": "postgresql://host/other"})


@pytest.mark.parametrize("text", ["[store", "store = 1", "[store]\nurl = 5", "\xff"])
def test_a_broken_file_is_refused(text: str, shop: Path) -> None:
    """A file that cannot be understood is not the same as no file."""
    (shop / "coord.toml").write_bytes(text.encode("latin-1"))
    assert "coord.toml" in find_location(str(shop), {}).refusal


def test_a_file_about_other_things_proposes_nothing(shop: Path) -> None:
    """Only `[store] url` is of interest here."""
    (shop / "coord.toml").write_text("[limits]\nlocks = 3\n")
    assert find_location(str(shop), {}).url.startswith("sqlite://")


@pytest.mark.parametrize("variable", ["COORD_URL", "toml"])
def test_a_later_disagreement_is_refused(variable: str, shop: Path) -> None:
    """DESIGN §5: refused everywhere, both named, and no password shown (2)."""
    pinned(find_location(str(shop), {"COORD_URL": SERVER}))
    other = "postgresql://me:hunter2@host/other"
    if variable == "toml":
        (shop / "coord.toml").write_text(f'[store]\nurl = "{other}"\n')
    with pytest.raises(Invalid, match="two stores") as caught:
        find_location(str(shop), {"COORD_URL": other} if variable == "COORD_URL" else {})
    assert "me:***@host/db" in str(caught.value)
    assert "me:***@host/other" in str(caught.value)
    assert not {"s3cret", "hunter2"} & set(str(caught.value).replace("@", ":").split(":"))


def test_two_spellings_of_one_store_agree(shop: Path, tmp_path: Path) -> None:
    """A password may change, and a path may be written in several ways."""
    location = pinned(find_location(str(shop), {"COORD_URL": SERVER}))
    newer = "postgres://me:changed@host/db"
    assert find_location(str(shop), {"COORD_URL": newer}) == location._replace(url=newer)
    assert find_location(str(shop), {"COORD_URL": "postgresql://host/db"}) == location
    made_repository(tmp_path / "other")
    (tmp_path / "short").symlink_to("other")
    location = pinned(find_location(str(tmp_path / "other"), {}))
    url = f"sqlite:///{tmp_path}/short/.git/coord/../coord/store/coord.db"
    assert find_location(str(tmp_path / "other"), {"COORD_URL": url}).store_id == location.store_id


def test_clones_share_the_repository_id_on_a_server(shop: Path, tmp_path: Path) -> None:
    """DESIGN §6: the normalised origin names the repository, so that clones share locks."""
    ids = []
    for name, origin in (
        ("a", "git@github.com:x/y.git"),
        ("b", "https://k:s3cret@GitHub.com/x/y"),
        ("c", "h:x/z"),
    ):
        made_repository(tmp_path / name)
        git(tmp_path / name, "remote", "add", "origin", origin)
        ids.append(pinned(find_location(str(tmp_path / name), {"COORD_URL": SERVER})).repository_id)
    assert ids[0] == ids[1] != ids[2]
    assert ids[0].startswith("github.com-x-y-")
    assert all(check_id("repository", each) for each in ids)


def test_clones_do_not_share_in_a_local_store(shop: Path, tmp_path: Path) -> None:
    """DESIGN §6: in a local store the id is random, as two clones on one machine are two trees of files."""
    git(tmp_path, "clone", "-q", str(shop), "clone")
    environ = {"COORD_URL": f"file://{tmp_path}/shared"}
    ids = {find_location(str(folder), environ).repository_id for folder in (shop, tmp_path / "clone")}
    assert len(ids) == 2


def test_a_local_origin_is_shared_on_this_machine_only(shop: Path, tmp_path: Path) -> None:
    """Clones of one folder share; the same path of another machine is another folder."""
    for name in ("a", "b"):
        git(tmp_path, "clone", "-q", str(shop), name)
    ids = {find_location(str(tmp_path / name), {"COORD_URL": SERVER}).repository_id for name in ("a", "b")}
    assert len(ids) == 1
    assert this_machine().machine in ids.pop()


def test_without_origin_each_repository_has_its_own_id(shop: Path) -> None:
    """Nothing is known to be shared, so nothing is; the pin remembers."""
    first, second = (find_location(str(shop), {"COORD_URL": SERVER}).repository_id for _ in range(2))
    assert first != second
    assert check_id("repository", first)


def test_a_store_of_another_machine_is_refused(shop: Path) -> None:
    """DESIGN §5: SQLite and files serve one machine; another is refused (78, hint: hub)."""
    pinned(find_location(str(shop), {}))
    changed(shop, machine="another")
    with pytest.raises(Unsupported, match="another machine") as caught:
        find_location(str(shop), {})
    assert "hub" in caught.value.hint


def test_a_server_serves_every_machine(shop: Path) -> None:
    """A pin of a server names no machine."""
    pinned(find_location(str(shop), {"COORD_URL": SERVER}))
    assert json.loads(pin_file(shop).read_text())["machine"] == ""


@pytest.mark.parametrize(
    "fields", [{"store_id": ""}, {"epoch": -1}, {"epoch": "3"}, {"url": ""}, {"url": None}, {"format": 0}]
)
def test_a_senseless_pin_is_corrupt(fields: dict[str, object], shop: Path) -> None:
    """Nothing is guessed from a damaged pin, and it is not taken for none."""
    pinned(find_location(str(shop), {}))
    changed(shop, **fields)
    with pytest.raises(Corrupt, match="damaged") as caught:
        find_location(str(shop), {})
    assert "coord doctor --fix" in caught.value.hint


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b"x" * 100_000])
def test_a_damaged_pin_is_corrupt(data: bytes, shop: Path) -> None:
    """Empty, torn, foreign, binary, huge: Corrupt."""
    pinned(find_location(str(shop), {}))
    pin_file(shop).write_bytes(data)
    with pytest.raises(Corrupt, match="damaged"):
        find_location(str(shop), {})


def test_a_damaged_pin_can_be_replaced(shop: Path) -> None:
    """`coord init --new-store` needs no word of the old pin: it starts from what would be proposed."""
    first = find_location(str(shop), {})
    pinned(first)
    pin_file(shop).write_text("{")
    proposed = propose_location(str(shop), {})
    assert proposed == first
    again = move_pin(proposed._replace(repository_id="r"), store_id="id2", epoch=1)
    assert find_location(str(shop), {}) == again


def test_a_newer_pin_is_unsupported(shop: Path) -> None:
    """An older coord does not guess what a newer one meant, whatever fields it has."""
    pinned(find_location(str(shop), {}))
    pin_file(shop).write_text('{"format": 2, "stores": []}')
    with pytest.raises(Unsupported, match="format 2"):
        find_location(str(shop), {})


def test_planted_symlinks_are_not_followed(shop: Path, tmp_path: Path) -> None:
    """engines.md §6: neither the folder nor the pin is followed elsewhere, and a fifo does not block."""
    location = find_location(str(shop), {})
    (tmp_path / "trap").mkdir()
    (shop / ".git/coord").symlink_to(tmp_path / "trap")
    for attempt in (lambda: pinned(location), lambda: find_location(str(shop), {})):
        with pytest.raises(Invalid):
            attempt()
    assert not os.listdir(tmp_path / "trap")
    (shop / ".git/coord").unlink()
    pinned(location)
    for plant in (lambda: pin_file(shop).symlink_to(tmp_path / "trap/x"), lambda: os.mkfifo(pin_file(shop))):
        pin_file(shop).unlink()
        plant()
        with pytest.raises((Invalid, Corrupt)):
            find_location(str(shop), {})


def test_a_folder_of_another_user_is_unavailable(shop: Path) -> None:
    """Doubt refuses: a pin that may not be read is not taken for none."""
    pinned(find_location(str(shop), {}))
    code = f"""
import os
from coord.core.errors import Unavailable
from coord.host import store_location as place
os.setuid(65534)
try:
    place.read_pin({str(shop / ".git/coord")!r})
except Unavailable:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


def test_a_pin_that_cannot_be_written_is_unavailable(shop: Path) -> None:
    """The error names the file, and nothing is left half done."""
    location = find_location(str(shop), {})._replace(folder=f"{shop}/{'x' * 300}")
    with pytest.raises(Unavailable, match="too long"):
        pinned(location)


def test_the_pin_is_moved_whole(shop: Path) -> None:
    """`coord migrate` moves the pin: what is not named stays, and the repository keeps its id."""
    location = pinned(find_location(str(shop), {}), epoch=1)
    moved = move_pin(location, url=SERVER, store_id="id2")
    assert find_location(str(shop), {}) == moved
    assert moved == location._replace(url=SERVER, store_id="id2")
    assert move_pin(moved, epoch=2) == find_location(str(shop), {}) == moved._replace(epoch=2)
    assert os.listdir(pin_file(shop).parent) == ["coord.id"]


def test_the_store_must_be_the_pinned_one(shop: Path) -> None:
    """DESIGN §5: another store is Corrupt (70); the pin's epoch is a floor, and a newer one is adopted."""
    location = pinned(find_location(str(shop), {}), epoch=2)
    assert check_pinned(location, "id1", 2) is False
    assert check_pinned(location, "id1", 3) is True
    for store_id, epoch in (("id2", 2), ("", 2), ("id1", 1)):
        with pytest.raises(Corrupt) as caught:
            check_pinned(location, store_id, epoch)
        assert "coord init --new-store" in caught.value.hint


@pytest.mark.parametrize("kind", ["sqlite", "file"])
def test_a_vanished_store_is_noticed_before_it_is_made_anew(kind: str, shop: Path, tmp_path: Path) -> None:
    """DESIGN §5: a pinned store that is missing is Corrupt, and looking for it does not make it."""
    url = f"{kind}://{tmp_path}/odd%20%25%3f/store"
    location = find_location(str(shop), {"COORD_URL": url})
    (tmp_path / "odd %?").mkdir()
    assert local_path(url) == f"{tmp_path}/odd %?/store"
    assert not store_exists(location)
    check_store_exists(location)
    database = open_store(url)
    location = pinned(location, database.store_id, database.epoch)
    database.close()
    assert store_exists(location)
    check_store_exists(location)
    (tmp_path / "odd %?").rename(tmp_path / "away")
    with pytest.raises(Corrupt, match="is gone"):
        check_store_exists(location)
    assert not (tmp_path / "odd %?").exists()


def test_an_emptied_file_is_no_store(shop: Path) -> None:
    """SQLite would take an empty file for a new database."""
    location = pinned(find_location(str(shop), {}))
    path = Path(local_path(location.url))
    path.parent.mkdir()
    path.touch()
    with pytest.raises(Corrupt):
        check_store_exists(location)


def test_a_server_is_asked_rather_than_looked_for(shop: Path) -> None:
    """Nothing can be told of a server from here."""
    assert store_exists(pinned(find_location(str(shop), {"COORD_URL": SERVER})))


def test_outside_a_repository_is_the_user_store(tmp_path: Path) -> None:
    """DESIGN §5: the user store holds what belongs to no repository; it is a local one, whatever is set."""
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "COORD_URL": SERVER}
    location = find_location(str(tmp_path), environ)
    assert location == user_location(environ)
    assert (location.url, location.repository) == (f"sqlite://{tmp_path}/state/coord/store/coord.db", None)
    assert pinned(location) == find_location(str(tmp_path), environ)
    assert read_pin(location.folder) is not None


@pytest.mark.parametrize("state", ["", "relative"])
def test_the_user_store_is_below_home(state: str, tmp_path: Path) -> None:
    """The standard's default, which also stands in for a relative path."""
    location = user_location({"HOME": str(tmp_path), "XDG_STATE_HOME": state})
    assert location.folder == f"{tmp_path}/.local/state/coord"


@pytest.mark.parametrize("name", ["with space", "with%41percent", "with?question#mark", "ünïcode"])
def test_odd_folder_names_reach_the_store(name: str, tmp_path: Path) -> None:
    """The url of the default store is read back by the store as the path it was made from."""
    made_repository(tmp_path / name)
    location = find_location(str(tmp_path / name), {})
    os.mkdir(location.folder)
    open_store(location.url).close()
    assert (tmp_path / name / ".git/coord/store/coord.db").exists()
    assert store_exists(location)


def test_a_folder_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """A url cannot hold it; the error says what to do."""
    shop = tmp_path / os.fsdecode(b"\xff")
    made_repository(shop)
    with pytest.raises(CoordError, match="UTF-8"):
        find_location(str(shop), {})


def test_a_removed_folder_is_a_lost_store(shop: Path) -> None:
    """Rule 4: whoever removes `.git/coord` frees no lock: the copy of the pin remembers the store."""
    environ = {"XDG_STATE_HOME": str(shop.parent / "state")}
    before = initialise(str(shop), environ)
    shutil.rmtree(shop / ".git/coord")
    for create in (True, False):
        with pytest.raises(Corrupt, match="is gone") as caught:
            connect(cwd=str(shop), environ=environ, session="bob", create=create)
        assert "coord init --new-store" in caught.value.hint
    assert not (shop / ".git/coord").exists()
    after = initialise(str(shop), environ, new_store=True)
    assert after.store_id != before.store_id
    assert after.epoch == before.epoch + 1, "no fence comes back"


def test_a_lost_pin_is_written_again(shop: Path) -> None:
    """The copy restores it, with its epoch, as soon as the right store was opened."""
    environ = {"XDG_STATE_HOME": str(shop.parent / "state")}
    before = initialise(str(shop), environ)
    text = pin_file(shop).read_text()
    pin_file(shop).unlink()
    assert initialise(str(shop), environ) == before
    assert pin_file(shop).read_text() == text


def test_the_copy_follows_the_pin(shop: Path) -> None:
    """Epoch, project and URL are the same in both, and a sandbox that forbids the copy stops nothing."""
    environ = {"XDG_STATE_HOME": str(shop.parent / "state")}
    location = remember_project(initialise(str(shop), environ), "market")
    copy = shop / ".git/coord.id"
    assert copy.read_text() == pin_file(shop).read_text()
    copy.unlink()
    copy.mkdir()
    assert move_pin(location, epoch=4).epoch == 4
    assert json.loads(pin_file(shop).read_text())["epoch"] == 4
