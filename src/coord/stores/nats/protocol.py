"""The part of the NATS protocol that the store needs: one socket, requests and replies in order.

The official client is asyncio: through a separate thread a reply takes four times as long, and importing
it costs every command more than all the rest (see docs/decisions/0031-nats.md). What is needed of the
protocol is a dozen lines of text, which have not changed since NATS 2.2.
"""

import contextlib
import math
import os
import socket
import time
from typing import NamedTuple

import msgspec

CONNECT_S = 5.0
ANSWER_S = 5.0
AT_ONCE = 64
"""The requests that are sent before their replies are read."""
UNREAD_BYTES = 32 * 1024 * 1024
"""The replies that may be pending: a server closes a connection above `max_pending`, 64 MB."""

_RECEIVE = 1 << 16
"""Room for more than 128 KiB is asked of the system each time, which takes longer than to receive."""
_BUFFERED_BYTES_MAX = 1 << 27
"""More than any message that a server accepts: a peer that sends more is not a NATS server."""
_NO_RESPONDERS = 503
_TOO_LARGE = "Maximum Payload"
_REFUSALS = ("Permissions Violation", "Authorization", "Authentication", _TOO_LARGE, "User")
"""The start of errors that mean a refusal; other errors may end the connection at any time."""


class Lost(Exception):
    """The connection was lost, or no reply came in time; a sent request may have been executed."""


class Denied(Exception):
    """The server refused the request; nothing happened."""


class NoResponders(Exception):
    """Nobody listens on the subject: no such stream, or no JetStream; nothing happened."""


class ServerInfo(msgspec.Struct, frozen=True):
    """The INFO of a server."""

    server_id: str
    server_name: str = ""
    version: str = ""
    max_payload: int = 0
    tls_required: bool = False
    headers: bool = False


class Login(NamedTuple):
    """The login and TLS settings of a connection."""

    user: str = ""
    password: str = ""
    token: str = ""
    tls: bool = False
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""


class Message(NamedTuple):
    """A received message; `status` is the status of its headers, or 0."""

    subject: str
    status: int
    payload: bytes


class Question(NamedTuple):
    """A request."""

    subject: str
    payload: bytes = b""
    headers: dict[str, str] = {}


_decode_info = msgspec.json.Decoder(ServerInfo).decode


class NatsConnection:
    """One connection. After any error it is closed and cannot be used again."""

    def __init__(self, host: str, port: int, login: Login) -> None:
        self._buffer = bytearray()
        self._inbox = f"_INBOX.{os.urandom(8).hex()}"
        self._asked = 0
        self._subscriptions = 1
        self._socket = socket.create_connection((host, port), CONNECT_S)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self.info = self._greet(host, login)
            self._socket.settimeout(ANSWER_S)
        except BaseException:
            self.close()
            raise

    def _greet(self, host: str, login: Login) -> ServerInfo:
        line = self._line()
        try:
            info = _decode_info(line.removeprefix(b"INFO "))
        except msgspec.MsgspecError as error:
            raise Denied("the peer is not a NATS server") from error
        if not info.headers:
            raise Denied(f"NATS {info.version} does not support headers; use 2.9 or newer")
        if login.tls or info.tls_required:
            self._encrypt(host, login)
        words: dict[str, object] = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "lang": "python",
            "version": "1",
            "protocol": 1,
            "name": "coord",
        }
        if login.user:
            words |= {"user": login.user, "pass": login.password}
        if login.token:
            words |= {"auth_token": login.token}
        hello = b"CONNECT %b\r\nSUB %b.* 1\r\nPING\r\n" % (msgspec.json.encode(words), self._inbox.encode())
        self._socket.sendall(hello)
        while self._line() != b"PONG":
            pass
        return info

    def _encrypt(self, host: str, login: Login) -> None:
        import ssl

        if self._buffer:  # it was sent unencrypted and would be read as encrypted data
            raise Denied("the server sent data before the encryption started")
        try:
            context = ssl.create_default_context(cafile=login.tls_ca or None)
            if login.tls_cert:
                context.load_cert_chain(login.tls_cert, login.tls_key or None)
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        except (ConnectionError, TimeoutError, ssl.SSLEOFError) as error:
            raise Lost(f"the connection is lost: {error}") from error
        except (ssl.SSLError, OSError) as error:
            raise Denied(f"no encrypted connection: {error}") from error

    # Questions.

    def ask(self, question: Question) -> Message:
        """Return the reply to a request."""
        return self.ask_all([question])[0]

    def ask_all(self, questions: list[Question]) -> list[Message]:
        """Return the replies to independent requests."""
        asked = {f"{self._inbox}.{self._asked + n}": each for n, each in enumerate(questions)}
        self._asked += len(asked)
        self._send(b"".join(_sent(each, inbox) for inbox, each in asked.items()))
        answers: dict[str, Message] = {}
        deadline = time.monotonic() + ANSWER_S
        while len(answers) < len(asked):
            message = self._answer(questions, deadline)
            if message.subject in asked:
                deadline = time.monotonic() + ANSWER_S
                if message.status == _NO_RESPONDERS:
                    raise NoResponders(asked[message.subject].subject)
                answers[message.subject] = message
            elif time.monotonic() > deadline:
                raise Lost(f"no answer within {ANSWER_S:g} s")
        return [answers[inbox] for inbox in asked]

    def _answer(self, questions: list[Question], deadline: float) -> Message:
        """Return the next message; a refusal of another request does not concern these."""
        try:
            return self._message(deadline)
        except Denied as error:
            text = str(error)
            if text.startswith(_TOO_LARGE) or any(f'"{each.subject}"' in text for each in questions):
                raise
            raise Lost(text) from error

    def publish(self, subject: str, payload: bytes) -> None:
        """Publish a message without a reply."""
        self._send(_sent(Question(subject, payload), ""))

    def subscribe(self, subject: str) -> None:
        """Subscribe to a subject."""
        self._subscriptions += 1
        self._send(b"SUB %b %d\r\n" % (subject.encode(), self._subscriptions))

    def hear(self, seconds: float) -> Message | None:
        """Return the next message of a subscription; None if there is none within `seconds`."""
        deadline = time.monotonic() + seconds
        while not self._has_message():
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._socket.settimeout(left)
            try:
                self._fill()
            except TimeoutError:
                return None
            finally:
                with contextlib.suppress(OSError):
                    self._socket.settimeout(ANSWER_S)
        return self._message()

    def is_gone(self) -> bool:
        """Return whether the server closed the connection; other received data is processed."""
        try:
            self._socket.settimeout(0)
            try:
                while True:
                    self._fill()
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                if "ssl" not in type(error).__module__ or "WantRead" not in type(error).__name__:
                    raise
            self._socket.settimeout(ANSWER_S)
            while self._has_message():
                self._message()
        except (Lost, Denied, OSError):
            self.close()
            return True
        return False

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    # The wire.

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Lost(f"the connection is lost: {error}") from error

    def _fill(self) -> None:
        data = self._socket.recv(_RECEIVE)
        if not data:
            raise Lost("the server closed the connection")
        self._buffer += data
        if len(self._buffer) > _BUFFERED_BYTES_MAX:
            raise Lost("the server sends more than the size of a message")

    def _receive(self) -> None:
        try:
            self._fill()
        except TimeoutError as error:
            raise Lost(f"no answer within {self._socket.gettimeout():g} s") from error
        except OSError as error:
            raise Lost(f"the connection is lost: {error}") from error

    def _has_message(self) -> bool:
        """Return whether the next line was received; PING, PONG and +OK are handled here."""
        while (end := self._buffer.find(b"\r\n")) >= 0:
            if self._buffer.startswith((b"MSG", b"HMSG")):
                return True
            self._formality(bytes(self._buffer[:end]))
            del self._buffer[: end + 2]
        return False

    def _formality(self, line: bytes) -> None:
        if line == b"PING":
            self._send(b"PONG\r\n")
        elif line.startswith(b"-ERR"):
            text = line[4:].decode(errors="replace").strip(" '")
            refused = text.startswith(_REFUSALS) and not text.endswith("Timeout")  # a timeout is no refusal
            raise Denied(text) if refused else Lost(text)

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            self._receive()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        self._formality(line)
        return line

    def _message(self, deadline: float = math.inf) -> Message:
        late = False
        while not self._has_message():
            if late:  # it sends other messages, but no reply
                raise Lost(f"no answer within {ANSWER_S:g} s")
            self._receive()
            late = time.monotonic() > deadline
        try:
            return self._read_message()
        except (ValueError, IndexError) as error:
            raise Lost(f"this is not a NATS message: {error}") from error

    def _read_message(self) -> Message:
        kind, subject, _, *rest = self._line().decode().split()
        size = int(rest[-1])
        while len(self._buffer) < size + 2:
            self._receive()
        content = bytes(self._buffer[:size])
        del self._buffer[: size + 2]
        if kind == "MSG":
            return Message(subject, 0, content)
        headers, payload = content[: int(rest[-2])], content[int(rest[-2]) :]
        words = headers.partition(b"\r\n")[0].split()
        return Message(subject, int(words[1]) if len(words) > 1 else 0, payload)


def _sent(question: Question, reply: str) -> bytes:
    subject, payload, headers = question
    if not headers:
        return b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), reply.encode(), len(payload), payload)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = b"NATS/1.0\r\n%b\r\n" % lines.encode()
    sizes = (len(head), len(head) + len(payload))
    return b"HPUB %b %b %d %d\r\n%b%b\r\n" % (subject.encode(), reply.encode(), *sizes, head, payload)
