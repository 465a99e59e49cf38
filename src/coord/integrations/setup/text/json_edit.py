"""Add and remove members of a JSON text without changing the rest of it.

Comments and trailing commas, which some tools allow in their settings, are kept too.
"""

import json
import re
from typing import Any, NamedTuple

from coord.core.errors import Invalid

DEPTH_MAX = 100
_GAP = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/|\ufeff)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PLAIN = re.compile(r"[^\s,\[\]{}:/\"]+")
_INDENT = re.compile(r"[ \t]*")


class Node(NamedTuple):
    """A value and its position in the text; only objects and arrays have members."""

    start: int
    end: int
    value: Any
    members: tuple["Member", ...] = ()

    def find(self, key: str) -> "Node | None":
        """Return the value of a key; the last one counts, as in every parser."""
        return next((member.node for member in reversed(self.members) if member.key == key), None)


class Member(NamedTuple):
    """A value in an object or an array. `comma`: the position of the comma before it, or -1."""

    start: int
    comma: int
    key: str
    node: Node


def read_json(text: str, where: str) -> Node:
    """Return the value of a text, with the positions of all its parts."""
    try:
        node = _node(text, _gap(text, 0), 0)
        if _gap(text, node.end) != len(text):
            raise ValueError(f"unexpected text at character {node.end}")
    except (ValueError, IndexError) as error:
        raise Invalid(
            f"{where} is not JSON: {error}", hint="correct it by hand; nothing was changed"
        ) from error
    return node


def _gap(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return found.end() if found else at


def _node(text: str, start: int, depth: int) -> Node:
    if depth > DEPTH_MAX:
        raise ValueError(f"it has more than {DEPTH_MAX} levels")
    if start < len(text) and text[start] in "{[":
        return _container(text, start, depth)
    found = (_STRING if text[start : start + 1] == '"' else _PLAIN).match(text, start)
    if found is None:
        raise ValueError(f"a value is missing at character {start}")
    return Node(start, found.end(), json.loads(found[0], strict=False))


def _container(text: str, start: int, depth: int) -> Node:
    is_object = text[start] == "{"
    close = "}" if is_object else "]"
    members: list[Member] = []
    comma, at = -1, _gap(text, start + 1)
    while text[at] != close:
        if members and comma < 0:
            raise ValueError(f"a comma is missing at character {at}")
        key, first = "", at
        if is_object:
            name = _node(text, at, depth)
            if not isinstance(name.value, str):
                raise ValueError(f"a key is missing at character {at}")
            key, at = name.value, _gap(text, name.end)
            if text[at] != ":":
                raise ValueError(f"a colon is missing at character {at}")
            at = _gap(text, at + 1)
        node = _node(text, at, depth + 1)
        members.append(Member(first, comma, key, node))
        at = _gap(text, node.end)
        comma = at if text[at] == "," else -1
        if comma >= 0:
            at = _gap(text, at + 1)
    value: Any = [member.node.value for member in members]
    if is_object:
        value = {member.key: member.node.value for member in members}
    return Node(start, at + 1, value, tuple(members))


def add_member(text: str, inside: Node, value: Any, key: str | None = None) -> str:
    """Return the text with a value at the end of an object (under a key) or of an array."""
    end = "\r\n" if "\r\n" in text else "\n"
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    whole = text[inside.start : inside.end]
    if inside.members and "\n" not in whole:
        last = inside.members[-1].node.end
        return f"{text[:last]}, {name}{json.dumps(value, ensure_ascii=False)}{text[last:]}"
    unit, outer = _unit(text), _indent_at(text, inside.start)
    inner = outer + unit
    if inside.members:
        first = inside.members[0].start
        if text[text.rfind("\n", 0, first) + 1 : first].isspace():
            inner = _indent_at(text, first)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    member = inner + name + f"{end}{inner}".join(lines)
    if inside.members:
        last = inside.members[-1].node.end
        return f"{text[:last]},{end}{member}{text[last:]}"
    return f"{text[: inside.start + 1]}{end}{member}{end}{outer}{text[inside.end - 1 :]}"


def remove_member(text: str, inside: Node, index: int) -> str:
    """Return the text without one member and its comma."""
    gone = inside.members[index]
    if gone.comma >= 0:
        return text[: gone.comma] + text[gone.node.end :]
    if index + 1 < len(inside.members):
        return text[: gone.start] + text[inside.members[index + 1].start :]
    return text[: inside.start + 1] + text[inside.end - 1 :]


def _unit(text: str) -> str:
    """Return the indentation of the first indented line."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _indent_at(text: str, at: int) -> str:
    found = _INDENT.match(text, text.rfind("\n", 0, at) + 1)
    return found[0] if found else ""
