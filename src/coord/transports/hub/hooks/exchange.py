"""What a hook sends to the hub, and what it gets: both ends have the same version of coord."""

import os
from typing import NamedTuple

from coord.integrations.hooks.hook import TOOLS
from coord.integrations.hooks.hub_client import VERSION
from coord.transports.hub.problems import HttpError

FIXED_FIELDS = 7
"""The fields before the environment: version, programs, tool, repository, parent, makers, answer_by."""


class NotHere(HttpError):
    """The hub does not answer this hook, so the hook answers itself."""

    def __init__(self, why: str) -> None:
        super().__init__(409, "not_here", f"the hook has to answer itself: {why}")
        self.why = why


class HookCall(NamedTuple):
    """One hook: who runs it, in which environment, and its event as the tool wrote it."""

    programs: str
    """The folder of the Python that runs the hook."""
    tool: str
    installed_for: str
    parent: int
    makers: frozenset[int]
    answer_by: float
    """When the hook stops to wait for the hub, on the monotonic clock of this machine."""
    environ: dict[str, str]
    payload: bytes


def read_call(body: bytes) -> HookCall:
    """Return the hook in the body of a request."""
    size, _, rest = body.partition(b"\n")
    if not size.isdigit() or len(size) > len(str(len(body))) or int(size) > len(rest):
        raise NotHere("its request cannot be read")
    fields = rest[: int(size)].split(b"\0")
    if fields[0] != VERSION or len(fields) < FIXED_FIELDS:
        raise NotHere(f"this hub is coord {VERSION.decode()}")
    programs, tool, installed_for, parent, makers, answer_by = map(os.fsdecode, fields[1:FIXED_FIELDS])
    if tool not in TOOLS:
        raise NotHere("its tool is not known")
    pairs = (each.partition(b"=") for each in fields[FIXED_FIELDS:])
    environ = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    try:
        numbers = frozenset(int(each) for each in makers.split(",") if each)
        return HookCall(
            programs,
            tool,
            installed_for,
            int(parent),
            numbers,
            float(answer_by),
            environ,
            rest[int(size) :],
        )
    except ValueError as error:
        raise NotHere("its request cannot be read") from error


def write_answer(code: int, out: bytes, said: bytes, confirmation: str = "") -> bytes:
    """Return the body of an answer; with a confirmation the hook reports that it has printed it."""
    head = f"{VERSION.decode()} {code} {len(out)} {confirmation or '-'}\n"
    return head.encode() + out + said
