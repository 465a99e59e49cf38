"""Create, list, revoke and rotate tokens."""

import os

from coord.core.errors import Invalid, Refused
from coord.core.tokens.commands import TokenInfo
from coord.core.tokens.schema import Role
from coord.sdk.client.client import Client
from coord.sdk.client.tokens import NewToken
from coord.transports.cli.args import Args, Options
from coord.transports.cli.output import Answer, count, fields_of, timestamp

COLUMNS = (
    *("id", "role", "project", "session", "label", "user"),
    *("created_at", "expires_at", "used_at", "replaced_by"),
)


class CreateArgs(Args, frozen=True):
    """The arguments of `coord token create`."""

    role: str
    project: str
    session: str
    expires_s: float | None
    label: str


def token_create(client: Client, args: CreateArgs) -> Answer:
    """Create a token, and show it this once."""
    if not args.role:
        raise Invalid("no role given", hint=f"pass --role with one of {', '.join(Role)}")
    new = client.create_token(
        args.role, project=args.project, session=args.session, expires_s=args.expires_s, label=args.label
    )
    return _shown_once(new, f"Created {_described(new.info)}")


def token_list(client: Client, _args: Args) -> Answer:
    """List the tokens that count."""
    found = fields_of(client.tokens())
    return Answer({"tokens": found}, count(len(found), "token"), found, COLUMNS)


class TokenArgs(Args, frozen=True):
    """The arguments of `coord token revoke`."""

    id: str


def token_revoke(client: Client, args: TokenArgs) -> Answer:
    """End a token now."""
    info = client.revoke_token(args.id)
    return Answer(fields_of(info), f"Revoked {_described(info)}")


class RotateArgs(TokenArgs, frozen=True):
    """The arguments of `coord token rotate`."""

    grace_s: float | None
    expires_s: float | None


def token_rotate(client: Client, args: RotateArgs) -> Answer:
    """Replace a token by one with a new secret, and show it this once."""
    new = client.rotate_token(args.id, grace_s=args.grace_s or None, expires_s=args.expires_s)
    return _shown_once(new, f"Replaced {args.id} by {_described(new.info)}")


def token_export(_options: Options, _args: Args) -> str:
    """Return the commands of a shell that set the tokens of http hooks."""
    from coord.host.caller import shows_agent
    from coord.integrations.setup.http.token_file import exports

    if shows_agent(os.environ):
        raise Refused("only people may see the tokens of hooks", hint="ask the person you work for")
    return "".join(f"export {name}={text}\n" for name, text in exports(os.environ))


def _shown_once(new: NewToken, line: str) -> Answer:
    """Return an answer with the text of a token: alone on stdout in a table, as `token` in JSON."""
    fields = {"token": new.text, **fields_of(new.info)}
    return Answer(
        fields, f"{line}. The token is shown only now: store it", drawn=lambda _room: f"{new.text}\n"
    )


def _described(info: TokenInfo) -> str:
    parts = [f"role {info.role}"]
    parts += [f"project {info.project}"] if info.project else []
    parts += [f"session {info.session}"] if info.session else []
    parts += [f"until {timestamp(info.expires_ms)}" if info.expires_ms else "without end"]
    return f"{info.id} ({', '.join(parts)})"
