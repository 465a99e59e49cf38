"""Who is at the other end of a connection, as the kernel says."""

import asyncio
import socket
import struct
from itertools import count
from typing import Any

from coord.transports.hub.request import Peer

_CREDENTIALS = struct.Struct("3i")
_NUMBERS = count(1)


def peer_of(transport: asyncio.BaseTransport) -> Peer:
    """Return the process behind a unix socket, or the address behind a TCP connection."""
    found: Any = transport.get_extra_info("socket")
    if found is None or found.family != socket.AF_UNIX:
        address, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        if not address or not own:
            return Peer()
        ports, fd = (address[1], own[1]), -1 if found is None else found.fileno()
        return Peer(False, 0, -1, str(address[0]), *ports, connection=next(_NUMBERS), fd=fd)
    pid, uid, _ = _CREDENTIALS.unpack(
        found.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return Peer(unix=True, pid=pid, uid=uid)
