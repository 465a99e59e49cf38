"""How a store refuses that is not there yet, or was moved, and what it notes of that (see `moving`)."""

from coord.core.errors import NotFound, Unavailable
from coord.stores.tenant_names import name_of

MOVED_URL, MOVED_ID, MOVED_WHOLE = "moved_url", "moved_id", "moved_whole"
"""Notes of the old store: where it goes, without passwords; which store that is; that all of it is there."""
ARRIVING, ARRIVED = "arriving", "arrived"
"""Notes of the new one: the id of the store that is being copied, or was."""

LIVES_IN = "tenant/"
"""Before the name of a tenant: a note of the store that others share, with the id of the tenant's own."""

_MOVED = "this store was moved to "


def not_installed(url: str) -> NotFound:
    """Return the error of who opens a server that was not prepared; the url is one that may be shown."""
    return NotFound(f"{url} holds no store", hint=f"prepare it: coord install {url}")


def moved_message(url: str) -> str:
    """Return what a store that was shut says of it, in whatever way it can say something."""
    return f"{_MOVED}{url}"


def moved(url: str) -> Unavailable:
    """Return the error of who writes to a store that was moved."""
    return Unavailable(moved_message(url), hint=f"connect again; if that fails: coord migrate --to-url {url}")


def unavailable(message: str) -> Unavailable:
    """Return the error of a store that did not take a commit; what it says tells if it was moved."""
    _, found, url = message.partition(_MOVED)
    return moved(url.split()[0]) if found else Unavailable(message)


def check_settled(url: str, notes: dict[str, str]) -> None:
    """Refuse a store that has moved away, and one that is a copy not yet complete."""
    if MOVED_URL in notes:
        raise moved(notes[MOVED_URL])
    if ARRIVING in notes:
        raise Unavailable(
            f"{url} is being copied from another store, and not complete",
            hint=f"finish it where it was begun: coord migrate --to-url {url}",
        )


def note_of(tenant: str) -> str:
    """Return the name of the note that says where a tenant lives."""
    return LIVES_IN + name_of(tenant)


def check_lives_here(tenant: str, notes: dict[str, str]) -> None:
    """Refuse to look for a tenant in the shared store when it has one of its own."""
    if note_of(tenant) in notes:
        raise Unavailable(
            f"tenant {tenant} has a store of its own, and nothing says here where it is",
            hint="name it in coord.toml below [tenants], as where it was installed",
        )
