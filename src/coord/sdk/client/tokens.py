"""Create, rotate, revoke and list tokens; the secret of a token is made here and stored nowhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from coord.core.errors import Invalid
from coord.core.ids import check_id, short_repr
from coord.sdk.client.connection import Connection

if TYPE_CHECKING:
    from coord.core.tokens.commands import TokenInfo
    from coord.core.tokens.schema import Role


class NewToken:
    """A token's text, which nobody can show again, and what others see of it."""

    __slots__ = ("info", "text")

    def __init__(self, text: str, info: TokenInfo) -> None:
        self.text = text
        self.info = info

    def __repr__(self) -> str:
        """Return it without the text, because it may end up in a log."""
        return f"NewToken({self.info.id})"


def make_token(store_id: str, tenant: str) -> str:
    """Return the text of a token with a new secret; it counts once `CreateToken` has stored its hash."""
    from coord.core.tokens.text import SECRET_BYTES, format_token

    return format_token(store_id, tenant, os.urandom(SECRET_BYTES))


class TokenCalls(Connection):
    """The token methods of a client."""

    def create_token(
        self,
        role: str,
        *,
        project: str = "",
        session: str = "",
        expires_s: float | None = None,
        label: str = "",
    ) -> NewToken:
        """Create a token of this tenant; without limits it is for all projects and sessions, for ever."""
        from coord.core.tokens.commands import CreateToken
        from coord.core.tokens.text import parse_token

        text = make_token(self.database.store_id, self.tenant)
        command = CreateToken(
            caller=self.caller,
            hash=parse_token(text).hash,
            role=_role(role),
            project=check_id("project", project) if project else "",
            session=check_id("session id", session) if session else "",
            ttl_ms=_milliseconds("lifetime", expires_s),
            label=_label(label),
        )
        return NewToken(text, self.call(command))

    def rotate_token(
        self, token_id: str, *, grace_s: float | None = None, expires_s: float | None = None
    ) -> NewToken:
        """Replace a token by one with a new secret; the old one ends now, or after `grace_s` seconds."""
        from coord.core.tokens.commands import RotateToken
        from coord.core.tokens.text import parse_token

        text = make_token(self.database.store_id, self.tenant)
        command = RotateToken(
            caller=self.caller,
            id=_token_id(token_id),
            hash=parse_token(text).hash,
            grace_ms=_milliseconds("grace period", grace_s),
            ttl_ms=_milliseconds("lifetime", expires_s),
        )
        return NewToken(text, self.call(command))

    def revoke_token(self, token_id: str) -> TokenInfo:
        """End a token now; return it as it was."""
        from coord.core.tokens.commands import RevokeToken

        return self.call(RevokeToken(caller=self.caller, id=_token_id(token_id)))

    def tokens(self) -> list[TokenInfo]:
        """Return the tokens of this tenant that count, oldest first; nobody can show their texts."""
        from coord.core.tokens.commands import ListTokens

        return self.call(ListTokens(self.caller))

    def find_token(self, text: str) -> TokenInfo | None:
        """Return the token with this text; None if this tenant of this store knows none that counts."""
        from coord.core.tokens.commands import FindToken
        from coord.core.tokens.text import parse_token

        return self.call(FindToken(parse_token(text).hash))


def _role(role: str) -> Role:
    from coord.core.tokens.schema import Role

    if isinstance(role, str) and role in list(Role):
        return Role(role)
    raise Invalid(f"{short_repr(role)} is not a role", hint=f"use one of {', '.join(Role)}")


def _token_id(text: str) -> str:
    """Return the id of a token; somebody who passes the text of a token has to read that it is no id."""
    from coord.core.tokens.text import PREFIX

    if isinstance(text, str) and text.startswith(PREFIX):
        raise Invalid("this is a token, not its id", hint="coord token list shows the ids: t-…")
    return check_id("token id", text)


def _label(text: str) -> str:
    from coord.sdk.validation import arguments

    return arguments.one_line("label", text, arguments.SUBJECT_CHARS_MAX)


def _milliseconds(what: str, seconds: float | None) -> int:
    """Return a duration in milliseconds; 0 for None."""
    if seconds is None:
        return 0
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 1 <= seconds <= DURATION_S_MAX:
        raise Invalid(f"{short_repr(seconds)} is not a {what} in seconds", hint="use 1 second to 366 days")
    return round(seconds * 1000)


DURATION_S_MAX = 366 * 24 * 3600
