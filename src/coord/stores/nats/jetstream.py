"""The requests of JetStream that the NATS store uses, and its errors.

There is one connection at a time; after an error the next call opens a new one. Each has a number, so that a
caller that relied on one notices a new one: its server may have been restarted and may have lost messages.
"""

import base64
import itertools
import os
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from coord.core.errors import (
    CoordError,
    Corrupt,
    LimitReached,
    Unavailable,
    Unknown,
    Unreachable,
    Unsupported,
)
from coord.stores.contract import RECORD_BYTES
from coord.stores.database import Reconnected
from coord.stores.migration import not_installed_error
from coord.stores.nats.address import Address
from coord.stores.nats.protocol import (
    AT_ONCE,
    UNREAD_BYTES,
    Denied,
    Lost,
    Message,
    NatsConnection,
    NoResponders,
    Question,
    ServerInfo,
)

SERVER_VERSION = (2, 9)
ROOM = 4096
"""An upper bound for the bytes of a message besides its payload."""
LEAST_PAYLOAD = 3 * RECORD_BYTES

WRONG_SEQUENCE = (10071, 10164)
NO_MESSAGE, NO_STREAM, STREAM_EXISTS, SUBJECTS_TAKEN = 10037, 10059, 10058, 10065
NO_JETSTREAM = (10039, 10076)
NO_LEADER = (10008, 10009)

API = "$JS.API."
_inherited: list[object] = []
"""The connections of the parent in a forked child: garbage collection would close them."""


class ApiError(msgspec.Struct, frozen=True):
    """An error of JetStream."""

    err_code: int = 0
    description: str = ""


class State(msgspec.Struct, frozen=True):
    """The state of a stream."""

    messages: int = 0
    first_seq: int = 0
    last_seq: int = 0


class Cluster(msgspec.Struct, frozen=True):
    """The leader of a stream in a cluster."""

    leader: str = ""


class StreamInfo(msgspec.Struct, frozen=True):
    """A stream as its leader knows it."""

    state: State = State()
    cluster: Cluster = Cluster()
    created: str = ""
    error: ApiError | None = None


class Stored(msgspec.Struct, frozen=True):
    """The reply to a published message."""

    seq: int = 0
    error: ApiError | None = None


class Found(msgspec.Struct, frozen=True):
    """A message of a stream."""

    seq: int = 0
    data: str = ""
    time: datetime | None = None


class GetAnswer(msgspec.Struct, frozen=True):
    """The reply to the request for a message."""

    message: Found | None = None
    error: ApiError | None = None


class Names(msgspec.Struct, frozen=True):
    """Some names of streams."""

    total: int = 0
    streams: list[str] | None = None
    error: ApiError | None = None


def refused(error: ApiError) -> CoordError:
    """Return the store error for an error of JetStream; nothing happened."""
    message = f"NATS: {error.description} ({error.err_code})"
    if error.err_code in NO_JETSTREAM:
        return Unsupported(message, hint="enable JetStream for the server and the account")
    if error.err_code == NO_STREAM:
        return Corrupt(message, hint="restore the stream from a copy; nothing was changed")
    return Unreachable(message) if error.err_code in NO_LEADER else Unavailable(message)


def translated(error: Exception, *, committing: bool = False) -> CoordError:
    """Return the store error for an error of the connection."""
    message = f"NATS: {error}"
    if isinstance(error, Lost):
        return Unknown(message) if committing else Unreachable(message)
    if isinstance(error, NoResponders) and str(error).startswith("$JS.API.DIRECT"):
        return Unavailable(message)
    if isinstance(error, NoResponders) and str(error).startswith(API):
        return Unsupported(f"NATS: no reply on {error}", hint="enable JetStream on the server")
    if isinstance(error, NoResponders):
        return Unavailable(f"NATS: no stream accepts {error}", hint="run coord doctor")
    return Unavailable(message, hint="grant the missing permission: see docs/how-to/use-nats.md")


class NatsServer:
    """A connection to a server; each request is one round trip."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.closed = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._connection: NatsConnection | None = None
        self._numbers = itertools.count(os.getpid() << 32)
        self.number = 0
        self.server_info = ServerInfo("")

    def _in_this_process(self) -> None:
        """After a fork, leave the parent's connection alone: the parent still uses it."""
        if self._process != os.getpid():
            _inherited.append(self._connection)
            self._begin()

    def connected(self) -> NatsConnection:
        """Return the connection; open a new one if it was lost, because nothing has been sent yet."""
        self._in_this_process()
        with self._lock:
            if self.closed:
                raise Unavailable("the database is closed")
            if self._connection is None or self._connection.is_gone():
                self._connection = None
                opened = self.open()
                self.number, self.server_info = next(self._numbers), opened.info
                self._connection = opened
            return self._connection

    def open(self) -> NatsConnection:
        """Return a new connection to a suitable server."""
        connection = self.address.connect()
        info = connection.info
        version = tuple(int(word) if word.isdigit() else 0 for word in info.version.split(".")[:2])
        if version < SERVER_VERSION:
            connection.close()
            raise Unsupported(f"{self.address.redacted} is NATS {info.version}", hint="use NATS 2.9 or newer")
        if info.max_payload < LEAST_PAYLOAD + ROOM:
            connection.close()
            raise Unsupported(
                f"{self.address.redacted} accepts messages of up to {info.max_payload} bytes",
                hint="set max_payload to 1MB or more",
            )
        return connection

    def ask(self, *questions: Question, committing: bool = False, on: int | None = None) -> list[Message]:
        """Return the replies; with `on`, only if the current connection has that number."""
        self._in_this_process()
        with self._lock:
            connection = self.connected()
            if on not in (None, self.number):
                raise Reconnected
            try:
                return connection.ask_all(list(questions))
            except BaseException as error:
                if not isinstance(error, NoResponders):
                    connection.close()
                    self._connection = None
                if isinstance(error, Lost | Denied | NoResponders):
                    raise translated(error, committing=committing) from error
                raise

    def close(self) -> None:
        """Close the connection for good."""
        self._in_this_process()
        with self._lock:
            self.closed = True
            if self._connection is not None:
                self._connection.close()

    # JetStream.

    def _api(self, question: str, stream: str, wanted: type[Any], **values: object) -> Any:
        subject = f"{API}{question}.{stream}" if stream else f"{API}{question}"
        (answer,) = self.ask(Question(subject, msgspec.json.encode(values) if values else b""))
        try:
            decoded = msgspec.json.decode(answer.payload, type=wanted)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"NATS: the answer to {subject} cannot be read: {error}") from error
        if decoded.error is not None and decoded.error.err_code in NO_LEADER:
            self._elsewhere()
        return decoded

    def _elsewhere(self) -> None:
        """Make the next call try another server of the cluster."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def info(self, stream: str) -> StreamInfo | None:
        """Return the state of a stream from its leader; None if the stream is missing."""
        info: StreamInfo = self._api("STREAM.INFO", stream, StreamInfo)
        if info.error is None:
            return info
        if info.error.err_code == NO_STREAM:
            return None
        raise refused(info.error)

    def create(self, stream: str, subjects: list[str], replicas: int) -> StreamInfo:
        """Create a stream that keeps everything, if it is missing."""
        info: StreamInfo = self._api(
            "STREAM.CREATE",
            stream,
            StreamInfo,
            name=stream,
            subjects=subjects,
            storage="file",
            retention="limits",
            discard="new",
            num_replicas=replicas,
            allow_direct=True,
        )
        if info.error is None:
            return info
        # Who creates the stream at the same time may have its subjects before it has its name.
        known = info.error.err_code in (STREAM_EXISTS, SUBJECTS_TAKEN)
        found = self.info(stream) if known else None
        if found is None:
            raise refused(info.error)
        return found

    def delete(self, stream: str) -> None:
        """Delete a stream with all its messages."""
        info: StreamInfo = self._api("STREAM.DELETE", stream, StreamInfo)
        if info.error is not None and info.error.err_code != NO_STREAM:
            raise refused(info.error)

    def streams(self, subject: str) -> list[str]:
        """Return the names of the streams of a subject."""
        found: list[str] = []
        while True:
            names: Names = self._api("STREAM.NAMES", "", Names, subject=subject, offset=len(found))
            if names.error is not None:
                raise refused(names.error)
            found += names.streams or []
            if not names.streams or len(found) >= names.total:
                return sorted(found)

    def purge(self, stream: str, **values: object) -> None:
        """Remove messages of a stream: those with `filter`, below `seq`, all but the newest `keep`."""
        info: StreamInfo = self._api("STREAM.PURGE", stream, StreamInfo, **values)
        if info.error is not None:
            raise refused(info.error)

    def put(
        self, subject: str, payload: bytes, headers: dict[str, str], *, on: int | None = None
    ) -> int | None:
        """Publish a message and return its sequence number; None if the expected sequence did not match."""
        room = self.server_info.max_payload - ROOM
        if len(payload) > room > 0:
            raise LimitReached(f"the entry has {len(payload)} bytes; this server accepts {room}")
        (answer,) = self.ask(Question(subject, payload, headers), committing=True, on=on)
        try:
            stored = msgspec.json.decode(answer.payload, type=Stored)
        except msgspec.MsgspecError as error:
            raise Unknown(f"NATS: the answer to {subject} cannot be read: {error}") from error
        if stored.error is None:
            return stored.seq
        if stored.error.err_code in WRONG_SEQUENCE:
            return None
        raise refused(stored.error)

    def last(self, stream: str, subject: str) -> tuple[int, bytes] | None:
        """Return sequence number and content of the newest message of a subject; None if there is none."""
        answer: GetAnswer = self._api("STREAM.MSG.GET", stream, GetAnswer, last_by_subj=subject)
        if answer.error is not None and answer.error.err_code == NO_STREAM:
            raise not_installed_error(self.address.redacted)
        return _content(answer)

    def get(self, stream: str, sequence: int) -> bytes | None:
        """Return the message at a sequence number from the leader; None if there is none."""
        found = _content(self._api("STREAM.MSG.GET", stream, GetAnswer, seq=sequence))
        return found[1] if found else None

    def clock_ms(self, stream: str, subject: str) -> int:
        """Return the server's clock: the time of a message that is published for it."""
        self.put(subject, b"", {})
        answer: GetAnswer = self._api("STREAM.MSG.GET", stream, GetAnswer, last_by_subj=subject)
        self.purge(stream, filter=subject, keep=1)
        _content(answer)
        time = answer.message.time if answer.message else None
        return int(time.timestamp() * 1000) if time else 0

    def get_all(self, stream: str, sequences: Sequence[int]) -> list[bytes | None]:
        """Return the messages at sequence numbers; None for a missing one."""
        subject = f"{API}DIRECT.GET.{stream}"
        found: list[bytes | None] = []
        at_once = min(AT_ONCE, UNREAD_BYTES // max(1, self.server_info.max_payload) or 1)
        for first in range(0, len(sequences), at_once):
            some = sequences[first : first + at_once]
            answers = self.ask(*(Question(subject, b'{"seq":%d}' % sequence) for sequence in some))
            for sequence, answer in zip(some, answers, strict=True):
                if answer.status == 0:
                    found.append(answer.payload)
                else:  # any replica may answer; only the leader knows that it is missing
                    found.append(self.get(stream, sequence))
        return found

    @property
    def identity(self) -> tuple[str, str]:
        """The name and run id of the connected server; the run id changes with each start."""
        return self.server_info.server_name or self.server_info.server_id, self.server_info.server_id

    def publish(self, subject: str, payload: bytes) -> None:
        """Publish without a reply; nobody depends on it."""
        self._in_this_process()
        with self._lock:
            if self._connection is not None:
                try:
                    self._connection.publish(subject, payload)
                except Lost:
                    self._connection = None


def _content(answer: GetAnswer) -> tuple[int, bytes] | None:
    if answer.message is not None:
        return answer.message.seq, base64.b64decode(answer.message.data)
    error = answer.error or ApiError(description="an answer without a message")
    if error.err_code == NO_MESSAGE:
        return None
    raise refused(error)
