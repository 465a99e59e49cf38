"""File names from names of others: distinct names give distinct files, and none leaves its folder."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256

PART_BYTES_MAX = 100
"""The longest part of a file name; two parts, the words around them and `.json` stay below 255 bytes."""
_UNSAFE = re.compile(rb"[^A-Za-z0-9._:@+=,~-]")


def safe_name(name: str, *, escape: str = "") -> str:
    """Return a name as part of a file name; `escape` are further characters to escape.

    Letters, digits and a few signs stay. Every other byte becomes `%XX`, and a point in front `%2E`. A long
    name ends with `%~` and its digest: no short name contains that.

    >>> safe_name("beatrice"), safe_name("../../etc/passwd"), safe_name("50%")
    ('beatrice', '%2E.%2F..%2Fetc%2Fpasswd', '50%25')
    """
    data = name.encode("utf-8", "surrogatepass")
    escaped = _UNSAFE.sub(lambda found: b"%%%02X" % found[0][0], data).decode()
    for each in escape:
        escaped = escaped.replace(each, f"%{ord(each):02X}")
    if escaped.startswith("."):
        escaped = f"%2E{escaped[1:]}"
    if not escaped:
        return "%"
    if len(escaped) <= PART_BYTES_MAX:
        return escaped
    return f"{escaped[:60].rpartition('%')[0] or escaped[:60]}%~{sha256(data).hexdigest()[:32]}"


def short_names(names: Iterable[str], short: Callable[[str], str]) -> dict[str, str]:
    """Return the part of a file name for each name: its short form, or itself where two are alike.

    >>> short_names(["c87d1c5c-1", "c87d1c5c-2", "3443ca93-9"], lambda name: name[:8])["3443ca93-9"]
    '3443ca93'
    """
    known = list(dict.fromkeys(names))
    uses = Counter(each for name in known for each in {name, short(name)})
    return {name: safe_name(short(name) if uses[short(name)] == 1 else name) for name in known}
