"""Whether a caller may create, rotate or revoke a token.

| caller | may |
|---|---|
| a person in a terminal | everything |
| a request with a token | only with role admin, and only inside the limits of that token |
| an agent | tokens below admin for its own session, or for a sub-agent of it |

Nobody gets more rights from a new token than the caller has.
"""

from coord.core import keys
from coord.core.errors import Impostor, NotFound, Refused
from coord.core.identity import Caller
from coord.core.sessions.commands import TokenMayAct
from coord.core.sessions.identify import ancestors, ensure_session, find_session, is_person
from coord.core.tokens.schema import Role, Token
from coord.core.transaction import Transaction

ASK = "ask a person to do it"
ROTATIONS_MAX = 16
"""How many rotations of a token lie between two requests of a session, at most."""


def valid_token(tx: Transaction, token_id: str, now: int) -> Token:
    """Return a token that counts now, swept or not."""
    token = tx.get(keys.token(token_id), Token)
    if token is None or is_expired(token, now):
        raise NotFound(f"there is no token {token_id}", hint="coord token list shows those that count")
    return token


def is_expired(token: Token, now: int) -> bool:
    """Whether the deadline of a token has passed."""
    return 0 < token.expires_ms <= now


def covers(limits: Token, token: Token) -> bool:
    """Whether a token lies inside the limits of another one."""
    return (
        limits.role.allows(token.role)
        and limits.project in ("", token.project)
        and limits.session in ("", token.session)
    )


def limits_of_caller(tx: Transaction, caller: Caller, now: int) -> Token | None:
    """Return the token with which the caller came; None if it came without one."""
    if not caller.token:
        return None
    token = tx.get(keys.token(caller.token), Token)
    if token is None or is_expired(token, now):
        raise Refused(f"token {caller.token} no longer counts", hint="get another one: coord token create")
    return token


def check_may_manage(tx: Transaction, caller: Caller, token: Token, now: int) -> str:
    """Return the session that acts; refuse one that may not create, rotate or revoke this token."""
    limits = limits_of_caller(tx, caller, now)
    if limits is not None:
        if not limits.role.allows(Role.ADMIN):
            raise Refused(
                f"token {limits.id} has role {limits.role}; only an admin manages tokens",
                hint="use a token with role admin",
            )
        if not covers(limits, token):
            raise Refused(
                f"token {limits.id} is limited to {_limits(limits)}",
                hint="use a token without that limit, or name the same limit: --project, --session",
            )
        return caller.session
    own = find_session(tx, caller, now)
    if is_person(caller, own):
        return own
    ensure_session(tx, caller, now, own)
    if token.role.allows(Role.ADMIN):
        raise Refused(f"{own} is an agent; only people manage tokens with role admin", hint=ASK)
    if token.session != own and (not token.session or own not in ancestors(tx, token.session)):
        whom = f"session {token.session}" if token.session else "all sessions"
        raise Refused(
            f"{own} is an agent; a token for {whom} is not its own",
            hint=f"limit it to this session (--session {own}), or {ASK}",
        )
    return own


def check_may_act(tx: Transaction, command: TokenMayAct, now: int) -> bool:
    """Return whether a session belongs to a token: it names the session, or replaced the session's token.

    An admin acts for every session, which does not belong to it then. Nobody else does.
    """
    token = tx.get(keys.token(command.token), Token)
    if token is not None and not is_expired(token, now):
        if token.session and command.session.partition("~")[0] == token.session.partition("~")[0]:
            return True
        if command.token in successors(tx, command.before):
            return True
        if token.role.allows(Role.ADMIN) and not token.session:
            return False
    raise Impostor(
        f"session {command.session} did not come with this token",
        hint="use its token, choose another session id, or use a token with role admin",
    )


def successors(tx: Transaction, token_id: str) -> list[str]:
    """Return the tokens that rotations put in the place of a token."""
    found: list[str] = []
    while token_id and len(found) < ROTATIONS_MAX:
        token = tx.get(keys.token(token_id), Token)
        token_id = "" if token is None else token.replaced_by
        found.append(token_id)
    return [each for each in found if each]


def _limits(token: Token) -> str:
    named = {"project": token.project, "session": token.session}
    return " and ".join(f"{what} {name}" for what, name in named.items() if name)
