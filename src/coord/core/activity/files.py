"""Log which files a session edited and read: each file once a minute, in a commit that is made anyway.

A session remembers what it logged, so whatever its hooks report again is not logged again. Of files that it
read it remembers only a checksum, because it reads many more than it edits.
"""

import re
from binascii import crc32
from collections.abc import Iterable

import msgspec

from coord.core.activity.schema import FileEdited, FileRead
from coord.core.sessions.schema import Session
from coord.core.transaction import Transaction

QUIET_MS = 60_000
"""The same file edited or read again by the same session within this time is not logged."""
NAMED_MAX = 64
"""How many files of one command are logged by name; the last one counts the others."""
KEPT_MAX = 128
"""How many of these a session remembers; a larger number could be logged again too early."""
FILE = "file:"
TEXT_CHARS_MAX = 4096
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_OUTSIDE = ("", ".", "..")


def log_edits(tx: Transaction, session: Session, files: Iterable[str], now: int) -> dict[str, int]:
    """Log the files that a call changed, each once a minute; return which were logged when."""
    logged = {file: at for file, at in session.edited.items() if 0 <= now - at < QUIET_MS}
    new = [file for file in dict.fromkeys(files) if is_file(file) and file not in logged]
    named, others = new[:NAMED_MAX], len(new[NAMED_MAX:])
    for file in named:
        uncounted = others if file is named[-1] else 0
        tx.emit(FileEdited(file, session.session_id, session.agent, uncounted, session.project))
    return dict([*logged.items(), *((file, now) for file in named)][-KEPT_MAX:])


def log_reads(tx: Transaction, session: Session, files: Iterable[str], now: int) -> Session:
    """Log the files that a session read, each once a minute; return the session, which remembers them."""
    recent = 0 <= now - session.read_ms < QUIET_MS
    logged = session.read if recent else ()
    new = {crc32(file.encode()): file for file in files if is_file(file)}
    named = [(number, file) for number, file in new.items() if number not in logged]
    others = len(named[NAMED_MAX:])
    named = named[:NAMED_MAX]
    if not named:
        return session
    last = named[-1][1]
    for _, file in named:
        tx.emit(FileRead(file, session.session_id, session.agent, others if file is last else 0))
    kept = (*logged, *(number for number, _ in named))[-KEPT_MAX:]
    return msgspec.structs.replace(session, read=kept, read_ms=session.read_ms if recent else now)


def is_file(text: str) -> bool:
    """Whether a text names a file of a repository, as locks name it.

    >>> is_file("file:src/app.py"), is_file("file:../app.py"), is_file("name:release")
    (True, False, False)
    """
    return (
        text.startswith(FILE)
        and len(text) <= TEXT_CHARS_MAX
        and _UNPRINTABLE.search(text) is None
        and not any(part in _OUTSIDE for part in text[len(FILE) :].split("/"))
    )
