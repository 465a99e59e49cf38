"""Urls of stores: showing them without what is secret, and taking our own parameters out of them."""

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

_BEFORE_HOST = re.compile(r"(://[^/:@]*):.*@", re.DOTALL)
_IN_QUERY = re.compile(r"((?:^|[?&])[^=&]*(?:password|passwd)=)[^&#]*", re.IGNORECASE)


def shown(url: str) -> str:
    """Return a url without the password it may hold, however malformed it is.

    >>> shown("postgresql://me:secret@host/db?sslpassword=secret")
    'postgresql://me:***@host/db?sslpassword=***'
    """
    return _IN_QUERY.sub(r"\1***", _BEFORE_HOST.sub(r"\1:***@", url))


def without_parameter(url: str, name: str) -> tuple[str, list[str]]:
    """Return the url without a parameter of its query, and the values that it had there.

    >>> without_parameter("postgresql://host/db?schema=mine&sslmode=require", "schema")
    ('postgresql://host/db?sslmode=require', ['mine'])
    """
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    rest = urlencode([pair for pair in pairs if pair[0] != name])
    return parts._replace(query=rest).geturl(), [value for key, value in pairs if key == name]
