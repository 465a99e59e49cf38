"""A private Postgres server."""

import contextlib
import hashlib
import hmac
import itertools
import shutil
import signal
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

import coord
from tests.support.servers.server import PASSWORD, START_S, Server

USER = "coord"

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "max_connections": "200",
    "logging_collector": "off",
}


class PostgresServer(Server):
    """One server process with its databases."""

    name = "Postgres"
    account = "postgres"
    stop_signal = signal.SIGINT
    quit_signal = signal.SIGQUIT

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._shared_url = ""
        self._names = (f"test_{number}" for number in itertools.count(1))

    @classmethod
    def program(cls) -> str | None:
        found = shutil.which("postgres")
        if found and (Path(found).resolve().parent / "initdb").exists():
            return str(Path(found).resolve())
        installed = list(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        newest = sorted(installed, key=lambda path: int(path.parts[-3]))
        return str(newest[-1]) if newest else None

    def prepare(self) -> None:
        self.have_data(self._init)

    def _init(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        self.own(secret)
        program = str(self.program()).removesuffix("postgres") + "initdb"
        initdb = f"{program} --pgdata {self.folder}/data --username {USER} --pwfile {secret}"
        made = self.spawn(f"{initdb} --auth scram-sha-256 --encoding UTF8 --locale C --no-sync".split())
        if made.wait(START_S):
            raise RuntimeError(f"initdb failed:\n{self.log()}")
        with open(self.folder / "data" / "pg_hba.conf", "a") as rules:
            rules.write("host all all all scram-sha-256\n")

    def create(self) -> None:
        super().create()
        with self.admin() as connection:
            connection.execute(f"ALTER ROLE {USER} PASSWORD '{_verifier()}'")

    def command(self) -> list[str]:
        command = f"{self.program()} -D {self.folder}/data -p {self.port} -k {self.folder}".split()
        for name, value in {**SETTINGS, "listen_addresses": self.host}.items():
            command += ["-c", f"{name}={value}"]
        return command

    def answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError):
            self.admin().close()
            return True
        return False

    def url(self, database: str, password: str = PASSWORD) -> str:
        """Return the url of a database on this server."""
        return f"postgresql://{USER}:{password}@{self.host}:{self.port}/{database}"

    def fresh_url(self, shaped: Callable[[str], str] = str) -> str:
        """Return the url of a new database that `install` has prepared."""
        url = shaped(self.blank_url())
        coord.install(url)
        return url

    def fresh_store_url(self) -> str:
        """Return the url of a new store in a schema of its own: a quarter of the price of a database."""
        url = self._fresh_schema()
        coord.install(url)
        return url

    def fresh_log_url(self) -> str:
        """Return the url of a new store in the log shape."""
        url = in_log_shape(self._fresh_schema())
        coord.install(url)
        return url

    def _fresh_schema(self) -> str:
        self._shared_url = self._shared_url or self.blank_url()
        return f"{self._shared_url}?schema={next(self._names)}"

    def blank_url(self) -> str:
        """Return the url of a new, empty database."""
        name = next(self._names)
        with self.admin() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def admin(self) -> psycopg.Connection[Any]:
        """Return an autocommit connection of the superuser, for what a test does behind coord's back."""
        return psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=5)


def _verifier() -> str:
    """What a server keeps of the password (RFC 5803), hashed once: 4096 times cost each connection 5 ms."""
    salt = b"of these tests"
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), salt, 1)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    of_server = hmac.digest(salted, b"Server Key", "sha256")
    salt_text, stored_text, server_text = (b64encode(each).decode() for each in (salt, stored, of_server))
    return f"SCRAM-SHA-256$1:{salt_text}${stored_text}:{server_text}"


def in_log_shape(url: str) -> str:
    """Return the url of the same schema, as one that holds a store in the log shape."""
    return url.replace("postgresql:", "postgresql+log:", 1)


def for_psycopg(url: str) -> str:
    """Return the url of a store of either shape as the driver understands it, but for its schema."""
    return url.replace("+log:", ":", 1)


SHAPES: dict[str, Callable[[str], str]] = {"tables": str, "log": in_log_shape}
"""Both shapes of a store, and how the url of a schema names each."""
