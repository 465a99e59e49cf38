"""Read `coord.toml` at the top of a repository, and that of the user."""

import os
from collections.abc import Mapping
from typing import Any

from coord.core.errors import Invalid
from coord.host.repository import Repository

CONFIGURATION_BYTES_MAX = 256 * 1024


def configuration_file(repository: Repository | None) -> str:
    """Return the path of a repository's configuration file; empty if it has no worktree."""
    root = repository.root if repository is not None else None
    return "" if root is None else f"{root}/coord.toml"


def user_configuration_file(environ: Mapping[str, str]) -> str:
    """Return the path of the user's own configuration file."""
    base = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME') or os.path.expanduser('~')}/.config"
    return f"{base}/coord/coord.toml"


def read_configuration(file: str) -> dict[str, Any]:
    """Return the tables of a configuration file; an empty dict if there is no such file."""
    if not file or not os.path.isfile(file):
        return {}
    import tomllib  # noqa: PLC0415 - few repositories have the file

    try:
        with open(file, "rb") as opened:
            data = opened.read(CONFIGURATION_BYTES_MAX + 1)
        if len(data) > CONFIGURATION_BYTES_MAX:
            raise ValueError(f"it is larger than {CONFIGURATION_BYTES_MAX >> 10} KiB")
        return tomllib.loads(data.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise Invalid(f"{file} cannot be read: {error}", hint="correct it, or remove it") from error
