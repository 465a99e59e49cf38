"""Create and use tokens on a memory store, with a clock that the test moves."""

import hashlib
from typing import Any

import msgspec

from coord.core.identity import Caller
from coord.core.tokens.commands import CreateToken, FindToken, ListTokens, RevokeToken, RotateToken, TokenInfo
from coord.core.tokens.schema import Role
from tests.support.lock_harness import LockHarness

ADMIN = Caller("ida@host:7-1", user="ida", person=True)
"""A person in a terminal."""


def hash_of(name: str) -> str:
    """Return the hash of a token that the test calls by a short name instead of its text."""
    return hashlib.sha256(name.encode()).hexdigest()


class TokenHarness(LockHarness):
    """Tokens by short names."""

    def create(
        self,
        name: str,
        role: str = "operate",
        *,
        by: Caller = ADMIN,
        ttl: int = 0,
        **limits: Any,
    ) -> TokenInfo:
        command = CreateToken(caller=by, hash=hash_of(name), role=Role(role), ttl_ms=ttl, **limits)
        found: TokenInfo = self.engine.call(command)
        return found

    def rotate(self, old: str, new: str, *, by: Caller = ADMIN, grace: int = 0, ttl: int = 0) -> TokenInfo:
        command = RotateToken(caller=by, id=self.id(old), hash=hash_of(new), grace_ms=grace, ttl_ms=ttl)
        found: TokenInfo = self.engine.call(command)
        return found

    def revoke(self, name: str, *, by: Caller = ADMIN) -> TokenInfo:
        found: TokenInfo = self.engine.call(RevokeToken(caller=by, id=self.id(name)))
        return found

    def find(self, name: str) -> TokenInfo | None:
        found: TokenInfo | None = self.engine.call(FindToken(hash_of(name)))
        return found

    def listed(self, by: Caller = ADMIN) -> list[str]:
        return [token.id for token in self.engine.call(ListTokens(by))]

    def id(self, name: str) -> str:
        return f"t-{hash_of(name)[:12]}"

    def with_token(self, name: str, session: str = "") -> Caller:
        """Return the caller of a request that came with this token."""
        return Caller(session, user="net", token=self.id(name))

    def records(self) -> list[dict[str, Any]]:
        """Return the records of tokens, swept or not."""
        found = self.store.load([f"token/{self.id(name)}" for name in NAMES])
        return [msgspec.json.decode(each.value) for each in found.values() if each.value]


NAMES = ("a", "b", "c", "d", "e")
