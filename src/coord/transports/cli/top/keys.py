"""Make keys of the bytes that a terminal sends: characters, names of other keys, and pasted texts."""

import codecs
import re
from typing import NamedTuple

PASTED_MAX = 2_000
"""The most characters of a pasted text that are kept."""
ESCAPE = "\x1b"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~])")
_BEGINNING = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?")
_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"
_NAMES = {
    **dict.fromkeys(("\x1b[A", "\x1bOA"), "up"),
    **dict.fromkeys(("\x1b[B", "\x1bOB"), "down"),
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~"), "home"),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~"), "end"),
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[Z": "back tab",
    "\x02": "page up",
    "\x06": "page down",
    "\x04": "page down",
    "\x15": "clear",
    "\x0c": "redraw",
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
}


class Key(NamedTuple):
    """A key by its name, or the character it types; `text` is what was typed or pasted."""

    name: str
    text: str = ""


class Keys:
    """Collects bytes until they are keys: one read may end in the middle of a character or a sequence."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._left = ""

    @property
    def unfinished(self) -> bool:
        """Whether the bytes so far may be the beginning of a sequence, or the key Escape."""
        return self._left.startswith(ESCAPE) and not self._left.startswith(_PASTE)

    def feed(self, data: bytes) -> list[Key]:
        """Return the keys that are complete now."""
        self._left += self._decoder.decode(data)
        found: list[Key] = []
        while self._left:
            key = self._next()
            if key is None:
                break
            found += [key] if key.name else []
        return found

    def flush(self) -> list[Key]:
        """Return Escape if nothing followed it; drop the beginning of a sequence without its end."""
        left, self._left = self._left, ""
        return [Key("escape")] if left == ESCAPE else []

    def _next(self) -> Key | None:
        """Return the next key, without a name if it means nothing; None if it is not complete."""
        left = self._left
        if left.startswith(_PASTE):
            text, end, rest = left[len(_PASTE) :].partition(_PASTE_END)
            if not end:
                # What follows may be the beginning of the end: keep it.
                self._left = _PASTE + text[:PASTED_MAX] + text[PASTED_MAX:][-len(_PASTE_END) :]
                return None
            self._left = rest
            return Key("paste", _one_line(text[:PASTED_MAX]))
        if not left.startswith(ESCAPE):
            self._left = left[1:]
            return _plain(left[0])
        sequence = _SEQUENCE.match(left)
        if sequence is not None:
            self._left = left[sequence.end() :]
            return Key(_NAMES.get(sequence[0], ""))
        if _BEGINNING.fullmatch(left):
            return None
        # Escape and another key, as Alt sends them: not a key of ours, and no Escape either.
        self._left = left[2:] if left[1] != ESCAPE else left[1:]
        return Key("" if left[1] != ESCAPE else "escape")


def _plain(character: str) -> Key:
    if character in _NAMES:
        return Key(_NAMES[character])
    return Key(character, character) if character.isprintable() else Key("")


def _one_line(text: str) -> str:
    return "".join(each for each in " ".join(text.split()) if each.isprintable())
