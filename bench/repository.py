"""A repository to lock files in, and clients on it; nothing of the caller's environment plays a part."""

from pathlib import Path

from bench.watched import Watch, WatchedDatabase
from coord.sdk.client.client import Client, connect

PATH = "src/login/form.py"
"""What is locked: a literal path, three deep."""
PATIENCE_S = 60.0


def make_repository(folder: Path) -> Path:
    """Make what git takes for an empty repository."""
    made = folder / "repository"
    for part in ("objects", "refs"):
        (made / ".git" / part).mkdir(parents=True, exist_ok=True)
    (made / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return made


def environment(repository: Path) -> dict[str, str]:
    """Return all that a client or a command sees of its surroundings."""
    return {"HOME": str(repository), "XDG_STATE_HOME": str(repository / "state"), "PATH": "/usr/bin:/bin"}


def open_client(url: str, repository: Path, session: str) -> Client:
    """Connect in the name of a session."""
    return connect(url, session=session, cwd=str(repository), environ=environment(repository))


def open_watched(url: str, repository: Path, session: str, watch: Watch) -> Client:
    """Connect as `open_client` does, with every commit noted."""
    plain = open_client(url, repository, session)
    watched = WatchedDatabase(plain.database, watch)
    return Client(
        watched,  # type: ignore[arg-type]
        plain.location,
        plain.caller,
        tenant=plain.tenant,
        cwd=str(repository),
        environ=environment(repository),
    )
