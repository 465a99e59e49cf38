"""Create, find, rotate and revoke tokens.

One record holds a token. Its key is the public id, the first characters of the hash, so a request finds the
token with one read and then compares the whole hash in constant time. An expired token never counts; the
sweep only removes it.
"""

from hmac import compare_digest

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, LimitReached, Refused
from coord.core.ids import check_id, short_repr
from coord.core.limits import LEASE_MS_MAX
from coord.core.sessions.identify import is_person
from coord.core.tokens.commands import (
    CreateToken,
    FindToken,
    ListTokens,
    MarkTokenUsed,
    RevokeToken,
    RotateToken,
    TokenInfo,
)
from coord.core.tokens.permission import check_may_manage, covers, is_expired, limits_of_caller, valid_token
from coord.core.tokens.schema import Role, Token, TokenCreated, TokenExpired, TokenRevoked, TokenRotated
from coord.core.tokens.text import check_hash
from coord.core.transaction import PAGE, Transaction

TOKENS_MAX = PAGE
"""The number of tokens of a tenant."""
KEPT_FOR_PEOPLE = 100
"""Agents may create no token if fewer than this number could still be created."""
TTL_MS_MAX = LEASE_MS_MAX
LABEL_CHARS_MAX = 200
USED_QUIET_MS = 3_600_000
"""A token that was marked as used within this time is not marked again."""
_ID_CHARS = 12


def token_id(token_hash: str) -> str:
    """Return the public id of a token, which is in events, in the audit and in `coord token list`."""
    return f"t-{token_hash[:_ID_CHARS]}"


def create_token(tx: Transaction, command: CreateToken, now: int) -> TokenInfo:
    """Create a token, if the caller has at least its rights."""
    expires_ms = now + _ttl_ms(command.ttl_ms) if command.ttl_ms else 0
    token = Token(
        id=token_id(check_hash(command.hash)),
        hash=command.hash,
        role=Role(command.role),
        project=check_id("project", command.project) if command.project else "",
        session=check_id("session id", command.session) if command.session else "",
        label=_label(command.label),
        created_ms=now,
        user=command.caller.user,
        expires_ms=expires_ms,
    )
    session = check_may_manage(tx, command.caller, token, now)
    _check_deadline(tx, command, token, now)
    _check_number(tx, agent=not command.caller.token and not is_person(command.caller, session))
    token = _put_new(tx, msgspec.structs.replace(token, created_by=session or command.caller.token))
    tx.emit(
        TokenCreated(
            token.id,
            session,
            token.role,
            token.project,
            token.session,
            token.label,
            expires_ms,
            token.user,
            command.caller.token,
        )
    )
    return _info(token)


def rotate_token(tx: Transaction, command: RotateToken, now: int) -> TokenInfo:
    """Replace a token by one with a new secret; the old one ends now or at the end of the grace period."""
    old = valid_token(tx, check_id("token", command.id), now)
    session = check_may_manage(tx, command.caller, old, now)
    if old.replaced_by:
        raise Refused(
            f"token {old.id} was replaced by {old.replaced_by}",
            hint=f"coord token rotate {old.replaced_by}",
        )
    grace_ms = _ttl_ms(command.grace_ms, what="grace period") if command.grace_ms else 0
    new = msgspec.structs.replace(
        old,
        id=token_id(check_hash(command.hash)),
        hash=command.hash,
        created_ms=now,
        created_by=session or command.caller.token,
        user=command.caller.user,
        expires_ms=now + _ttl_ms(command.ttl_ms) if command.ttl_ms else old.expires_ms,
        used_ms=0,
    )
    _check_deadline(tx, command, new, now)
    new = _put_new(tx, new)
    ends_ms = min(now + grace_ms, old.expires_ms or now + grace_ms)
    if ends_ms > now:
        _put(tx, msgspec.structs.replace(old, expires_ms=ends_ms, replaced_by=new.id))
    else:
        tx.delete(keys.token(old.id))
    user, by_token = command.caller.user, command.caller.token
    tx.emit(TokenRotated(old.id, session, new.id, ends_ms, new.expires_ms, user, by_token))
    return _info(new)


def revoke_token(tx: Transaction, command: RevokeToken, now: int) -> TokenInfo:
    """End a token now."""
    token = valid_token(tx, check_id("token", command.id), now)
    session = check_may_manage(tx, command.caller, token, now)
    tx.delete(keys.token(token.id))
    tx.emit(TokenRevoked(token.id, session, command.caller.user, command.caller.token))
    return _info(token)


def list_tokens(tx: Transaction, command: ListTokens, now: int) -> list[TokenInfo]:
    """Return the tokens that count, oldest first, as far as the caller's own token covers them."""
    limits = limits_of_caller(tx, command.caller, now)
    found = []
    for page in tx.pages(keys.TOKEN_PREFIX):
        tx.prefetch(*(each.key for each in page))
        found += [tx.get(each.key, Token) for each in page]
    return [
        _info(token)
        for token in sorted(filter(None, found), key=lambda token: (token.created_ms, token.id))
        if not is_expired(token, now) and (limits is None or covers(limits, token))
    ]


def find_token(tx: Transaction, command: FindToken, now: int) -> TokenInfo | None:
    """Return the token with this hash, if it counts now."""
    token = tx.get(keys.token(token_id(check_hash(command.hash))), Token)
    if token is None or not compare_digest(token.hash, command.hash) or is_expired(token, now):
        return None
    return _info(token)


def mark_token_used(tx: Transaction, command: MarkTokenUsed, now: int) -> bool:
    """Remember when a token was used, at most once in `USED_QUIET_MS`."""
    token = tx.get(keys.token(check_id("token", command.id)), Token)
    if token is None or is_expired(token, now) or now < token.used_ms + USED_QUIET_MS:
        return False
    _put(tx, msgspec.structs.replace(token, used_ms=now))
    return True


def token_deadline(tx: Transaction, key: str, now: int) -> None:
    """Remove a token that has expired."""
    token = tx.get(key, Token)
    if token is not None and is_expired(token, now):
        tx.delete(key)
        tx.emit(TokenExpired(token.id, token.expires_ms))


def _put_new(tx: Transaction, token: Token) -> Token:
    if tx.get(keys.token(token.id), Token) is not None:
        raise Refused(f"token {token.id} exists already", hint="create one with another secret")
    return _put(tx, token)


def _put(tx: Transaction, token: Token) -> Token:
    tx.put(keys.token(token.id), token, keys.due(token.expires_ms) if token.expires_ms else "")
    return token


def _check_deadline(tx: Transaction, command: CreateToken | RotateToken, token: Token, now: int) -> None:
    """Refuse a token that would outlive the one with which the caller came."""
    limits = limits_of_caller(tx, command.caller, now)
    if limits is None or not limits.expires_ms:
        return
    if not 0 < token.expires_ms <= limits.expires_ms:
        left_s = (limits.expires_ms - now) // 1000
        raise Refused(
            f"token {limits.id} expires in {left_s} s; a token that it creates may not last longer",
            hint=f"let it expire earlier: --expires {left_s}s",
        )


def _check_number(tx: Transaction, *, agent: bool) -> None:
    number = len(tx.scan(keys.TOKEN_PREFIX, limit=TOKENS_MAX))
    if number >= TOKENS_MAX - (KEPT_FOR_PEOPLE if agent else 0):
        raise LimitReached(f"there are {number} tokens", hint="revoke some: coord token list shows them")


def _ttl_ms(value: int, what: str = "lifetime") -> int:
    if not 1000 <= value <= TTL_MS_MAX:
        raise Invalid(f"{short_repr(value)} ms is not a {what} of a token", hint="use 1 second to 366 days")
    return value


def _label(text: str) -> str:
    if len(text) > LABEL_CHARS_MAX or not text.isprintable():
        raise Invalid(
            "the label is not one line of printable characters",
            hint=f"use at most {LABEL_CHARS_MAX} characters",
        )
    return text


def _info(token: Token) -> TokenInfo:
    return TokenInfo(**{name: getattr(token, name) for name in TokenInfo.__struct_fields__})
