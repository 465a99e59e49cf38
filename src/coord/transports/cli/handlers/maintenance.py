"""Sweep expired records; show and set limits and settings."""

import threading

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.limits import PROFILES, RATIONALE, LimitsInfo
from coord.core.settings import SETTINGS, SettingInfo, Value, check_setting
from coord.sdk.client.client import Client
from coord.transports import arguments
from coord.transports.cli import output
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer
from coord.transports.cli.parser import meant

NUMBER_DIGITS_MAX = 18


class SweepArgs(Args, frozen=True):
    """The arguments of `coord sweep`."""

    every_s: float | None


def sweep(client: Client, args: SweepArgs) -> Answer:
    """Record what has expired, once or repeatedly."""
    if args.every_s is None:
        return _sweep_answer(client)
    from coord.sdk.scheduler import Scheduler

    def once() -> None:
        output.show(_sweep_answer(client))

    def complain(_name: str, error: Exception) -> None:
        output.say(f"coord: {error}")

    with Scheduler(on_error=complain) as scheduler:
        scheduler.register("sweep", args.every_s, once, at_once=True)
        threading.Event().wait()  # a signal ends it
    raise AssertionError("only a signal ends the wait")


def _sweep_answer(client: Client) -> Answer:
    reply = client.sweep()
    line = output.count(reply.passed, "expired record") if reply.passed else "Nothing has expired"
    if reply.trimmed:
        line += f"; {reply.trimmed} log entries trimmed"
    client.check_alerts()
    ended = client.end_hung()
    if ended:
        line += f"; ended {', '.join(ended)}, which hung"
        client.sweep()
    return Answer({**output.fields_of(reply), "ended": ended}, line)


COLUMNS = ("limit", "value", "used", *PROFILES, "source", "because")


def limits_show(client: Client, _args: Args) -> Answer:
    """Show the limits and settings with their use, their sources and their reasons."""
    return _limits_answer(client.limits(), client.settings())


def _limits_answer(reply: LimitsInfo, settings: list[SettingInfo]) -> Answer:
    limits = [
        {
            "limit": name,
            "value": value,
            "used": reply.used.get(name),
            **{profile: getattr(numbers, name) for profile, numbers in PROFILES.items()},
            "source": "default" if value == getattr(PROFILES["default"], name) else "store",
            "because": RATIONALE[name],
        }
        for name, value in reply.limits.items()
    ]
    rows = [
        {"limit": each.name, "value": each.value, "default": each.default, "source": each.source}
        | {"because": each.because}
        for each in settings
    ]
    profile = f"profile {reply.profile}" if reply.profile else "custom limits"
    fields = {
        "tenant": reply.tenant,
        "limited": reply.limited,
        "profile": reply.profile or None,
        "project": settings[0].project,
        "limits": limits,
        "settings": [output.fields_of(each) for each in settings],
    }
    line = f"Tenant {reply.tenant}, {profile if reply.limited else 'without limits of claims and sessions'}"
    return Answer(fields, f"{line}; project {settings[0].project}", [*limits, *rows], COLUMNS)


class LimitsSetArgs(Args, frozen=True):
    """The arguments of `coord limits set`."""

    limits: list[str]
    profile: str


def limits_set(client: Client, args: LimitsSetArgs) -> Answer:
    """Change limits and settings, and show the result."""
    if not args.profile and not args.limits:
        raise Invalid("no limit given", hint="for example: coord limits set max_agents=8")
    pairs = [text.partition("=") for text in args.limits]
    unclear = [name for name, equals, _ in pairs if not equals]
    if unclear:
        raise Invalid(f"{unclear[0]} has no value", hint=f"write {unclear[0]}=VALUE")
    given = {name: value for name, _, value in pairs}
    settings = {name: check_setting(name, _value(given[name])) for name in given if name in SETTINGS}
    unknown = next((name for name in given if name not in SETTINGS and name not in RATIONALE), None)
    if unknown is not None:
        hint = meant(unknown, [*SETTINGS, *RATIONALE], "coord limits show lists them")
        raise Invalid(f"unknown limit {short_repr(unknown)}", hint=hint)
    limits = {name: arguments.number(value) for name, value in given.items() if name not in SETTINGS}
    if limits or args.profile:
        client.set_limits(profile=args.profile, **limits)
    if settings:
        client.change_settings(**settings)
    return limits_show(client, args)


def _value(text: str) -> Value:
    """Return the value of a setting: a whole number, or a word."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < NUMBER_DIGITS_MAX else text
