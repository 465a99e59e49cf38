"""Shipped names: the defaults, and how a repository replaces them."""

from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import Invalid
from coord.core.routing.router import rules_from
from coord.host.presets import (
    AGENTS_BY_TYPE,
    HOST_LOCKS,
    HOST_NAMES_MAX,
    LOCKS,
    agents_by_type,
    host_locks,
    lock_presets,
)
from coord.host.store_location import find_location
from tests.support.consent import write_configuration
from tests.support.git_folders import made_repository


def test_the_defaults_are_those_of_the_founding_documents() -> None:
    """RTE-5, RTE-11, LCK-63, LCK-64, LCK-65: without a `coord.toml` the example team and locks count."""
    assert agents_by_type({}) == AGENTS_BY_TYPE
    assert [preset.name for preset in lock_presets({})] == ["cargo-build", "claude-config", "engram-serve"]
    assert host_locks({}) == HOST_LOCKS == ("name:claude-config", "name:engram-serve")


def test_a_repository_drops_the_shipped_names() -> None:
    dropped: dict[str, Any] = {"presets": {"routing": False, "locks": False}}
    assert (agents_by_type(dropped), lock_presets(dropped), host_locks(dropped)) == ({}, (), ())
    only_locks: dict[str, Any] = {"presets": {"locks": False}}
    assert (agents_by_type(only_locks), lock_presets(only_locks)) == (AGENTS_BY_TYPE, ())


def test_a_repository_brings_its_own_agents() -> None:
    """RTE-26: with the shipped rows dropped, only the agents of `[routing.types]` have a place."""
    own = {"presets": {"routing": False}, "routing": {"types": {"doc": {"agents": ["mallory"]}}}}
    matrix = rules_from(own, "coord.toml", agents_by_type(own)).matrix
    assert matrix["doc"].agents == ("mallory",)
    assert matrix["code_gen"].agents == ()
    assert matrix["doc"].words, "types and words stay"


def test_a_repository_names_the_locks_of_the_machine() -> None:
    """LCK-64: its list replaces the shipped one; case does not matter, as in any lock name."""
    assert host_locks({"locks": {"host": ["Deploy-Key", "name:vpn"]}}) == ("name:deploy-key", "name:vpn")
    assert host_locks({"locks": {"host": []}}) == ()
    assert lock_presets({"locks": {"host": []}}) == LOCKS


@pytest.mark.parametrize(
    "configuration",
    [
        {"presets": True},
        {"presets": {"routing": "none"}},
        {"presets": {"lock": False}},
        {"locks": ["vpn"]},
        {"locks": {"hosts": []}},
        {"locks": {"host": "vpn"}},
        {"locks": {"host": [1]}},
        {"locks": {"host": [" "]}},
        {"locks": {"host": ["x"] * (HOST_NAMES_MAX + 1)}},
    ],
)
def test_a_table_that_is_not_understood_is_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"coord\.toml") as caught:
        host_locks(configuration)
    assert caught.value.hint


def test_the_location_of_a_store_knows_the_locks_of_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    made_repository(folder)
    environ = {"HOME": str(tmp_path)}
    assert find_location(str(folder), environ).host_locks == HOST_LOCKS
    write_configuration(folder, '[locks]\nhost = ["vpn"]\n', environ)
    assert find_location(str(folder), environ).host_locks == ("name:vpn",)
