"""Making a store vanish behind coord's back."""

import shutil
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import redis

from coord.stores.mysql.connection import Address
from tests.support.servers.nats import remove_streams
from tests.support.servers.postgres import for_psycopg


def remove_store(url: str) -> None:
    """Remove a store, whatever holds it."""
    if url.startswith("postgresql"):
        database, _, schema = for_psycopg(url).partition("?schema=")
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())
        return
    if url.startswith("mysql:"):
        remove_tables(url)
        return
    if url.startswith("redis:"):
        server, _, prefix = url.partition("?prefix=")
        with redis.from_url(server) as client:
            client.delete(*client.scan_iter(f"{{{prefix}}}:*"))
        return
    if url.startswith("nats:"):
        remove_streams(url)
        return
    path = Path(urlsplit(url).path)
    assert path.exists(), "there is a store to remove"
    for found in path.parent.glob(f"{path.name}*"):
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()


def remove_tables(url: str) -> None:
    """Remove the tables of a MySQL store."""
    address = Address(url)
    with closing(address.connect()) as session:
        session.ask(address.sql.named("DROP TABLE {meta}, {log}, {record}, {entry}"))
