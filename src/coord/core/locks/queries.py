"""What became of a lock that a commit was made under: whether its fence still counts.

A fence counts while its lock stands, and after its holder gave it back: what was done under it was finished.
It is *superseded* when the lock was taken from its holder (by time, by death, by force) and somebody else was
granted something that overlaps since: then the one who is late must not win.
"""

from collections.abc import Iterator

from coord.core import keys
from coord.core.errors import Invalid
from coord.core.git_log_commands import CheckFences, FenceShown
from coord.core.ids import shown
from coord.core.locks.locks import (
    Ending,
    Grant,
    Guard,
    Hold,
    Mode,
    ended_by_death,
    ended_by_time,
    holds_meeting,
    read_hold,
    resource_of,
)
from coord.core.locks.resources import Resource, parse_resource
from coord.core.transaction import View

FENCES_MAX = 256
GRANTS_MAX = 10_000
"""How many later grants are looked through; beyond that a fence counts as superseded by nobody knows whom."""
IN_ORDER = (Ending.RELEASED, Ending.SESSION_ENDED)
"""How a holder itself ends a lock."""


def check_fences(view: View, command: CheckFences, now: int) -> list[FenceShown]:
    """Say of each fence how its lock stands or ended, and who was granted something there since."""
    if len(command.fences) > FENCES_MAX:
        raise Invalid(f"{len(command.fences)} fences in one request", hint=f"at most {FENCES_MAX}")
    return [_check(view, fence, text, part, command.repository, now) for fence, text, part in command.fences]


def _check(view: View, fence: int, text: str, part: str, repository: str, now: int) -> FenceShown:
    resources = parse_resource(text, repository)
    meant = parse_resource(part, repository, alone=True) if part else resources
    if len(resources) != 1 or len(meant) != 1 or not 0 < fence < 10**16:
        raise Invalid(f"{fence} is no fence of {shown(text)}", hint="a fence belongs to one resource")
    (resource,) = resources
    view.get(resource.guard, Guard)  # that nothing was granted since rests on absence
    found = _live(view, resource, fence, now) or _ended(view, resource, fence)
    if found is None:
        return FenceShown(text, fence, "", "unknown")
    hold, ending = found
    if ending is None or ending in IN_ORDER:
        return FenceShown(text, fence, hold.owner, ending.value if ending else "held")
    for later in _later(view, meant[0], fence):
        if later.owner != hold.owner and later.mode is not Mode.READ:
            return FenceShown(text, fence, hold.owner, ending.value, True, later.owner, later.fence)
    return FenceShown(text, fence, hold.owner, ending.value)


def _live(view: View, resource: Resource, fence: int, now: int) -> tuple[Hold, Ending | None] | None:
    """Return the hold of this fence, and how it ended if that is not written down yet."""
    for standing in holds_meeting(view, resource):
        hold = read_hold(view, standing.key)
        if hold is not None and hold.fence == fence and standing.resource.place == resource.place:
            death = ended_by_death(view, hold, now)
            return hold, ended_by_time(hold, now) or (death[0] if death else None)
    return None


def _ended(view: View, resource: Resource, fence: int) -> tuple[Hold, Ending] | None:
    """Return the hold of this fence that ended, as its record tells."""
    for page in view.pages(keys.grant_prefix(resource.space, fence)):
        for found in page:
            grant = view.get(found.key, Grant)
            if grant is not None and resource_of(grant.hold).place == resource.place:
                return grant.hold, grant.ending
    return None


def _later(view: View, resource: Resource, fence: int) -> Iterator[Hold]:
    """Go through what was granted after a fence and meets a resource; what stands comes first."""
    for standing in holds_meeting(view, resource):
        hold = read_hold(view, standing.key)
        if hold is not None and hold.fence > fence:
            yield hold
    prefix, seen = keys.grant_prefix(resource.space), 0
    for page in view.pages(prefix, after=("", f"{keys.grant_prefix(resource.space, fence)}~")):
        view.want(*(found.key for found in page))
        for found in page:
            grant = view.get(found.key, Grant)
            if grant is not None and resource.meets(resource_of(grant.hold)):
                yield grant.hold
        seen += len(page)
        if seen >= GRANTS_MAX:
            yield Hold(owner="somebody", fence=fence + 1)
            return
