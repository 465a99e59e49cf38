"""Records and events of tokens: the format on disk. None of them holds the text of a token."""

from enum import StrEnum

from coord.core.events import Event
from coord.core.records import Stored


class Role(StrEnum):
    """What a token allows: to report usage, to look, to work, or to do everything; `<` compares by that.

    A token that may only report reads nothing and runs no command, so an agent may know it.
    """

    REPORT = "report"
    VIEW = "view"
    OPERATE = "operate"
    ADMIN = "admin"

    def allows(self, needed: "Role") -> bool:
        """Whether this role may do what needs another one."""
        return _RANKS[self] >= _RANKS[needed]

    # As texts, "admin" would come first and "view" last: the reverse of what everybody would expect.
    def __ge__(self, other: str) -> bool:
        return _RANKS[self] >= _RANKS[Role(other)]

    def __gt__(self, other: str) -> bool:
        return _RANKS[self] > _RANKS[Role(other)]

    def __le__(self, other: str) -> bool:
        return _RANKS[self] <= _RANKS[Role(other)]

    def __lt__(self, other: str) -> bool:
        return _RANKS[self] < _RANKS[Role(other)]


_RANKS = {role: rank for rank, role in enumerate(Role)}


class Token(Stored, frozen=True, tag=1):
    """A token that was created and not revoked.

    `hash` is sha256 of its whole text. `project` and `session` limit it (empty: no limit). `expires_ms` is 0
    if it never expires. `replaced_by` is the token that a rotation put in its place. `used_ms` is about when
    it was last used.
    """

    id: str = ""
    hash: str = ""
    role: Role = Role.VIEW
    project: str = ""
    session: str = ""
    label: str = ""
    created_ms: int = 0
    created_by: str = ""
    user: str = ""
    expires_ms: int = 0
    used_ms: int = 0
    replaced_by: str = ""


class TokenCreated(Event, frozen=True, tag="token.created"):
    """A token was created; `session` and `by_token` did it, `for_session` is whom it is limited to."""

    id: str
    session: str
    role: Role
    project: str = ""
    for_session: str = ""
    label: str = ""
    expires_ms: int = 0
    user: str = ""
    by_token: str = ""


class TokenRevoked(Event, frozen=True, tag="token.revoked"):
    """A token was revoked."""

    id: str
    session: str
    user: str = ""
    by_token: str = ""


class TokenRotated(Event, frozen=True, tag="token.rotated"):
    """A token was replaced by one with a new secret; the old one counts until `ends_ms`."""

    id: str
    session: str
    new_id: str
    ends_ms: int
    expires_ms: int = 0
    user: str = ""
    by_token: str = ""


class TokenExpired(Event, frozen=True, tag="token.expired"):
    """A token expired."""

    id: str
    expires_ms: int
