"""A repository's `coord.toml` only proposes: nothing of it counts before a person has confirmed it."""

import os
import stat
from pathlib import Path

import pytest

from coord.core.errors import Invalid
from coord.host.consent import confirm, read_consented, revoke
from coord.host.repository import find_repository
from coord.host.store_location import StoreLocation, find_location
from coord.sdk.client.client import connect
from coord.sdk.client.open import initialise, open_location
from tests.support.consent import write_configuration
from tests.support.git_folders import added_worktree, made_repository

HOSTILE = '[store]\nurl = "postgresql://evil.invalid/db"\n'


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository in which coord was never used."""
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "PGPASSWORD": "s3cret"}


def location_of(shop: Path, environ: dict[str, str]) -> StoreLocation:
    return find_location(str(shop), environ)


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        '[store]\nurl = "sqlite:///{tmp}/made/x.db"\n',
        '[store]\nurl = "file:///{tmp}/made/x"\n',
        "[store]\nurl = 5\n",
        'store = "x"\n',
        '[tenants]\nacme = "redis://evil.invalid/0"\n',
        "[store",
        "\ud800",
    ],
)
def test_no_store_is_opened_that_only_a_clone_names(
    text: str, shop: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    """No network, no new file and no password before a person has confirmed the file."""
    content = text.replace("{tmp}", str(tmp_path)).encode(errors="surrogatepass")
    (shop / "coord.toml").write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    for attempt in (
        lambda: open_location(location_of(shop, environ), 0),
        lambda: initialise(str(shop), environ),
        lambda: initialise(str(shop), environ, new_store=True),
        lambda: connect(cwd=str(shop), environ=environ, session="ann"),
        lambda: connect(cwd=str(shop), environ=environ, session="ann", create=False),
    ):
        with pytest.raises(Invalid, match=r"coord\.toml") as caught:
            attempt()
        assert "coord trust" in caught.value.hint
    assert sorted(tmp_path.rglob("*")) == before


def test_a_confirmed_file_counts_until_it_changes(shop: Path, environ: dict[str, str]) -> None:
    """The consent is to one content in one repository, from every worktree, and can be withdrawn."""
    file = write_configuration(shop, '[locks]\nhost = ["vpn"]\n', environ)
    worktree = shop.parent / "feature"
    added_worktree(shop, worktree)
    (worktree / "coord.toml").write_text(file.read_text())
    for folder in (shop, worktree):
        assert location_of(folder, environ).host_locks == ("name:vpn",)
        assert location_of(folder, environ).notice == ""
    file.write_text(file.read_text() + "# changed\n")
    changed = location_of(shop, environ)
    assert "name:vpn" not in changed.host_locks
    assert "not confirmed" in changed.notice
    assert revoke(read_consented(find_repository(str(worktree)), environ))
    assert "not confirmed" in location_of(worktree, environ).notice


def test_another_repository_needs_its_own_consent(shop: Path, environ: dict[str, str]) -> None:
    """The same content in a second clone was not confirmed there."""
    write_configuration(shop, HOSTILE, environ)
    made_repository(shop.parent / "clone")
    (shop.parent / "clone" / "coord.toml").write_text(HOSTILE)
    assert not location_of(shop, environ).refusal
    assert location_of(shop.parent / "clone", environ).refusal


def test_the_environment_may_name_the_same_store(shop: Path, environ: dict[str, str], tmp_path: Path) -> None:
    """A person who names the store has agreed to it; another one is refused, as ever."""
    url = f"sqlite://{tmp_path}/own.db"
    (shop / "coord.toml").write_text(f'[store]\nurl = "{url}"\n')
    assert location_of(shop, {**environ, "COORD_URL": url}).refusal == ""
    with pytest.raises(Invalid, match="two stores"):
        location_of(shop, {**environ, "COORD_URL": f"sqlite://{tmp_path}/other.db"})


def test_a_pinned_store_stays_in_use_beside_a_broken_file(shop: Path, environ: dict[str, str]) -> None:
    """A typo locks nobody out: the pin names the store, and the notice names the file."""
    initialise(str(shop), environ)
    (shop / "coord.toml").write_text("[hooks\n")
    with connect(cwd=str(shop), environ=environ, session="ann") as ann:
        assert ann.acquire("name:x").ok
        assert "coord.toml cannot be read" in ann.location.notice
        assert ann.configuration.tables == {}


def test_a_pinned_store_opens_no_tenants_of_an_unconfirmed_file(shop: Path, environ: dict[str, str]) -> None:
    """The stores of tenants come from the file alone, so they wait for the consent."""
    initialise(str(shop), environ)
    (shop / "coord.toml").write_text('[tenants]\nacme = "redis://evil.invalid/0"\n')
    with pytest.raises(Invalid, match="tenants"):
        connect(cwd=str(shop), environ=environ, session="ann")


def test_the_consent_is_private_and_follows_no_link(
    shop: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    """The record is the user's own, whatever the umask; nothing is written through a link."""
    old = os.umask(0)
    try:
        write_configuration(shop, "[presets]\nlocks = false\n", environ)
    finally:
        os.umask(old)
    (record,) = (tmp_path / "state/coord/trusted").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
    (shop / "coord.toml").write_text("# other\n")
    found = read_consented(find_repository(str(shop)), environ)
    os.symlink(tmp_path / "victim", found.consent)
    with pytest.raises(Exception, match="cannot be written"):
        confirm(found)
    assert not (tmp_path / "victim").exists()
