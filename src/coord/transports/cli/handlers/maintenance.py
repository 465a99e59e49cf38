"""Sweep expired records; show and set limits."""

import threading
from types import SimpleNamespace

from coord.core.errors import Invalid
from coord.core.limits import PROFILES, RATIONALE
from coord.sdk.client.client import Client
from coord.transports import arguments as words
from coord.transports.cli import output
from coord.transports.cli.output import Answer


def sweep(client: Client, given: SimpleNamespace) -> Answer:
    """Pass what is due, once or again and again."""
    if given.every is None:
        return _swept(client)
    from coord.sdk.scheduler import Scheduler

    def once() -> None:
        output.show(_swept(client), as_json=True)

    def complain(_name: str, error: Exception) -> None:
        output.say(f"coord: {error}")

    with Scheduler(on_error=complain) as scheduler:
        scheduler.register("sweep", given.every, once, at_once=True)
        threading.Event().wait()  # a signal ends it
    raise AssertionError("nothing ends the wait but a signal")


def _swept(client: Client) -> Answer:
    reply = client.sweep()
    things = "thing" if reply.passed == 1 else "things"
    line = f"{reply.passed} {things} ran out" if reply.passed else "nothing ran out"
    return Answer(output.fields_of(reply), line)


COLUMNS = ("limit", "value", "used", *PROFILES, "because")


def limits_show(client: Client, _given: SimpleNamespace) -> Answer:
    """Show the limits, each with what is used of it and why it is there."""
    reply = client.limits()
    if not reply.limited:
        fields = {"tenant": reply.tenant, "limited": False, "limits": []}
        return Answer(fields, f"tenant {reply.tenant} is unlimited")
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
    profile = f"profile {reply.profile}" if reply.profile else "set singly"
    fields = {"tenant": reply.tenant, "limited": True, "profile": reply.profile or None, "limits": rows}
    return Answer(fields, f"tenant {reply.tenant}, {profile}", rows, COLUMNS)


def limits_set(client: Client, given: SimpleNamespace) -> Answer:
    """Change limits, and limits_show what is in force."""
    if not given.profile and not given.limit:
        raise Invalid("no limit is named", hint="for example: coord limits set max_active_sessions=80")
    pairs = [text.partition("=") for text in given.limit]
    unclear = [name for name, equals, _ in pairs if not equals]
    if unclear:
        raise Invalid(f"{unclear[0]} has no value", hint=f"write {unclear[0]}=NUMBER")
    client.set_limits(profile=given.profile, **{name: words.number(value) for name, _, value in pairs})
    return limits_show(client, given)
