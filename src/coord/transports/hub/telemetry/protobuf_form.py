"""OTLP as protobuf: a reader of the few fields that we count (decision 0077).

Messages are walked to the fixed depth of OTLP, never deeper, and every field counts towards `FIELDS_MAX`. So
a hostile body costs a bounded time, whatever it nests.
"""

import struct
from collections.abc import Iterator

from coord.transports.hub.telemetry.otlp import (
    METRICS,
    RECORDS_MAX,
    TEXT_CHARS_MAX,
    WANTED,
    Point,
    Record,
    Value,
    too_many,
    unreadable,
)

FIELDS_MAX = 400_000
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
VARINT_BYTES_MAX = 10
Field = tuple[int, int, int, memoryview]
"""Number, wire type, and the value: a number, or bytes."""
_EMPTY = memoryview(b"")


class _Reader:
    """Walks over the fields of messages; the budget is shared by all of a request."""

    def __init__(self) -> None:
        self._left = FIELDS_MAX

    def fields(self, data: memoryview) -> Iterator[Field]:
        """Yield the fields of a message."""
        position, end = 0, len(data)
        while position < end:
            self._left -= 1
            if self._left < 0:
                raise unreadable(f"it has more than {FIELDS_MAX} fields")
            tag, position = _varint(data, position)
            number, kind = tag >> 3, tag & 7
            if kind == VARINT:
                value, position = _varint(data, position)
                yield number, kind, value, _EMPTY
                continue
            if kind == LENGTH:
                size, position = _varint(data, position)
            elif kind in (FIXED64, FIXED32):
                size = 8 if kind == FIXED64 else 4
            else:
                raise unreadable(f"wire type {kind}")
            part = data[position : position + size]
            if len(part) != size:
                raise unreadable("it ends inside of a field")
            position += size
            fixed = 0 if kind == LENGTH else int.from_bytes(part, "little")
            yield number, kind, fixed, part

    def messages(self, data: memoryview, wanted: int) -> Iterator[memoryview]:
        """Yield the messages inside of another one that have a field number."""
        for number, kind, _, part in self.fields(data):
            if number == wanted and kind == LENGTH:
                yield part

    def attributes(self, data: memoryview, wanted: int) -> dict[str, Value]:
        """Return the attributes of a message that we count."""
        found: dict[str, Value] = {}
        for pair in self.messages(data, wanted):
            key, value = "", None
            for number, kind, _, part in self.fields(pair):
                if number == 1 and kind == LENGTH and len(part) <= TEXT_CHARS_MAX:
                    key = str(part, "utf-8", "replace")
                elif number == 2 and kind == LENGTH and key in WANTED:
                    value = self._value(part)
            if key in WANTED and value is not None:
                found[key] = value
        return found

    def _value(self, data: memoryview) -> Value | None:
        found: Value | None = None
        for number, kind, value, part in self.fields(data):
            if number == 1 and kind == LENGTH:
                found = str(part[: 4 * TEXT_CHARS_MAX], "utf-8", "replace")[:TEXT_CHARS_MAX]
            elif number == 3 and kind == VARINT:
                found = _signed(value)
            elif number == 4 and kind == FIXED64:
                found = _double(part)
        return found


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(VARINT_BYTES_MAX):
        if position >= len(data):
            raise unreadable("it ends inside of a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value & (2**64 - 1), position
    raise unreadable("a number has more than 64 bits")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _double(part: memoryview) -> float:
    number: float = struct.unpack("<d", part)[0]
    return number


def read_logs(body: bytes) -> list[Record]:
    """Return the log records of a request, without anything that is not counted."""
    reader = _Reader()
    found: list[Record] = []
    for resource in reader.messages(memoryview(body), 1):
        shared = _resource(reader, resource)
        for scope in reader.messages(resource, 2):
            for record in reader.messages(scope, 2):
                times = {number: value for number, kind, value, _ in reader.fields(record) if kind == FIXED64}
                attributes = {**shared, **reader.attributes(record, 6)}
                found.append(Record(attributes, times.get(1, 0), times.get(11, 0)))
                if len(found) > RECORDS_MAX:
                    raise too_many()
    return found


def read_metrics(body: bytes) -> list[Point]:
    """Return the points of the counters that we know."""
    reader = _Reader()
    found: list[Point] = []
    for resource in reader.messages(memoryview(body), 1):
        shared = _resource(reader, resource)
        for scope in reader.messages(resource, 2):
            for metric in reader.messages(scope, 2):
                name = next((str(each[:99], "utf-8", "replace") for each in reader.messages(metric, 1)), "")
                for counter in reader.messages(metric, 7) if name in METRICS else ():
                    found += _points(reader, name, counter, shared)
                if len(found) > RECORDS_MAX:
                    raise too_many()
    return found


def _points(reader: _Reader, name: str, counter: memoryview, shared: dict[str, Value]) -> Iterator[Point]:
    numbers = {number: value for number, kind, value, _ in reader.fields(counter) if kind == VARINT}
    for point in reader.messages(counter, 1):
        fixed: dict[int, int] = {}
        value = float("nan")
        for number, kind, whole, part in reader.fields(point):
            if kind != FIXED64:
                continue
            fixed[number] = whole
            if number == 4:
                value = _double(part)
            elif number == 6:
                value = float(_signed(whole))
        attributes = {**shared, **reader.attributes(point, 7)}
        yield Point(name, attributes, value, fixed.get(2, 0), fixed.get(3, 0), numbers.get(2, 0))


def _resource(reader: _Reader, data: memoryview) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for resource in reader.messages(data, 1):
        found.update(reader.attributes(resource, 1))
    return found
