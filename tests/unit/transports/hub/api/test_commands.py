"""The table of commands: every command has a route, or a reason why not."""

from coord.sdk.remote.wire import command_types
from coord.transports.hub.api.endpoints import commands
from coord.transports.hub.api.routes import every_endpoint


def test_every_command_has_a_route_or_a_reason() -> None:
    names = {kind.__name__ for kind in command_types()}
    public = {row.command for row in commands.PUBLIC}
    known = [public, set(commands.BY_HAND), set(commands.INTERNAL)]
    assert set.union(*known) == names
    assert sum(map(len, known)) == len(names)
    assert all(commands.INTERNAL.values())


def test_routes_by_hand_exist() -> None:
    found = {f"{endpoint.method} {endpoint.path}" for endpoint in every_endpoint()}
    assert set(commands.BY_HAND.values()) <= found


def test_no_request_states_who_asks() -> None:
    """Identity comes from the token: only session and agent are named, and the token limits them."""
    for endpoint in every_endpoint():
        for kind in (endpoint.body, endpoint.query):
            fields = set(getattr(kind, "__struct_fields__", ()))
            assert not fields & {"caller", "tenant", "user", "token", "person", "process", "hash", "by"}


def test_the_names_of_endpoints_are_unique() -> None:
    names = [endpoint.name for endpoint in every_endpoint()]
    assert sorted(set(names)) == sorted(names)
