"""Read the origin of a repository, in one form for all URLs that reach it."""

import re

CONFIG_CHARS_MAX = 1_000_000
DEFAULT_PORTS = {"ssh": "22", "git+ssh": "22", "https": "443", "http": "80", "git": "9418"}

_SECTION = re.compile(r'\s*\[\s*(?P<name>[\w.-]+)(?:\s+"(?P<sub>(?:\\.|[^"\\])*)")?\s*\]')
_URL = re.compile(r"\s*url\s*=\s*(?P<value>.*)", re.IGNORECASE | re.DOTALL)
_VALUE_PART = re.compile(
    r'"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<comment>[#;].*)|(?P<plain>(?:\\.|[^"\\#;])+)', re.DOTALL
)
_SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)", re.IGNORECASE)
_SHORT = re.compile(r"(?:[^/@]*@)?(?P<host>\[[^\]]+\]|[^/:@\[\]]{2,}):(?!:)(?P<path>.+)", re.DOTALL)


def origin_url(commondir: str) -> str | None:
    """Return the URL of the remote `origin` from the repository's own configuration."""
    try:
        with open(f"{commondir}/config", encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(CONFIG_CHARS_MAX)
    except OSError:
        return None
    inside = False
    for raw in text.replace("\\\n", "").split("\n"):  # a backslash at the end joins two lines
        line = raw
        if section := _SECTION.match(line):
            inside = section["name"].lower() == "remote" and section["sub"] == "origin"
            line = line[section.end() :]
        if inside and (url := _URL.match(line)):
            return _value(url["value"]) or None
    return None


def normalised_origin(url: str) -> str | None:
    """Return host and path of an origin, the same for every way to reach it, without user and password.

    A folder of this machine gives its path, which begins with `/`; other texts give None.

    >>> normalised_origin("git@GitHub.com:a/b.git") == normalised_origin("https://me:key@github.com/a/b/")
    True
    """
    if url.startswith("/"):
        return _trimmed(url)
    if found := _SCHEME.fullmatch(re.split(r"[?#]", url, maxsplit=1)[0]):
        scheme, path = found["scheme"].lower(), _trimmed(found["path"]).lstrip("/")
        host = found["authority"].rpartition("@")[2].lower()
        if scheme == "file":
            return f"/{path}" if path and host in ("", "localhost") else None
        host = host.removesuffix(f":{DEFAULT_PORTS.get(scheme, '')}")
    elif found := _SHORT.fullmatch(url):
        host, path = found["host"].lower().strip("[]"), _trimmed(found["path"]).lstrip("/")
        host = host.removesuffix(":22") if host.count(":") == 1 else host
    else:
        return None
    # A remaining @ may end a malformed password.
    return f"{host}/{path}" if host and path and "@" not in path else None


def _trimmed(path: str) -> str:
    return path.rstrip("/").removesuffix(".git").rstrip("/")


def _value(text: str) -> str:
    """Return a value of git's configuration without its quotes, escapes and comment."""
    value = ""
    for part in _VALUE_PART.finditer(text.strip()):
        if part["comment"]:
            break
        value += re.sub(r"\\(.)", r"\1", part["quoted"] or part["plain"] or "")
    return value.strip()
