"""The typed arguments that the parser hands to a handler.

A handler declares a subclass of `Args` with a field for each flag and argument of its spec, and takes it as
second parameter: `def lock(client: Client, args: LockArgs) -> Answer`.
"""

from collections.abc import Callable
from typing import Any

import msgspec


class Args(msgspec.Struct, frozen=True):
    """The arguments of a command that has neither flags nor arguments; the base of all others."""


class Options(Args, frozen=True):
    """The global flags, which every command takes."""

    output: str
    json: bool
    session: str
    agent: str
    role: str
    project: str
    tenant: str
    parent: str
    pid: int | None
    url: str


def args_type(handler: Callable[..., Any]) -> type[Args]:
    """Return the type of a handler's second parameter."""
    kind: type[Args] = list(handler.__annotations__.values())[1]
    return kind
