"""The number of values in a JSON body is limited, and not only its bytes.

A decoder makes an object of each value and holds the interpreter until it is done. Fifteen megabytes of `[]`
took 3 s, in which the event loop answered nobody.
"""

from typing import Any

import msgspec

from coord.core.errors import Invalid

VALUES_MAX = 1_000_000
"""How many values a body may have; that many take a third of a second."""
BEFORE_VALUES = (b"[", b"{", b",")
"""Each value but the first follows one of these, or a name. Those inside of texts count, too."""


def check_values(body: bytes) -> None:
    """Refuse a body with too many values, before it is decoded."""
    if len(body) > VALUES_MAX and sum(map(body.count, BEFORE_VALUES)) > VALUES_MAX:
        raise Invalid(f"the body has more than {VALUES_MAX} values", hint="send it in parts")


def decode_plain(body: bytes) -> Any:
    """Return what a body contains that no type limits."""
    check_values(body)
    return msgspec.json.decode(body)
