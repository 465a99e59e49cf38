"""A private MariaDB server."""

import contextlib
import itertools
import shutil
from pathlib import Path
from typing import Any

import pymysql

import coord
from tests.support.servers.server import PASSWORD, START_S, Server

USER = "coord"
SHARED = "stores"

SETTINGS = {
    "innodb-flush-log-at-trx-commit": "1",
    "innodb-doublewrite": "1",
    "innodb-file-per-table": "0",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "64M",
    "max-allowed-packet": "64M",
    "max-connections": "300",
    "performance-schema": "0",
    "sync-frm": "0",
    "skip-log-bin": "",
    "skip-name-resolve": "",
}
"""Commits are synced, new tables are not, and lie in one file: a start and a new store cost little."""

SET_UP = f"""
CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION;
CREATE DATABASE {SHARED};
"""


class MariadbServer(Server):
    """One server process with its databases."""

    name = "MariaDB"
    account = "mysql"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._names = (f"test_{number}" for number in itertools.count(1))

    @classmethod
    def program(cls) -> str | None:
        return shutil.which("mariadbd") if shutil.which("mariadb-install-db") else None

    def prepare(self) -> None:
        self.have_data(self._init)
        set_up = self.folder / "set-up.sql"
        set_up.write_text(SET_UP)
        self.own(set_up)

    def _init(self) -> None:
        made = self.spawn(
            f"mariadb-install-db --no-defaults --datadir={self.folder}/data --skip-test-db "
            "--auth-root-authentication-method=normal --skip-name-resolve --innodb-log-file-size=64M".split()
        )
        if made.wait(START_S):
            raise RuntimeError(f"mariadb-install-db failed:\n{self.log()}")

    def command(self) -> list[str]:
        folder = self.folder
        command = [str(self.program()), "--no-defaults", f"--datadir={folder}/data", f"--port={self.port}"]
        command += [f"--socket={folder}/socket", f"--pid-file={folder}/pid"]
        if (set_up := folder / "set-up.sql").exists():
            command.append(f"--init-file={set_up}")
        settings = {**SETTINGS, "bind-address": self.host}.items()
        return command + [f"--{name}={value}" if value else f"--{name}" for name, value in settings]

    def answers(self) -> bool:
        with contextlib.suppress(pymysql.OperationalError):
            self.admin().close()
            (self.folder / "set-up.sql").unlink(missing_ok=True)
            return True
        return False

    def url(self, database: str, password: str = PASSWORD) -> str:
        """Return the url of a database on this server."""
        return f"mysql://{USER}:{password}@{self.host}:{self.port}/{database}"

    def fresh_url(self) -> str:
        """Return the url of a new database that `install` has prepared."""
        url = self.blank_url()
        coord.install(url)
        return url

    def fresh_store_url(self) -> str:
        """Return the url of a new store in tables of its own."""
        url = f"{self.url(SHARED)}?prefix={next(self._names)}"
        coord.install(url)
        return url

    def blank_url(self) -> str:
        """Return the url of a new, empty database."""
        name = next(self._names)
        with self.admin() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def admin(self, database: str | None = None) -> "pymysql.Connection[Any]":
        """Return an autocommit connection of an administrator, for what a test does behind coord's back."""
        return pymysql.connect(
            host=self.host,
            port=self.port,
            user=USER,
            password=PASSWORD,
            database=database,
            autocommit=True,
            connect_timeout=5,
            ssl_disabled=True,  # else the driver loads all certificates of the machine first
        )
