"""Makes src/coord/schemas/*.json from the records of the code: run `python -m tools.schemas`.

JSON Schema draft 2020-12. Each field has a number in its `$comment`, as in a protobuf message: a number is
given once and never again, so those in the files are kept, a new field gets the next one, and that of a field
which is no more stays reserved. Other fields than those of the schema are allowed: newer versions may write
them.
"""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from coord.core.locks.schema import Lock
from coord.core.messages.schema import Message
from coord.core.records import Stored
from coord.core.sessions.schema import Session

FOLDER = Path(__file__).resolve().parent.parent / "src" / "coord" / "schemas"
KINDS: dict[str, type[Stored]] = {"session": Session, "lock": Lock, "message": Message}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ORDER = [
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "type",
    "required",
    "properties",
    "additionalProperties",
    "$defs",
]
FIELD = re.compile(r"field (\d+)")
RESERVED = re.compile(r"reserved: (.*)")


def schema_of(name: str) -> dict[str, Any]:
    """Return the schema of a kind of record, with the numbers that its file has given out."""
    kind = KINDS[name]
    (_,), made = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    whole = made.pop(kind.__name__)
    del whole["properties"]["_unknown"]
    whole["description"] = inspect.cleandoc(whole["description"])
    _open(whole, made)
    reserved = _number(whole["properties"], read(name))
    about = {"$schema": DIALECT, "$id": f"coord:{name}:{kind.__struct_config__.tag}", "title": name}
    comment = {"$comment": f"reserved: {', '.join(map(str, reserved))}"} if reserved else {}
    made_of = {"$defs": made} if made else {}
    plain: dict[str, Any] = json.loads(json.dumps({**whole, **about, **comment, **made_of}))  # no tuples
    return {key: plain[key] for key in sorted(plain, key=_ORDER.index)}


def _open(whole: dict[str, Any], components: dict[str, Any]) -> None:
    for schema in (whole, *components.values()):
        if schema.get("type") == "object":
            schema["additionalProperties"] = True


def _number(properties: dict[str, Any], before: dict[str, Any]) -> list[int]:
    """Give every field its number; return those of fields that are gone."""
    given = {name: _number_of(each) for name, each in before.get("properties", {}).items()}
    taken = [*given.values(), *_reserved(before)]
    for name, each in properties.items():
        if name not in given:
            given[name] = max(taken, default=0) + 1
            taken.append(given[name])
        each["$comment"] = f"field {given[name]}"
    return sorted({*taken} - {given[name] for name in properties})


def _number_of(field: dict[str, Any]) -> int:
    found = FIELD.fullmatch(field.get("$comment", ""))
    assert found, "a field without a number"
    return int(found[1])


def _reserved(schema: dict[str, Any]) -> list[int]:
    found = RESERVED.fullmatch(schema.get("$comment", ""))
    return [int(number) for number in found[1].split(", ")] if found else []


def read(name: str) -> dict[str, Any]:
    """Return the schema in the file; empty if there is none yet."""
    path = FOLDER / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def main() -> None:
    for name in KINDS:
        text = json.dumps(schema_of(name), indent=2, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
