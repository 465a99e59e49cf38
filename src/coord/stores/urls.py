"""Urls of stores: their paths, hiding passwords in them, and removing our parameters from them.

Most urls are plain paths of a file. They are handled before anything is imported or compiled for other urls,
because every command opens a store.
"""

import re

ALIASES = {
    "postgres": "postgresql",
    "postgres+log": "postgresql+log",
    "mariadb": "mysql",
    "rediss": "redis",
    "tls": "nats",
}
HUB_SCHEMES = ("http", "https")

_BEFORE_HOST = r"(?s)(://[^/:@]*):.*@"
_ONLY_LOGIN = r"(?i)^((?:nats|tls)://)[^/:@]+@"
_IN_QUERY = r"(?i)((?:^|[?&])[^=&]*(?:password|passwd)=)[^&#]*"
_WITHOUT_MARKS = str.maketrans("", "", "/_.-~")


def redact(url: str) -> str:
    """Return a url with its passwords replaced by ***, even if it is malformed.

    >>> redact("postgresql://me:secret@host/db?sslpassword=secret")
    'postgresql://me:***@host/db?sslpassword=***'
    >>> redact("nats://a-token@host/shop")
    'nats://***@host/shop'
    """
    if "@" not in url and "=" not in url:
        return url
    without_token = re.sub(_ONLY_LOGIN, r"\1***@", url)
    return re.sub(_IN_QUERY, r"\1***", re.sub(_BEFORE_HOST, r"\1:***@", without_token))


def scheme_of(url: str) -> str:
    """Return the kind of store of a url; several schemes may name one kind.

    >>> scheme_of("postgres://host/db")
    'postgresql'
    """
    scheme = url.partition(":")[0].lower()
    return ALIASES.get(scheme, scheme)


def is_hub(url: str) -> bool:
    """Whether a url names a hub and not a store."""
    return scheme_of(url) in HUB_SCHEMES


def is_plain(path: str) -> bool:
    """Return whether a path can be part of a url without quoting."""
    return path.isascii() and path.translate(_WITHOUT_MARKS).isalnum()


def quoted(path: str) -> str:
    """Return a path quoted for a url.

    >>> quoted("/srv/my shop")
    '/srv/my%20shop'
    """
    if is_plain(path):
        return path
    from urllib.parse import quote

    return quote(path)


def unquoted(path: str) -> str:
    """Return the path of a quoted path in a url.

    >>> unquoted("/srv/my%20shop")
    '/srv/my shop'
    """
    if "%" not in path:
        return path
    from urllib.parse import unquote

    return unquote(path)


def without_parameter(url: str, name: str) -> tuple[str, list[str]]:
    """Return the url without a query parameter, and the values of that parameter.

    >>> without_parameter("postgresql://host/db?schema=mine&sslmode=require", "schema")
    ('postgresql://host/db?sslmode=require', ['mine'])
    """
    from urllib.parse import parse_qsl, urlencode, urlsplit

    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    rest = urlencode([pair for pair in pairs if pair[0] != name])
    return parts._replace(query=rest).geturl(), [value for key, value in pairs if key == name]
