"""A relay between a client and a server, for losing answers and counting questions."""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


class TcpRelay:
    """Passes bytes on to another port, until a test wants something else."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._wires: dict[socket.socket, socket.socket] = {}
        self._from_client: set[socket.socket] = set()
        self._end, self._ended = socket.socketpair()
        self._cut = threading.Event()
        self.swallowing = False
        self.swallowed = threading.Event()
        self.questions = self.connections = 0
        self._thread.start()

    def url(self, url: str) -> str:
        """Return the same url by way of this relay."""
        parts = urlsplit(url)
        name = parts.netloc.rpartition(":")[0]
        return parts._replace(netloc=f"{name}:{self._door.getsockname()[1]}").geturl()

    def swallow_answers(self) -> None:
        """From now on the server's answers get lost."""
        self.swallowing = True

    def cut(self) -> None:
        """Close all connections; new ones work again."""
        self._cut.clear()
        self._end.send(b"c")
        self._cut.wait(10)
        self.swallowing = False

    def close(self) -> None:
        self._end.send(b"e")
        self._thread.join()
        for wire in (*self._wires, self._door, self._end, self._ended):
            wire.close()

    def _run(self) -> None:
        while True:
            readable, _, _ = select.select([self._door, self._ended, *self._wires], [], [])
            if self._ended in readable:
                if self._ended.recv(1) == b"e":
                    return
                for wire in self._wires:
                    wire.close()
                self._wires.clear()
                self._cut.set()
            elif self._door in readable:
                client, server = self._door.accept()[0], socket.create_connection(self._server)
                self._wires |= {client: server, server: client}
                self._from_client.add(client)
                self.connections += 1
            else:
                for wire in readable:
                    self._pass_on(wire)

    def _pass_on(self, wire: socket.socket) -> None:
        other = self._wires.get(wire)
        if other is None:
            return
        data = b""
        with contextlib.suppress(OSError):
            data = wire.recv(1 << 16)
        if not data:
            for end in (wire, other):
                del self._wires[end]
                end.close()
        elif wire in self._from_client:
            self.questions += 1
            other.sendall(data)
        elif self.swallowing:
            self.swallowed.set()
        else:
            other.sendall(data)


@contextlib.contextmanager
def relaying(port: int) -> Iterator[TcpRelay]:
    """Run a relay to a port of this machine."""
    relay = TcpRelay(port)
    try:
        yield relay
    finally:
        relay.close()
