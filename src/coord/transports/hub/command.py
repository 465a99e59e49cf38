"""Run the hub in the foreground, or talk to the one that runs."""

import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

from coord.core.errors import NotFound, Unavailable, Unsupported
from coord.host.repository import current_folder
from coord.sdk.remote.address import HubState, read_state
from coord.stores.urls import is_hub
from coord.transports.cli.args import Args, Options
from coord.transports.cli.connect import proposed_store
from coord.transports.cli.output import Answer

if TYPE_CHECKING:
    from coord.host.store_location import StoreLocation
    from coord.transports.hub.server import Ready

STOP_S = 30.0
INSTALL = "pip install 'coord[hub]'"


class ServeArgs(Args, frozen=True):
    """The arguments of `coord serve`."""

    socket: str
    listen: str
    tls_cert: str
    tls_key: str
    behind_proxy: bool
    host: str
    rate: int
    idle_s: float | None
    status: bool
    stop: bool
    reload: bool


def serve(options: Options, args: ServeArgs) -> Answer:
    """Serve until a signal comes; or show, end or reload the hub that runs."""
    if args.status or args.stop or args.reload:
        state = read_state(os.environ)
        if state is None:
            raise NotFound("no hub runs for this user", hint="coord serve starts one")
        if args.reload:
            os.kill(state.pid, signal.SIGHUP)
        return _stopped(state) if args.stop else _shown(state)
    return _serve(options, args)


def _serve(options: Options, args: ServeArgs) -> Answer:
    try:
        from coord.transports.hub.server import Options as ServeOptions
        from coord.transports.hub.server import serve as run
    except ModuleNotFoundError as error:
        raise Unsupported(f"the hub needs the package {error.name}", hint=INSTALL) from error
    location = _served(options.url)
    names = tuple(name.strip() for name in args.host.split(",") if name.strip())
    run(
        location,
        os.environ,
        ServeOptions(
            args.socket,
            args.listen,
            args.tls_cert,
            args.tls_key,
            args.behind_proxy,
            names,
            rate=args.rate,
            idle_s=args.idle_s,
        ),
        _announce,
    )
    return Answer({"stopped": True}, "The hub has ended")


def _served(url: str) -> "StoreLocation":
    """Return the store of this folder, which the first use creates.

    Outside of repositories it is the store that `--url` or COORD_URL names, or else that of the user.
    """
    from coord.host.store_location import StoreLocation, find_location
    from coord.sdk.client.open import open_location, open_named

    _, environ = proposed_store(url)
    location = find_location(current_folder(), environ)
    named = url or environ.get("COORD_URL", "") if location.repository is None else ""
    if named or is_hub(location.url):
        database, location = open_named(StoreLocation(named or location.url, "", None, "", 0, ""))
    elif location.pinned:
        return location
    else:
        database, location = open_location(location)
    database.close()
    return location


def _announce(ready: "Ready") -> None:
    """Print the line that a program which started the hub waits for."""
    import msgspec

    fields = {"ok": True, **ready._asdict()}
    sys.stdout.write(msgspec.json.encode(fields).decode() + "\n")
    sys.stdout.flush()


def _shown(state: HubState) -> Answer:
    import msgspec

    fields = msgspec.to_builtins(state)
    where = f" and {state.listen}" if state.listen else ""
    return Answer(fields, f"The hub (pid {state.pid}) serves {state.socket}{where}")


def _stopped(state: HubState) -> Answer:
    """End the hub and wait until its process is gone."""
    try:
        process = os.pidfd_open(state.pid)
    except ProcessLookupError:
        return Answer({"stopped": True}, "The hub has ended")
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        ended = select.poll()
        ended.register(process, select.POLLIN)
        began = time.monotonic()
        if not ended.poll(STOP_S * 1000):
            raise Unavailable(
                f"the hub (pid {state.pid}) did not end within {time.monotonic() - began:.0f} s",
                hint=f"kill -9 {state.pid} loses nothing",
            )
    finally:
        os.close(process)
    return Answer({"stopped": True}, f"The hub (pid {state.pid}) has ended")
