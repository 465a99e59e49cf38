"""Commands, replies and errors survive the way to a hub and back."""

import importlib
import pkgutil

import msgspec
import pytest

import coord
import coord.core
from coord.core import errors
from coord.core.commands import Command
from coord.core.errors import CoordError, Denied, Invalid, Trimmed
from coord.core.identity import Caller, Process
from coord.core.locks.commands import AcquireLocks
from coord.sdk.remote import wire


def test_the_version_is_that_of_the_package() -> None:
    """Clients and hubs compare it."""
    assert coord.__version__ == wire.VERSION


def test_every_command_can_be_sent() -> None:
    """A command in a module that the wire does not know would work in direct mode only."""
    for module in pkgutil.walk_packages(coord.core.__path__, "coord.core."):
        importlib.import_module(module.name)

    def below(kind: type[Command]) -> set[type[Command]]:
        return {kind}.union(*(below(each) for each in kind.__subclasses__()))

    defined = {
        kind for kind in below(Command) if hasattr(kind, "rule") and kind.__module__.startswith("coord.")
    }
    assert {kind.__name__ for kind in defined} == {kind.__name__ for kind in wire.command_types()}
    assert len({kind.__name__ for kind in defined}) == len(defined), "the name is the tag"


def test_a_command_is_the_same_afterwards() -> None:
    caller = Caller("ada", process=Process(7, 8, "m", "b", "n"), process_ancestors=(Process(1, 2),))
    command = AcquireLocks(caller, "shop", ("file:a.py", "file:ä/*"), ttl_ms=5, reason="x")
    assert wire.decode_commands([wire.raw(command)]) == [command]


@pytest.mark.parametrize("data", [b"", b"\xc0", b"\x81", b"\x81\xa4type\xa4Nope", b"\xff" * 50])
def test_what_is_no_command_is_invalid(data: bytes) -> None:
    with pytest.raises(Invalid, match="does not know this command"):
        wire.decode_commands([msgspec.Raw(data)])


def all_errors(kind: type[CoordError]) -> list[type[CoordError]]:
    return [kind, *(each for below in kind.__subclasses__() for each in all_errors(below))]


@pytest.mark.parametrize(
    "kind",
    [each for each in all_errors(CoordError) if each.__module__ == errors.__name__],
    ids=lambda k: k.__name__,
)
def test_an_error_is_raised_as_itself(kind: type[CoordError]) -> None:
    """`except Denied` works through a hub, with message and hint."""
    error = kind.__new__(kind)
    CoordError.__init__(error, "it is locked", hint="wait")
    data = msgspec.msgpack.decode(wire.encode(wire.error_data(error)), type=wire.ErrorData)
    again = wire.error_of(data)
    assert (type(again), again.message, again.hint, again.code) == (kind, "it is locked", "wait", kind.code)


def test_an_error_keeps_its_fields() -> None:
    again = wire.error_of(
        msgspec.msgpack.decode(wire.encode(wire.error_data(Trimmed(41))), type=wire.ErrorData)
    )
    assert isinstance(again, Trimmed)
    assert again.first == 41


def test_an_unknown_error_is_an_error_of_coord() -> None:
    """A newer hub may have classes that this client does not know."""
    found = wire.error_of(wire.ErrorData("Brandnew", "brandnew", "no"))
    assert (type(found), found.message) == (CoordError, "no")
    assert not isinstance(found, Denied)
