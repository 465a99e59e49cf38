"""Expand a word of a command line as bash does: braces, `~`, variables, file patterns, quotes.

A word is unknown (None) if its value depends on the run: command substitution, a variable that the line
does not set, an operator such as `${x%.py}`.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

BRACES_MAX = 256
MATCHES_MAX = 4096
SCANNED_MAX = 20_000
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9]|[@*#?$!-]")
_DEFAULT = re.compile(r"([A-Za-z_]\w*|[0-9])(?::?-([^$`'\"\\{}]*))?\Z")
_SEQUENCE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\Z|([A-Za-z])\.\.([A-Za-z])\Z")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*=(?=~)")
_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
GLOB = "*?["


class Unknown(Exception):
    """The value depends on the run."""


class Values(NamedTuple):
    """What a word may refer to: variables, positional arguments, the folder, and how to list a folder."""

    variables: Mapping[str, str | None]
    arguments: tuple[str, ...] | None
    cwd: str | None
    list_folder: Callable[[str], Iterator[tuple[str, bool]]]


class _Char(NamedTuple):
    """A character of a word; a quoted one has no special meaning. An empty text keeps an empty word."""

    text: str
    quoted: bool
    splits: bool = False


def expand(raw: str, values: Values) -> list[str] | None:
    """Return the words that a word becomes; None if that depends on the run."""
    try:
        found: list[str] = []
        for text in _braces(raw):
            for chars in _fields(_characters(text, values)):
                found += _matches(chars, values)
                if len(found) > MATCHES_MAX:
                    return None
    except Unknown:
        return None
    return found


def expand_text(raw: str, values: Values) -> str | None:
    """Return the value of a word that is neither split nor matched with files, as in an assignment."""
    try:
        return "".join(char.text for char in _characters(raw, values))
    except Unknown:
        return None


def _braces(raw: str) -> list[str]:
    """Return the words of `a{b,c}` and `a{1..3}`, still quoted."""
    done, todo = list[str](), [raw]
    while todo:
        text = todo.pop()
        found = _first_brace(text)
        if found is None:
            done.append(text)
        else:
            start, end, parts = found
            todo += [f"{text[:start]}{part}{text[end:]}" for part in reversed(parts)]
        if len(todo) + len(done) > BRACES_MAX:
            raise Unknown
    return done


def _first_brace(text: str) -> tuple[int, int, list[str]] | None:
    """Return where the first brace that expands starts and ends, and its parts."""
    opened: list[tuple[int, list[int]]] = []
    closed: list[tuple[int, int, list[str]]] = []
    for at, char in _unquoted(text):
        if char == "{":
            opened.append((at, []))
        elif char == "," and opened:
            opened[-1][1].append(at)
        elif char == "}" and opened:
            start, commas = opened.pop()
            if start and text[start - 1] == "$":
                continue
            if commas:
                ends = [start, *commas, at]
                parts = [text[a + 1 : b] for a, b in pairwise(ends)]
                closed.append((start, at + 1, parts))
            elif sequence := _sequence(text[start + 1 : at]):
                closed.append((start, at + 1, sequence))
    return min(closed) if closed else None


def _sequence(text: str) -> list[str]:
    found = _SEQUENCE.match(text)
    if not found:
        return []
    if found[4]:
        first, last, step = ord(found[4]), ord(found[5]), 1
    else:
        first, last, step = int(found[1]), int(found[2]), abs(int(found[3] or 1)) or 1
    if abs(last - first) // step > BRACES_MAX:
        raise Unknown
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    if found[4]:
        return [chr(number) for number in numbers]
    width = max((len(each) for each in found.groups()[:2] if each.lstrip("-").startswith("0")), default=0)
    return [str(number).zfill(width if width > 1 else 0) for number in numbers]


def _unquoted(text: str) -> Iterator[tuple[int, str]]:
    """Yield the characters that are not quoted, and where they are."""
    quote, at = "", 0
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            yield at, char
        at += 1


def _characters(raw: str, values: Values) -> list[_Char]:
    """Return a word without quotes, with the values of its variables."""
    found: list[_Char] = []
    assigns = _ASSIGNS.match(raw)
    at = assigns.end() if assigns else 0
    found += [_Char(char, quoted=True) for char in raw[:at]]
    if raw[at : at + 1] == "~":
        end = next((end for end in range(at, len(raw)) if raw[end] in "/:"), len(raw))
        home = _home(raw[at:end], values)
        if home is not None:
            found += [_Char(char, quoted=True) for char in home]
            at = end
    while at < len(raw):
        at = _character(raw, at, values, found, inside="")
    return found


def _character(raw: str, at: int, values: Values, found: list[_Char], inside: str) -> int:
    """Read what starts here, and return where the rest starts; `inside` is the open quote."""
    char, following = raw[at], raw[at + 1 : at + 2]
    if char == "\\":
        if following == "\n":
            return at + 2
        if inside and following not in ("$", "`", '"', "\\"):
            found.append(_Char("\\", quoted=True))
            return at + 1
        found.append(_Char(following, quoted=True))
        return at + 2
    if char == "`" or (char in "<>" and not inside) or (char in "()" and not inside):
        raise Unknown
    if char == "$":
        return _dollar(raw, at, values, found, inside)
    if char == '"' and not inside:
        found.append(_Char("", quoted=True))
        at += 1
        while raw[at : at + 1] != '"':
            if at >= len(raw):
                raise Unknown
            at = _character(raw, at, values, found, inside='"')
        return at + 1
    if char == "'" and not inside:
        end = raw.find("'", at + 1)
        if end < 0:
            raise Unknown
        found += [_Char("", quoted=True), *(_Char(each, quoted=True) for each in raw[at + 1 : end])]
        return end + 1
    found.append(_Char(char, quoted=bool(inside)))
    return at + 1


def _dollar(raw: str, at: int, values: Values, found: list[_Char], inside: str) -> int:
    following = raw[at + 1 : at + 2]
    if following == "'" and not inside:
        end = at + 2
        while raw[end : end + 1] not in ("'", ""):
            end += 2 if raw[end] == "\\" else 1
        text = _ANSI.sub(_unescape, raw[at + 2 : end])
        found += [_Char("", quoted=True), *(_Char(each, quoted=True) for each in text)]
        return end + 1
    if following == '"' and not inside:
        return at + 1
    if following == "(":
        raise Unknown
    if following == "{":
        end = raw.find("}", at)
        named = _DEFAULT.match(raw[at + 2 : end]) if end > 0 else None
        if not named:
            raise Unknown
        name, otherwise, end = named[1], named[2], end + 1
    else:
        plain = _NAME.match(raw, at + 1)
        if not plain:
            found.append(_Char("$", quoted=True))
            return at + 1
        name, otherwise, end = plain[0], None, plain.end()
    for number, text in enumerate(_values(name, otherwise, values, inside)):
        if number:
            found.append(_Char(" ", quoted=False, splits=True))
        found += [_Char(each, bool(inside), not inside and each in " \t\n") for each in text]
    return end


def _values(name: str, otherwise: str | None, values: Values, inside: str) -> list[str]:
    """Return the value of a variable; `"$@"` has several."""
    if name in ("@", "*"):
        if values.arguments is None:
            raise Unknown
        return [" ".join(values.arguments)] if name == "*" and inside else list(values.arguments)
    if name == "PWD" and values.variables.get("PWD", "") == "":
        value = values.cwd
    elif name.isdigit():
        if values.arguments is None or name == "0":
            raise Unknown
        number = int(name)
        value = values.arguments[number - 1] if number <= len(values.arguments) else ""
    else:
        value = values.variables.get(name)
    if value is None or (not inside and values.variables.get("IFS", "") != "" and value):
        raise Unknown
    return [value or otherwise or ""]


def _unescape(found: re.Match[str]) -> str:
    text = found[1]
    if text[0] in "xuU" and len(text) > 1:
        return chr(min(int(text[1:], 16), 0x10FFFF))
    if text[0] in "01234567":
        return chr(int(text, 8) & 0xFF)
    if text[0] == "c" and len(text) > 1:
        raise Unknown
    return _ESCAPES.get(text, text if text in "\\'\"?" else f"\\{text}")


def _home(tilde: str, values: Values) -> str | None:
    """Return the folder that `~`, `~name`, `~+` means; None if the shell leaves the text as it is."""
    if any(char in tilde for char in "'\"\\$`"):
        return None
    if tilde == "~":
        home = values.variables.get("HOME")
        if not home:
            raise Unknown
        return home
    if tilde in ("~+", "~-"):
        raise Unknown
    import pwd

    try:
        return pwd.getpwnam(tilde[1:]).pw_dir
    except KeyError:
        return None


def _fields(chars: list[_Char]) -> list[list[_Char]]:
    """Return the fields that unquoted spaces in the values of variables make."""
    fields: list[list[_Char]] = [[]]
    for char in chars:
        if char.splits:
            fields.append([])
        else:
            fields[-1].append(char)
    return [field for field in fields if field]


def _matches(chars: list[_Char], values: Values) -> list[str]:
    """Return the files that a pattern matches; the text itself if it is none or matches nothing."""
    text = "".join(char.text for char in chars)
    if not any(char.text in GLOB and char.text and not char.quoted for char in chars):
        return [text]
    if values.cwd is None and not text.startswith("/"):
        raise Unknown
    segments: list[list[_Char]] = [[]]
    for char in chars:
        if char.text == "/":
            segments.append([])
        else:
            segments[-1].append(char)
    found = _walk(segments, "/" if text.startswith("/") else "", values, [SCANNED_MAX])
    return sorted(found) or [text]


def _walk(segments: list[list[_Char]], prefix: str, values: Values, left: list[int]) -> list[str]:
    """Return the existing paths that match these segments below a prefix."""
    if not segments:
        return [prefix]
    first, rest = segments[0], segments[1:]
    text = "".join(char.text for char in first)
    if not text:
        return _walk(rest, prefix, values, left) if rest else [prefix]
    joined = "/" if rest else ""
    if not any(char.text in GLOB and not char.quoted for char in first if char.text):
        path = f"{prefix}{text}"
        if rest:
            return _walk(rest, f"{path}/", values, left)
        return [path] if os.path.lexists(os.path.join(values.cwd or "/", path)) else []
    pattern, deep = _pattern(first), text == "**"
    found: list[str] = []
    for name, folder in values.list_folder(os.path.join(values.cwd or "/", prefix)):
        left[0] -= 1
        if left[0] < 0:
            raise Unknown
        if not (name.startswith(".") and not text.startswith(".")) and pattern.fullmatch(name):
            if not rest or folder:
                found += _walk(rest, f"{prefix}{name}{joined}", values, left)
            if deep and folder:  # zsh, and bash with globstar
                found += _walk(segments, f"{prefix}{name}/", values, left)
    if deep and rest:
        found += _walk(rest, prefix, values, left)
    return list(dict.fromkeys(found))


def _pattern(chars: list[_Char]) -> re.Pattern[str]:
    """Return a pattern of one segment as a regular expression."""
    import fnmatch

    text = "".join(f"[{c.text}]" if c.quoted and c.text and c.text in GLOB else c.text for c in chars)
    text = re.sub(r"\[\^", "[!", text)
    return re.compile(fnmatch.translate(text))
