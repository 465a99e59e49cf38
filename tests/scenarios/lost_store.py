"""Making a store vanish behind coord's back."""

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.servers.nats import remove_streams


def remove_store(url: str) -> None:
    """Remove a store, whatever holds it."""
    if url.startswith("postgresql:"):
        database, _, schema = url.partition("?schema=")
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())
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
