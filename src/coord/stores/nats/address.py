"""The address of a NATS store: servers, login, and the names of its subjects and streams.

nats://user:password@host:4222/name?replicas=3&durable=1    `tls://…` to encrypt; more hosts with commas

A token is written before the host, as the user or as a password without a user. `tls_ca`, `tls_cert` and
`tls_key` are paths of files. `install` saves `replicas` and `durable` for all later users of the store.
"""

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from coord.core.errors import Invalid, Unavailable, Unreachable
from coord.stores.nats.protocol import Denied, Login, Lost, NatsConnection
from coord.stores.server.database import fails_by_tls
from coord.stores.urls import redact

NAME = re.compile(r"[A-Za-z0-9_]{1,48}")
PARAMETERS = ("replicas", "durable", "tls_ca", "tls_cert", "tls_key")
PORT = 4222


class Address:
    """The parts of a url."""

    def __init__(self, url: str) -> None:
        self.redacted = redact(url)
        try:
            parts = urlsplit(url)
            said = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
            user, _, hosts = parts.netloc.rpartition("@")
            self._hosts = [_host(each) for each in hosts.split(",")]
        except ValueError:  # not raised from it: its text may contain the password
            raise self._invalid("it is not a valid NATS url") from None
        self.name = unquote(parts.path.strip("/")) or "coord"
        if not NAME.fullmatch(self.name):
            raise self._invalid(f"{self.name!r} is not a valid store name")
        if unknown := set(said) - set(PARAMETERS):
            raise self._invalid(f"unknown parameter {', '.join(sorted(unknown))}")
        self.replicas, self.durable = said.get("replicas", ""), said.get("durable", "")
        if self.replicas not in ("", "1", "2", "3", "4", "5") or self.durable not in ("", "0", "1"):
            raise self._invalid("replicas must be 1 to 5, durable 0 or 1")
        name, colon, password = map(unquote, user.partition(":"))
        encrypted = parts.scheme.lower() == "tls"
        files = (said.get("tls_ca", ""), said.get("tls_cert", ""), said.get("tls_key", ""))
        who = (name, password, "") if name and colon else ("", "", password or name)
        self._login = Login(*who, encrypted, *files)

    def _invalid(self, why: str) -> Invalid:
        return Invalid(f"{self.redacted!r}: {why}", hint="use nats://user:password@host:4222/name")

    def connect(self) -> NatsConnection:
        """Connect to the first server that answers; each call starts with another one."""
        failures: list[str] = []
        refused = False
        hosts, self._hosts = self._hosts, self._hosts[1:] + self._hosts[:1]
        for host, port in hosts:
            try:
                return NatsConnection(host, port, self._login)
            except (OSError, Lost, Denied) as error:
                failures.append(f"{host}:{port}: {error}")
                refused = refused or isinstance(error, Denied) or fails_by_tls(error)
        message = f"NATS: {'; '.join(failures)}"
        raise Unavailable(message, hint="is the password right?") if refused else Unreachable(message)

    # Subjects and streams. Names of streams have no dots, and names of stores have no dashes.

    @property
    def stream(self) -> str:
        """The stream of metadata and snapshots."""
        return self.name

    def subject(self, *words: str) -> str:
        """Return a subject of this store."""
        return ".".join(("coord", self.name, *words))

    def log_stream(self, tenant: str) -> str:
        """Return the stream of a tenant's log."""
        return f"{self.name}-log-{word_of(tenant)}"

    def log_subject(self, tenant: str) -> str:
        """Return the subject of a tenant's log."""
        return self.subject("log", word_of(tenant))

    def tenant_of(self, stream: str) -> str:
        """Return the tenant whose log a stream is."""
        return stream.removeprefix(f"{self.name}-log-").replace(",", ".")


def word_of(tenant: str) -> str:
    """Return a tenant as one word of a subject.

    >>> word_of("acme.example")
    'acme,example'
    """
    return tenant.replace(".", ",")


def _host(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError(text)
    return parts.hostname, parts.port or PORT
