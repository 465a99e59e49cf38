"""Who is at the other end of a connection, as the kernel says."""

import asyncio
import socket
import struct
from typing import Any

from coord.transports.hub.request import Peer

_CREDENTIALS = struct.Struct("3i")


def peer_of(transport: asyncio.BaseTransport) -> Peer:
    """Return the process behind a unix socket, or the address behind a TCP connection."""
    found: Any = transport.get_extra_info("socket")
    if found is None or found.family != socket.AF_UNIX:
        address = transport.get_extra_info("peername")
        return Peer(address=str(address[0]) if address else "")
    pid, uid, _ = _CREDENTIALS.unpack(
        found.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return Peer(unix=True, pid=pid, uid=uid)
