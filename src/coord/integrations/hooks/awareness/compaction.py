"""Notice that Gemini CLI has compacted a context; its event `PreCompress` comes before each turn.

Its transcript has the number of tokens that the model was given for each answer. A compaction is the only
thing that makes this number fall to less than half. Only the end of the file is read.
"""

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from coord.core.brief.commands import BeginEpoch
from coord.core.errors import CoordError

if TYPE_CHECKING:
    from coord.sdk.client.connection import Connection

TAIL_BYTES = 64 * 1024
TOKENS_MIN = 2_000
"""A context with fewer tokens is not compacted."""
_ANSWER = re.compile(rb'^\{"id":"([^"]{1,64})".*?"type":"gemini".*?"tokens":\{"input":(\d{1,12})')


def note_compaction(connection: "Connection", transcript: str) -> None:
    """Begin an epoch of the session if its transcript shows a compaction that it does not know yet."""
    mark = compacted_before(transcript)
    if mark:
        with suppress(CoordError):  # an agent works without it
            connection.call(BeginEpoch(connection.caller, "compact", mark))


def compacted_before(transcript: str) -> str:
    """Return the id of the newest answer if the context was compacted right before it; else ""."""
    answers: dict[bytes, int] = {}
    try:
        with open(transcript, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            tail = file.read(TAIL_BYTES)
    except OSError:
        return ""
    for line in tail.split(b"\n"):
        if found := _ANSWER.match(line):
            answers[found[1]] = int(found[2])
    before, last = ([0, 0, *answers.values()])[-2:]
    compacted = before >= TOKENS_MIN and 2 * last < before
    return next(reversed(answers)).decode("utf-8", "replace") if compacted else ""
