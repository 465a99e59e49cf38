"""Sweep expired records; show and set limits."""

import threading

from coord.core.errors import Invalid
from coord.core.limits import PROFILES, RATIONALE
from coord.sdk.client.client import Client
from coord.transports import arguments
from coord.transports.cli import output
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer


class SweepArgs(Args, frozen=True):
    """The arguments of `coord sweep`."""

    every_s: float | None


def sweep(client: Client, args: SweepArgs) -> Answer:
    """Record what has expired, once or repeatedly."""
    if args.every_s is None:
        return _sweep_answer(client)
    from coord.sdk.scheduler import Scheduler

    def once() -> None:
        output.show(_sweep_answer(client), as_json=True)

    def complain(_name: str, error: Exception) -> None:
        output.say(f"coord: {error}")

    with Scheduler(on_error=complain) as scheduler:
        scheduler.register("sweep", args.every_s, once, at_once=True)
        threading.Event().wait()  # a signal ends it
    raise AssertionError("only a signal ends the wait")


def _sweep_answer(client: Client) -> Answer:
    reply = client.sweep()
    line = output.count(reply.passed, "expired record") if reply.passed else "Nothing has expired"
    return Answer(output.fields_of(reply), line)


COLUMNS = ("limit", "value", "used", *PROFILES, "because")


def limits_show(client: Client, _args: Args) -> Answer:
    """Show the limits with their use and their reasons."""
    reply = client.limits()
    if not reply.limited:
        fields = {"tenant": reply.tenant, "limited": False, "limits": []}
        return Answer(fields, f"Tenant {reply.tenant} is unlimited")
    rows = [
        {
            "limit": name,
            "value": reply.limits[name],
            "used": reply.used.get(name),
            **{profile: getattr(numbers, name) for profile, numbers in PROFILES.items()},
            "because": why,
        }
        for name, why in RATIONALE.items()
    ]
    profile = f"profile {reply.profile}" if reply.profile else "custom limits"
    fields = {"tenant": reply.tenant, "limited": True, "profile": reply.profile or None, "limits": rows}
    return Answer(fields, f"Tenant {reply.tenant}, {profile}", rows, COLUMNS)


class LimitsSetArgs(Args, frozen=True):
    """The arguments of `coord limits set`."""

    limits: list[str]
    profile: str


def limits_set(client: Client, args: LimitsSetArgs) -> Answer:
    """Change limits, and show the result."""
    if not args.profile and not args.limits:
        raise Invalid("no limit given", hint="for example: coord limits set max_active_sessions=80")
    pairs = [text.partition("=") for text in args.limits]
    unclear = [name for name, equals, _ in pairs if not equals]
    if unclear:
        raise Invalid(f"{unclear[0]} has no value", hint=f"write {unclear[0]}=NUMBER")
    client.set_limits(profile=args.profile, **{name: arguments.number(value) for name, _, value in pairs})
    return limits_show(client, args)
