"""Run a follower of the log, or list all of them."""

from typing import Any

from msgspec.structs import replace

from coord.core.errors import CoordError, Invalid, Refused
from coord.core.followers import FollowerInfo, ListFollowers, RebuildFollower
from coord.followers.direct import log_source, runner_name
from coord.followers.follower import Follower, LogSource
from coord.followers.registry import FOLLOWERS, follower_class
from coord.followers.runner import STEP_PAGES, Runner
from coord.sdk.client.client import Client
from coord.sdk.log_reader import first_offset, newest_offset
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, say, timestamp

WAIT_S = 60.0
"""The longest single wait for the log to grow."""
LIST = "list"
RUNNING, SAVED, OFF = "running", "saved", "off"


class FollowArgs(Args, frozen=True):
    """The arguments of `coord follow`."""

    name: str
    once: bool
    rebuild: bool


def follow(client: Client, args: FollowArgs) -> Answer:
    """Run a follower until the end of the log, or until interrupted."""
    if args.name == LIST:
        if args.once or args.rebuild:
            raise Invalid("--once and --rebuild need the name of a follower", hint="coord follow list")
        return _listed(client)
    kind = follower_class(args.name)
    if client.database.is_remote:
        raise Refused(f"the hub runs follower {args.name}", hint="coord follow list shows how far it is")
    if args.rebuild:
        _rebuild(client, kind)
    log = client.log
    runner = Runner(log_source(client), [kind], runner_name())
    (run,) = runner.runs
    try:
        while True:
            due_ms = runner.step(pages_max=STEP_PAGES)
            if run.failure is not None and args.once:
                raise run.failure
            if runner.behind:
                continue
            if (args.once and not run.follower.busy) or not (run.ready or run.rests_at):
                break
            left_s = (due_ms - log.now()) / 1000 if due_ms else WAIT_S
            log.wait(runner.offset, max(0.0, min(left_s, WAIT_S)))
        ran = run.ready or run.rests_at > 0
    finally:
        runner.close()
    if not ran:
        say(f"another process runs {args.name}")
    fields = {"name": args.name, "offset": run.offset, "missed": run.missed, "ran": ran}
    return Answer(fields, f"{args.name} has read up to offset {run.offset}")


def _rebuild(client: Client, kind: type[Follower]) -> None:
    """Let a follower be computed again, if its state depends on the log alone."""
    if kind.starts_at_present:
        raise Refused(
            f"{kind.name} cannot be computed again: its state says what was done, and the log does not",
            hint="coord reactions dead shows what failed",
        )
    if not kind.name.startswith("mirror-") and kind.is_local:
        raise Refused(
            f"{kind.name} cannot be computed again: it keeps what a trimmed log does not have",
            hint="coord follow list shows how far it is",
        )
    if kind.is_local:
        mirror = kind.name.removeprefix("mirror-")
        raise Refused(
            f"{kind.name} is made again when it is switched on",
            hint=f"coord mirror off {mirror}; coord mirror on {mirror}",
        )
    first = first_offset(client.log)
    offset: int = client.call(RebuildFollower(kind.name, kind.version, first))
    if first:
        say(f"entries before offset {first} were trimmed; {kind.name} goes on from its state at {offset}")


def _listed(client: Client) -> Answer:
    found: dict[str, FollowerInfo] = {each.name: each for each in client.call(ListFollowers())}
    head = newest_offset(client.log)
    source, hub = log_source(client), client.database.is_remote
    rows = [_row(name, found.get(name), head, source) for name in sorted({*FOLLOWERS, *found})]
    failed = sum(bool(row["error"]) for row in rows)
    where = "offsets as the hub has read them" if hub else "no hub runs them, so offsets are those saved"
    line = f"{count(len(rows), 'follower')}, {failed} failed; the log ends at offset {head}; {where}"
    columns = ("name", "about", "state", "offset", "lag", "saved_at", "runner", "error")
    return Answer({"followers": rows, "head": head}, line, rows, columns)


def _row(name: str, found: FollowerInfo | None, head: int, source: LogSource) -> dict[str, Any]:
    """Return a follower: `state` says whether its offset is what a hub has read, or what is saved."""
    kind = follower_class(name) if name in FOLLOWERS else None
    found = found or FollowerInfo(name, 0, 0, 0, 0, 0, "", "", 0)
    if kind is not None and kind.is_local and not found.live:
        found = _kept_here(kind, found, source)
    problems = kind.problems(source) if kind is not None else []
    state = RUNNING if found.live else SAVED
    if kind is not None and not (found.live or found.runner or found.error or kind.wanted(source)):
        state = OFF
    if kind is not None and kind.has_effects and state == SAVED and not found.runner:
        problems = [*problems, f"nobody runs it; start coord serve, or run coord follow {name}"]
    return {
        "name": name,
        "about": "of another program" if kind is None else kind.about,
        "state": state,
        "offset": found.offset,
        "lag": 0 if state == OFF else max(0, head - found.offset),
        "saved_at": timestamp(found.at_ms) if found.at_ms else "",
        "runner": found.runner,
        "error": "; ".join([found.error] * bool(found.error) + problems),
        "missed": found.missed,
        "state_bytes": found.state_bytes,
    }


def _kept_here(kind: type[Follower], found: FollowerInfo, source: LogSource) -> FollowerInfo:
    """Return a follower of this machine, which keeps its offset beside the store."""
    try:
        return replace(found, offset=kind(source).resume())
    except CoordError as error:
        return replace(found, error=error.message)
