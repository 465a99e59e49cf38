"""Commands about tokens, and their replies: the API."""

from coord.core.commands import Command, Reply, SessionCommand
from coord.core.tokens.schema import Role


class TokenInfo(Reply, frozen=True):
    """A token as others see it; `project` and `session` are empty if it is not limited to one.

    `expires_ms` is 0 if it never expires. `used_ms` is about when it was last used (0: never).
    """

    id: str
    role: Role
    project: str = ""
    session: str = ""
    label: str = ""
    created_ms: int = 0
    created_by: str = ""
    user: str = ""
    expires_ms: int = 0
    used_ms: int = 0
    replaced_by: str = ""

    def is_expired(self, now: int) -> bool:
        """Whether the token no longer counts; ask again if you keep a token for longer than one request."""
        return 0 < self.expires_ms <= now

    def covers_project(self, project: str) -> bool:
        """Whether the token may be used in a project; only one without a limit covers all (`""`)."""
        return self.project in ("", project)

    def covers_session(self, session: str) -> bool:
        """Whether the token may act for a session: any, or the one it names (also resumed: `<id>~2`)."""
        return self.session in ("", session, session.partition("~")[0])


class CreateToken(SessionCommand, frozen=True, kw_only=True):
    """Create a token; `hash` is sha256 of its text, and `ttl_ms` how long it counts (0: for ever)."""

    rule = "coord.core.tokens.tokens:create_token"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = TokenInfo
    hash: str
    role: Role
    project: str = ""
    session: str = ""
    ttl_ms: int = 0
    label: str = ""


class RotateToken(SessionCommand, frozen=True, kw_only=True):
    """Put a token with a new secret in the place of another; the old one counts for `grace_ms` more.

    The new one has the role, the limits, the label and the deadline of the old one; `ttl_ms` changes the
    deadline (0: keep it).
    """

    rule = "coord.core.tokens.tokens:rotate_token"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = TokenInfo
    id: str
    hash: str
    grace_ms: int = 0
    ttl_ms: int = 0


class RevokeToken(SessionCommand, frozen=True, kw_only=True):
    """End a token now; the reply is the token as it was."""

    rule = "coord.core.tokens.tokens:revoke_token"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = TokenInfo
    id: str


class ListTokens(SessionCommand, frozen=True):
    """Return the tokens that count, oldest first; a token with limits sees only those inside its limits."""

    rule = "coord.core.tokens.tokens:list_tokens"
    reply = list[TokenInfo]
    reads_only = True


class FindToken(Command, frozen=True):
    """Return the token with this hash; None if there is none, or if it no longer counts."""

    rule = "coord.core.tokens.tokens:find_token"
    reply = TokenInfo | None
    reads_only = True
    hash: str


class MarkTokenUsed(Command, frozen=True):
    """Remember that a token was used; return whether that was worth a commit (once in an hour)."""

    rule = "coord.core.tokens.tokens:mark_token_used"
    reply = bool
    id: str
