"""The tokens of http hooks: one private file for each repository, in the user's state folder.

Claude Code takes the token from its environment. `coord token export` prints what sets it there.
"""

import os
import stat
from collections.abc import Mapping
from contextlib import suppress

from coord.core.errors import CoordError, NotFound, Refused
from coord.core.tokens.schema import Role
from coord.core.tokens.text import parse_token
from coord.host.consent import state_folder
from coord.integrations.setup.files import Content, write_file
from coord.integrations.setup.http.form import VARIABLE
from coord.sdk.client.tokens import TokenCalls
from coord.stores.local.folders import make_private_folder

FOLDER = "hook-tokens"
BYTES_MAX = 1024
LABEL = "http hooks of Claude Code"
RENEW = "coord init --hub=http makes a new one"


def token_path(environ: Mapping[str, str], variable: str) -> str:
    """Return the file with the token of a repository."""
    return f"{state_folder(environ)}/{FOLDER}/{variable}"


def read_token(environ: Mapping[str, str], variable: str) -> str:
    """Return the token in a file that only this user can read; raise if there is none."""
    path = token_path(environ, variable)
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise NotFound(f"{path} is gone", hint=RENEW) from error
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}", hint=RENEW) from error
    with open(opened, encoding="ascii", errors="replace") as file:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            raise Refused(f"{path} is no file of yours", hint=f"remove it; {RENEW}")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise Refused(
                f"{path} has mode {stat.S_IMODE(found.st_mode):o}: others may have read the token",
                hint=f"chmod 600 {path}, and revoke it: coord token list",
            )
        text = file.read(BYTES_MAX).strip()
    parse_token(text)
    return text


def ensure_token(client: TokenCalls, environ: Mapping[str, str], variable: str) -> None:
    """Keep the token of a repository if it counts, or create another one."""
    with suppress(CoordError):
        found = client.find_token(read_token(environ, variable))
        if found is not None and found.role.allows(Role.OPERATE):
            return
    new = client.create_token(Role.OPERATE, label=LABEL)
    path = token_path(environ, variable)
    make_private_folder(os.path.dirname(path))
    write_file(path, Content(f"{new.text}\n".encode(), 0o600), durable=True)


def drop_token(client: TokenCalls, environ: Mapping[str, str], variable: str) -> None:
    """End the token of a repository, and remove its file."""
    with suppress(CoordError):
        found = client.find_token(read_token(environ, variable))
        if found is not None:
            client.revoke_token(found.id)
    with suppress(FileNotFoundError):
        os.unlink(token_path(environ, variable))


def exports(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the variables and tokens of all repositories."""
    try:
        names = sorted(os.listdir(f"{state_folder(environ)}/{FOLDER}"))
    except FileNotFoundError:
        return []
    return [(name, read_token(environ, name)) for name in names if _is_variable(name)]


def _is_variable(name: str) -> bool:
    start, _, digits = name.rpartition("_")
    return start == VARIABLE and digits.isalnum() and digits.isascii()
