"""A request and its response, apart from the server that reads and writes them."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from coord.core.errors import Invalid

JSON = "application/json"
MSGPACK = "application/msgpack"


class Peer(NamedTuple):
    """Who is at the other end of a connection.

    A process of this user for the unix socket, whose pid and uid the kernel has stated; an address for TCP.
    """

    unix: bool = False
    pid: int = 0
    uid: int = -1
    address: str = ""
    port: int = 0
    own_port: int = 0
    """Where a TCP connection arrived."""
    connection: int = 0
    """The number of the connection in this process: a port is used again, a number is not."""
    fd: int = -1


class Response(NamedTuple):
    """A response; `stream` follows the body and ends the connection."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = {}
    stream: AsyncGenerator[bytes, None] | None = None
    sent: Callable[[], None] | None = None
    """What to do when the whole body was given to a client that is still there."""


class Request(msgspec.Struct):
    """A request whose head and body have been read within their limits."""

    method: str
    path: str
    query_text: str
    headers: Mapping[str, str]
    """Names in lower case; a name that came twice has its values joined by a comma."""
    body: bytes
    peer: Peer
    parameters: dict[str, str] = {}
    """The variable parts of the path."""
    identity: Any = None
    """What authentication found out: an `Identity` of `identity.py`."""

    @property
    def query(self) -> dict[str, str]:
        """The parameters after `?`; the last one of a name counts."""
        try:
            return dict(parse_qsl(self.query_text, keep_blank_values=True, max_num_fields=100))
        except ValueError as error:
            raise Invalid(f"the query cannot be read: {error}", hint="name at most 100 fields") from error


encode_json = msgspec.json.Encoder().encode


def json_response(value: Any, status: int = 200, **headers: str) -> Response:
    """Return a value as JSON."""
    return Response(status, encode_json(value), headers={n.replace("_", "-"): v for n, v in headers.items()})
