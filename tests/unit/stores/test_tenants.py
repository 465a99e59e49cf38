"""Tenants with stores of their own: found by configuration, noted for good, never taken for others."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coord
from coord.core.errors import Corrupt, Invalid, LimitReached, NotFound, Refused, Unavailable
from coord.stores import tenants as module
from coord.stores.open import migrator, open_store
from coord.stores.tenants import TENANT, check_tenants, store_id_key, tenant_slug, url_of
from tests.support.servers.kinds import SHARED_STORES
from tests.support.stores.steps import head, value, write

NAMES = st.text("abAB01._@+=~-", min_size=1, max_size=40).filter(TENANT.fullmatch)
TWO = {"acme": "sqlite:///acme.db", "*": "file:///srv/{tenant}"}


@settings(max_examples=50)
@given(NAMES, NAMES)
def test_no_two_tenants_have_one_name(one: str, other: str) -> None:
    """TEN-2: a tenant becomes part of names of schemas and files: always a plain word, and always its own."""
    assert re.fullmatch(r"[a-z0-9]{0,8}_[0-9a-f]{32}|[a-z][a-z0-9]{0,31}", tenant_slug(one))
    assert (tenant_slug(one) == tenant_slug(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"), [("acme", "Acme"), ("a.b", "a-b"), ("a" * 33, "a" * 34), ("1", "_1")]
)
def test_names_that_look_alike_stay_apart(one: str, other: str) -> None:
    """TEN-2: names that differ only in what a schema cannot hold are two, and so is what they became."""
    assert len({tenant_slug(one), tenant_slug(other), tenant_slug(tenant_slug(other))}) == 3


@pytest.mark.parametrize(
    "tenant", ["", "../b", "a/b", "a b", "a\0", "{tenant}", "*", "a?schema=b", "x" * 129]
)
def test_hostile_text_is_no_tenant(tenant: str) -> None:
    """TEN-2: what is not a tenant's name never becomes part of a url."""
    with pytest.raises(Invalid, match="not a tenant"):
        url_of(tenant, TWO)


@pytest.mark.parametrize(
    "urls", [{"a": ""}, {"a": 1}, {"a b": "memory:"}, {"*": "file:///srv"}, {"a": "file:///{tenant}"}]
)
def test_a_mapping_that_says_nothing_is_invalid(urls: dict[str, str]) -> None:
    """`{tenant}` is for `*`; every other url is one tenant's."""
    with pytest.raises(Invalid):
        check_tenants(urls)
    with pytest.raises(Invalid):
        open_store("memory:", tenants=urls)


def test_who_is_named_and_who_is_not() -> None:
    """A tenant's own url, else that of all; `local` stays where the repository's store is.

    TEN-1, TEN-2, TEN-3.
    """
    assert url_of("acme", TWO) == "sqlite:///acme.db"
    assert url_of("other", TWO) == "file:///srv/other"
    assert url_of("local", TWO) == ""
    assert url_of("local", {"local": "file:///x"}) == "file:///x"
    assert url_of("other", {"acme": "file:///x"}) == ""


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Closes what a test opens."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def urls(tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A shared store, and a file of its own for each tenant."""
    return f"sqlite://{tmp_path}/shared.db", {"*": f"sqlite://{tmp_path}/{{tenant}}.db"}


@pytest.mark.parametrize("kind", SHARED_STORES)
def test_each_tenant_in_a_store_of_its_own(
    kind: str, make_url: Callable[[str], str], opened: ExitStack
) -> None:
    """TEN-3: whatever kind the stores are, each tenant's records are in its own and in no other."""
    shared = make_url(kind)
    tenants = {"acme": make_url(kind), "zeta": make_url(kind)}
    for tenant in tenants:
        coord.install(shared, tenant=tenant, tenants=tenants)
        coord.install(shared, tenant=tenant, tenants=tenants)  # again without harm
    routed = opened.enter_context(closing(open_store(shared, tenants=tenants)))
    for tenant in (*tenants, "other", "local"):
        write(routed.log(tenant), {"k": tenant.encode()})
        assert routed.log(tenant) is routed.log(tenant)
    for url, inside in ((shared, {"other", "local"}), *((url, {name}) for name, url in tenants.items())):
        with closing(open_store(url)) as database:
            assert migrator(database).heads().keys() == inside
            assert {value(database.log(tenant), "k") for tenant in inside} == {t.encode() for t in inside}


def test_claims_go_where_the_tenant_lives(urls: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    """TEN-2, TEN-6: the facade finds a tenant's store by itself; the same task elsewhere is another one."""
    shared, tenants = urls
    for tenant in ("acme", "Zeta"):
        coord.install(shared, tenant=tenant, tenants=tenants)
    with coord.TaskCoordinator.open(shared, tenants=tenants) as tasks:
        for tenant in ("acme", "Zeta", "local"):
            claim = tasks.claim_task(tenant, "shop", "A-001-login", "ada", "s1").claim
            assert claim is not None
            assert claim.generation == 1
    assert {path.name for path in tmp_path.glob("*.db")} == {
        "shared.db",
        "acme.db",
        f"{tenant_slug('Zeta')}.db",
    }


def test_a_store_that_is_not_installed_is_not_found(
    urls: tuple[str, dict[str, str]], opened: ExitStack
) -> None:
    """TEN-2: no tenant gets a store by being named: that is for who administers, and the error says how."""
    routed = opened.enter_context(closing(open_store(urls[0], tenants=urls[1])))
    with pytest.raises(NotFound, match="coord install --tenant acme"):
        routed.log("acme")
    with pytest.raises(Invalid, match="no url for tenant local"):
        coord.install(urls[0], tenant="local", tenants=urls[1])


def test_nobody_looks_in_the_shared_store(urls: tuple[str, dict[str, str]], opened: ExitStack) -> None:
    """TEN-3: who lacks the configuration is refused: two stores would grant the same claim twice."""
    coord.install(urls[0], tenant="acme", tenants=urls[1])
    plain = opened.enter_context(closing(open_store(urls[0])))
    partly = opened.enter_context(closing(open_store(urls[0], tenants={"zeta": "memory:"})))
    for database in (plain, partly):
        with pytest.raises(Unavailable, match="its own store"):
            database.log("acme")
        assert head(database.log("local")) == 0


def test_who_opened_the_shared_store_before_is_refused_too(
    urls: tuple[str, dict[str, str]], opened: ExitStack
) -> None:
    """TEN-2: a hub that was running when a tenant got a store of its own does not begin one in the shared."""
    shared, own = urls
    coord.install(shared)
    hubs = [opened.enter_context(closing(open_store(shared, tenants=each))) for each in ({}, own)]
    for hub in hubs:
        write(hub.log("local"), {"k": b"1"})
    coord.install(shared, tenant="acme", tenants=own)
    with pytest.raises(Unavailable, match="its own store"):
        hubs[0].log("acme")
    assert head(hubs[1].log("acme")) == 0, "and one that knows where it lives goes there"


def test_another_store_is_refused(
    urls: tuple[str, dict[str, str]], tmp_path: Path, opened: ExitStack
) -> None:
    """TEN-3: a store that is not the noted one, perhaps of another tenant, is neither used nor installed."""
    shared, tenants = urls
    coord.install(shared, tenant="acme", tenants=tenants)
    wrong = {"acme": f"sqlite://{tmp_path}/another.db"}
    routed = opened.enter_context(closing(open_store(shared, tenants=wrong)))
    with pytest.raises(Corrupt, match="is not the store of tenant acme"):
        routed.log("acme")
    with pytest.raises(Refused, match="lives in another store"):
        coord.install(shared, tenant="acme", tenants=wrong)
    with pytest.raises(Invalid, match="is the shared store"):
        coord.install(shared, tenant="zeta", tenants={"zeta": shared})


def test_who_has_records_stays(urls: tuple[str, dict[str, str]]) -> None:
    """TEN-1: a tenant that was used in the shared store is not cut off from what it has there."""
    with closing(open_store(urls[0])) as database:
        write(database.log("acme"), {"k": b"1"})
    with pytest.raises(Refused, match="has records in the shared store"):
        coord.install(urls[0], tenant="acme", tenants=urls[1])
    with closing(open_store(urls[0])) as database:
        assert value(database.log("acme"), "k") == b"1"


def test_notes_have_a_limit(urls: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The shared store is read with all its notes at each opening: their number is bounded."""
    monkeypatch.setattr(module, "OWN_STORES_MAX", 1)
    coord.install(urls[0], tenant="acme", tenants=urls[1])
    with pytest.raises(LimitReached):
        coord.install(urls[0], tenant="zeta", tenants=urls[1])


def test_as_many_notes_as_allowed_fit_into_a_files_store(tmp_path: Path) -> None:
    """The longest names of all tenants that may be noted are read back whole."""
    url = f"file://{tmp_path}/shared"
    notes = {store_id_key(f"{number:0128d}"): "f" * 32 for number in range(module.OWN_STORES_MAX)}
    with closing(open_store(url)) as database:
        migrator(database).set_metadata(**notes)
    with closing(open_store(url)) as database:
        assert notes.items() <= database.metadata.items()


def test_memory_keeps_no_note(urls: tuple[str, dict[str, str]]) -> None:
    """A store that ends with its process cannot say for good where a tenant lives."""
    with pytest.raises(Invalid, match="memory"):
        coord.install("memory:", tenant="acme", tenants=urls[1])
