"""Let a person confirm the `coord.toml` of a repository."""

import os
import sys
from typing import TYPE_CHECKING

from coord.core.errors import Invalid, Refused
from coord.transports.cli.args import Args, Options
from coord.transports.cli.output import Answer, is_terminal, say

if TYPE_CHECKING:
    from coord.host.consent import Configuration


class TrustArgs(Args, frozen=True):
    """The arguments of `coord trust`."""

    yes: bool
    revoke: bool


def trust(_: Options, args: TrustArgs) -> Answer:
    """Confirm the configuration of this repository, or withdraw that."""
    from coord.host.consent import revoke

    found = configuration_here()
    fields = {"file": found.file}
    if args.revoke:
        _refuse_agent(f"withdraw the consent to {found.file}")
        line = "Withdrawn: none of its settings count now" if revoke(found) else "It was not confirmed"
        return Answer({**fields, "confirmed": False}, f"{line} ({found.file})")
    if found.consent and found.confirmed:
        return Answer({**fields, "confirmed": True}, f"{found.file} is confirmed already")
    if not confirmed_by_person(found, yes=args.yes):
        raise Refused(f"{found.file} stays unconfirmed", hint="read it, then run coord trust --yes")
    return Answer({**fields, "confirmed": True}, f"Confirmed ✓ {found.file}{_without_performer(found)}")


def _without_performer(found: "Configuration") -> str:
    """Return a note if the file has reactions, and no process performs them."""
    if not {"on", "reactions"} & found.proposed.keys():
        return ""
    from coord.core.errors import CoordError
    from coord.followers.direct import log_source
    from coord.followers.reactions.performer import NEXT, find_performer
    from coord.sdk.client.client import connect

    try:
        with connect(create=False) as client:
            performer = find_performer(log_source(client))
    except CoordError:  # there is no store yet, so nothing happens that a reaction could mean
        return ""
    return f"; {performer.problem}: {NEXT}" if performer.problem else ""


def configuration_here() -> "Configuration":
    """Return the configuration of the repository of this folder."""
    from coord.host.consent import read_consented
    from coord.host.repository import current_folder, find_repository

    return read_consented(find_repository(current_folder()), os.environ)


def confirmed_by_person(found: "Configuration", *, yes: bool) -> bool:
    """Record the consent of a person, whom a terminal asks; return whether there is one. Agents give none."""
    from coord.host.consent import confirm

    _refuse_agent(f"confirm {found.file}")
    if found.problem or not found.consent:
        confirm(found)
    if not yes and not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return False
    if not yes:
        for row in _shown(found):
            say(row)
        say(f"Let {found.file} count? [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return False
    confirm(found)
    return True


def _refuse_agent(action: str) -> None:
    from coord.host.caller import shows_agent

    if shows_agent(os.environ) or _runs_below_agent():
        raise Refused(f"an agent cannot {action}", hint="ask the person you work for to run: coord trust")


def _runs_below_agent() -> bool:
    """Whether an ancestor of this process belongs to an agent's session, whatever its variables say."""
    from coord.core.errors import CoordError
    from coord.core.sessions.commands import FindSession
    from coord.sdk.client.client import connect

    try:
        with connect(create=False) as client:
            return bool(client.call(FindSession(client.caller)).session_id != client.caller.session)
    except CoordError:  # no store, or nobody is known there
        return False


def _shown(found: "Configuration") -> list[str]:
    """Return the settings as lines that a terminal can show, whatever the file contains."""
    from coord.stores.urls import redact

    rows: list[str] = []
    for name, value in found.proposed.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        rows += [f"  {name}{'.' if key else ''}{key} = {redact(str(each))!r}" for key, each in inner]
    if not rows:
        raise Invalid(f"{found.file} is empty", hint="remove it")
    return [f"{found.file} says:", *rows]
