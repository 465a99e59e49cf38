"""Limits, settings and tokens of a tenant over HTTP."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from coord.core.limits import LEASE_MS_MAX, SetLimits
from coord.core.settings import ChangeSettings, SettingInfo, check_setting
from coord.core.tokens.commands import CreateToken, RotateToken, TokenInfo
from coord.core.tokens.schema import Role
from coord.core.tokens.text import parse_token
from coord.sdk.client.maintenance import limits_command
from coord.sdk.client.tokens import make_token
from coord.transports.hub.api.endpoint import Answer, Asking, Endpoint, role_of
from coord.transports.hub.api.endpoints.commands import caller_of
from coord.transports.hub.api.fields import Number, OptionalId, PublicBody, Subject, checked
from coord.transports.hub.identity import forbidden

Lifetime = Annotated[int, Meta(ge=0, le=LEASE_MS_MAX)]


class SetLimitsBody(PublicBody, frozen=True, kw_only=True):
    """Limits to change, by profile and by name."""

    profile: Annotated[str, Meta(max_length=32)] = ""
    limits: dict[str, Number] = {}


class SettingsBody(PublicBody, frozen=True, kw_only=True):
    """Settings to change; the value `default` resets one."""

    settings: dict[str, Number | Annotated[str, Meta(max_length=64)]]
    project: OptionalId = ""


class NewTokenBody(PublicBody, frozen=True, kw_only=True):
    """A token to create; with `ttl_ms` 0 it never expires."""

    role: Role
    project: OptionalId = ""
    session: OptionalId = ""
    ttl_ms: Lifetime = 0
    label: Subject = ""


class RotateBody(PublicBody, frozen=True, kw_only=True):
    """How long the old secret still counts, and how long the new one."""

    grace_ms: Lifetime = 0
    ttl_ms: Lifetime = 0


class NewTokenReply(msgspec.Struct, frozen=True):
    """A new token: its text, which nobody can show again, and what others see of it."""

    token: str
    info: TokenInfo


async def set_limits(asking: Asking) -> Any:
    """Change the limits of the tenant."""
    body: SetLimitsBody = asking.values
    return await asking.ask(limits_command(asking.tenant, body.profile, body.limits, ""))


async def change_settings(asking: Asking) -> Any:
    """Change settings of the tenant or of a project."""
    body: SettingsBody = asking.values
    wanted = {name: check_setting(name, value) for name, value in body.settings.items()}
    return await asking.ask(ChangeSettings(wanted, asking.identity.check_project(body.project)))


async def create_token(asking: Asking) -> Any:
    """Create a token of the tenant; its text is shown once."""
    _refuse_key(asking)
    body: NewTokenBody = asking.values
    text = make_token(asking.store.database.store_id, asking.tenant)
    command = CreateToken(
        caller=caller_of(asking, {}, CreateToken),
        hash=parse_token(text).hash,
        role=body.role,
        project=body.project,
        session=body.session,
        ttl_ms=body.ttl_ms,
        label=checked("label", body.label),
    )
    return Answer(201, NewTokenReply(text, await asking.ask(command)))


async def rotate_token(asking: Asking) -> Any:
    """Replace a token by one with a new secret, which is shown once."""
    _refuse_key(asking)
    body: RotateBody = asking.values
    text = make_token(asking.store.database.store_id, asking.tenant)
    command = RotateToken(
        caller=caller_of(asking, {}, RotateToken),
        id=asking.path["id"],
        hash=parse_token(text).hash,
        grace_ms=body.grace_ms,
        ttl_ms=body.ttl_ms,
    )
    return Answer(201, NewTokenReply(text, await asking.ask(command)))


def _refuse_key(asking: Asking) -> None:
    """Refuse a repeatable request for a secret: the answer is not kept, so it cannot be given again."""
    if asking.command_id:
        raise forbidden(
            "a request for a secret takes no Idempotency-Key; revoke the token if its text is lost"
        )


def endpoints() -> list[Endpoint]:
    """Return the routes."""
    rows: tuple[tuple[str, str, str, Any, Any, Any, dict[int, Any]], ...] = (
        ("PATCH", "/v1/limits", "setLimits", set_limits, SetLimits, SetLimitsBody, {200: dict[str, int]}),
        (
            *("PATCH", "/v1/settings", "changeSettings", change_settings),
            *(ChangeSettings, SettingsBody, {200: list[SettingInfo]}),
        ),
        ("POST", "/v1/tokens", "createToken", create_token, CreateToken, NewTokenBody, {201: NewTokenReply}),
        (
            *("POST", "/v1/tokens/{id}/rotate", "rotateToken", rotate_token),
            *(RotateToken, RotateBody, {201: NewTokenReply}),
        ),
    )
    return [
        Endpoint(
            method,
            path,
            name,
            handle,
            summary=str(handle.__doc__),
            tag=path.split("/")[2],
            role=role_of(command),
            body=body,
            body_required=body is not RotateBody,
            replies=found,
        )
        for method, path, name, handle, command, body, found in rows
    ]
