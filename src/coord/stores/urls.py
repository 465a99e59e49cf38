"""Urls of stores: their paths, showing them without what is secret, taking our own parameters out of them.

The usual url is the path of a file with nothing to escape or hide: it is dealt with before anything is
imported or compiled for others, since every command opens a store.
"""

import re

ALIASES = {
    "postgres": "postgresql",
    "postgres+log": "postgresql+log",
    "mariadb": "mysql",
    "rediss": "redis",
    "tls": "nats",
}

_BEFORE_HOST = r"(?s)(://[^/:@]*):.*@"
_ALONE = r"(?i)^((?:nats|tls)://)[^/:@]+@"
_IN_QUERY = r"(?i)((?:^|[?&])[^=&]*(?:password|passwd)=)[^&#]*"
_WITHOUT_MARKS = str.maketrans("", "", "/_.-~")


def redact(url: str) -> str:
    """Return a url without the password it may hold, however malformed it is.

    >>> redact("postgresql://me:secret@host/db?sslpassword=secret")
    'postgresql://me:***@host/db?sslpassword=***'
    >>> redact("nats://a-token@host/shop")
    'nats://***@host/shop'
    """
    if "@" not in url and "=" not in url:
        return url
    without_token = re.sub(_ALONE, r"\1***@", url)
    return re.sub(_IN_QUERY, r"\1***", re.sub(_BEFORE_HOST, r"\1:***@", without_token))


def scheme_of(url: str) -> str:
    """Return the name of the kind of store that a url names, by whichever of its names.

    >>> scheme_of("postgres://host/db")
    'postgresql'
    """
    scheme = url.partition(":")[0].lower()
    return ALIASES.get(scheme, scheme)


def is_plain(path: str) -> bool:
    """Whether a path stands in a url as it is: it names something, and no character of it means anything."""
    return path.isascii() and path.translate(_WITHOUT_MARKS).isalnum()


def quoted(path: str) -> str:
    """Return a path as it stands in a url.

    >>> quoted("/srv/my shop")
    '/srv/my%20shop'
    """
    if is_plain(path):
        return path
    from urllib.parse import quote

    return quote(path)


def unquoted(path: str) -> str:
    """Return a path that stands in a url.

    >>> unquoted("/srv/my%20shop")
    '/srv/my shop'
    """
    if "%" not in path:
        return path
    from urllib.parse import unquote

    return unquote(path)


def without_parameter(url: str, name: str) -> tuple[str, list[str]]:
    """Return the url without a parameter of its query, and the values that it had there.

    >>> without_parameter("postgresql://host/db?schema=mine&sslmode=require", "schema")
    ('postgresql://host/db?sslmode=require', ['mine'])
    """
    from urllib.parse import parse_qsl, urlencode, urlsplit

    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    rest = urlencode([pair for pair in pairs if pair[0] != name])
    return parts._replace(query=rest).geturl(), [value for key, value in pairs if key == name]
