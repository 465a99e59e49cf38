"""Making a store vanish behind coord's back."""

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import psycopg


def remove_store(url: str) -> None:
    """Remove a store, whatever holds it."""
    if url.startswith("postgresql:"):
        with psycopg.connect(url, autocommit=True) as connection:
            rows = connection.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'meta'").fetchall()
            assert rows, "there is a store to remove"
            for (schema,) in rows:
                connection.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())
        return
    path = Path(urlsplit(url).path)
    assert path.exists(), "there is a store to remove"
    for found in path.parent.glob(f"{path.name}*"):
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()
