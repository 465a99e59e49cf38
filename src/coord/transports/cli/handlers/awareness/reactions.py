"""List and test reactions, and decide about deliveries that failed."""

import threading
from typing import Any

from coord.core.errors import Invalid, NotFound, Refused
from coord.core.ids import short_repr
from coord.core.reactions.commands import DecideReaction
from coord.core.reactions.schema import hops_of
from coord.followers.direct import log_source
from coord.followers.reactions import listing
from coord.followers.reactions.actions import attempt
from coord.followers.reactions.events import Delivery, Position
from coord.followers.reactions.performer import NEXT
from coord.followers.reactions.settings import Settings, read_settings
from coord.sdk.client.client import Client
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, fields_of, timestamp


class TestArgs(Args, frozen=True):
    """The arguments of `coord reactions test`."""

    name: str
    event: Any


class DeadArgs(Args, frozen=True):
    """The arguments of `coord reactions dead`."""

    retry: str
    drop: str


def list_reactions(client: Client, _args: Args) -> Answer:
    """List the reactions with what they wait for, and the problems of the others."""
    found = listing.list_reactions(log_source(client))
    line = f"{count(len(found.reactions), 'reaction')}, {count(len(found.problems), 'problem')}"
    if found.problems:
        line += f": {found.problems[0]}"
    if found.problem:
        line += f"; {found.problem}: {NEXT}"
    rows = fields_of(found.reactions)
    return Answer(
        {
            "reactions": rows,
            "problems": found.problems,
            "performed_by": found.performed_by,
            "waiting": found.waiting,
        },
        line,
        rows,
        ("name", "event", "action", "attempts", "dead", "file"),
    )


def try_reaction(client: Client, args: TestArgs) -> Answer:
    """Perform a reaction once, in this process."""
    reactions = {each.name: each for each in _settings(client).reactions}
    reaction = reactions.get(args.name)
    if reaction is None:
        known = ", ".join(reactions) or "there is none"
        raise NotFound(f"there is no reaction {short_repr(args.name)}", hint=f"coord reactions list: {known}")
    given = args.event if args.event is not None else {}
    if not isinstance(given, dict):
        raise Invalid("the event is no JSON object", hint='--event \'{"event":"task.completed"}\'')
    details = dict(given)
    event = str(details.pop("event", reaction.pattern.names[0]))
    delivery = Delivery(Position(0, 0), event, client.log.now(), details, hops_of(details), again=True)
    outcome = attempt(reaction, delivery, log_source(client), threading.Event())
    if outcome.error:
        raise Refused(f"{reaction.name}: {outcome.error}", hint="correct it, and test it again")
    output = "" if outcome.ran is None else outcome.ran.output
    fields = {"name": reaction.name, "action": reaction.kind, "event": event, "output": output}
    return Answer(fields, f"{reaction.name} was performed ({reaction.kind})")


def dead(client: Client, args: DeadArgs) -> Answer:
    """List the deliveries that failed, or decide about one."""
    found = listing.list_dead(log_source(client))
    wanted = args.retry or args.drop
    if wanted:
        if wanted not in [each.id for each in found]:
            raise NotFound(f"no failed delivery has the id {short_repr(wanted)}", hint="coord reactions dead")
        client.call(DecideReaction(client.caller, id=wanted, retry=bool(args.retry)))
        verb = "is tried again" if args.retry else "is dropped"
        return Answer({"id": wanted, "decision": "retry" if args.retry else "drop"}, f"{wanted} {verb}")
    rows = [_row(each) for each in found]
    columns = ("id", "event", "error", "attempts", "at")
    return Answer({"dead": rows}, count(len(rows), "dead letter"), rows, columns)


def _row(found: listing.DeadInfo) -> dict[str, Any]:
    return {
        "id": found.id,
        "reaction": found.reaction,
        "event": found.event,
        "at": timestamp(found.at_ms),
        "error": found.error,
        "attempts": found.attempts,
        "retry": found.retry,
    }


def _settings(client: Client) -> Settings:
    return read_settings(client.location, client.environ)
