"""`coord open`: make a link that logs a browser in to the hub, once."""

import os

from coord.core.errors import NotFound, Unavailable
from coord.sdk.client.client import Client
from coord.sdk.remote import wire
from coord.sdk.remote.address import HubState, read_state
from coord.sdk.remote.channel import UnixChannel
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer

TIMEOUT_S = 10.0
LABEL = "browser"
LOGIN_LINK = "/v1/login-link"


class OpenArgs(Args, frozen=True):
    """The arguments of `coord open`."""

    role: str
    expires_s: float
    browser: bool


def open_page(client: Client, args: OpenArgs) -> Answer:
    """Create a token for a browser, and a link that hands it over once."""
    state = read_state(os.environ)
    if state is None:
        raise NotFound("no hub runs for this user", hint="coord serve starts one")
    if not state.listen:
        raise Unavailable(
            "the hub serves its socket only, and browsers need HTTP", hint="coord serve --listen HOST:PORT"
        )
    new = client.create_token(args.role, expires_s=args.expires_s, label=LABEL)
    try:
        url = f"{state.listen}/login#{_link(client, state, new.text)}"
    except BaseException:
        client.revoke_token(new.info.id)
        raise
    if args.browser:
        import webbrowser

        webbrowser.open(url)
    fields = {"url": url, "id": new.info.id, "role": str(new.info.role), "seconds": 120}
    return Answer(fields, url)


def _link(client: Client, state: HubState, token: str) -> str:
    """Return the code of a link for a token."""
    repository = client.location.repository
    root = "" if repository is None else repository.root or repository.commondir
    channel = UnixChannel(state.socket)
    try:
        body = wire.encode({"target": wire.Target(root, client.tenant), "token": token})
        status, answer = channel.post(LOGIN_LINK, body, TIMEOUT_S)
    finally:
        channel.close()
    import msgspec

    if status != 200:
        raise wire.error_of(msgspec.msgpack.decode(answer, type=wire.ErrorData))
    return str(msgspec.msgpack.decode(answer)["once"])
