"""Links that log a browser in: each works once, and for two minutes."""

import secrets
import time
from collections import OrderedDict
from hashlib import sha256
from typing import NamedTuple

LINK_S = 120.0
LINKS_MAX = 100


class _Link(NamedTuple):
    token: str
    until_s: float


class LoginLinks:
    """Codes and the tokens that they stand for; they are only in memory."""

    def __init__(self) -> None:
        self._links: OrderedDict[bytes, _Link] = OrderedDict()

    def add(self, token: str) -> str:
        """Return the code of a new link; the oldest link makes room."""
        code = secrets.token_urlsafe(32)
        self._links[_key(code)] = _Link(token, time.monotonic() + LINK_S)
        while len(self._links) > LINKS_MAX:
            self._links.popitem(last=False)
        return code

    def take(self, code: str) -> str:
        """Return the token of a link, which ends with that; "" if there is no such link."""
        link = self._links.pop(_key(code), None)
        return link.token if link is not None and time.monotonic() < link.until_s else ""


def _key(code: str) -> bytes:
    """Return what links are found by; the time of the search says nothing about the code."""
    return sha256(code.encode("utf-8", "surrogatepass")).digest()
