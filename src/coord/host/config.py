"""Read `coord.toml` at the top of a repository, and that of the user."""

import os
from collections.abc import Mapping
from typing import Any

from coord.core.errors import Invalid
from coord.host.repository import Repository
from coord.host.runtime.seen_files import once_per_hook

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
    """Return the tables of a configuration file; an empty dict if there is no such file.

    For a repository's file use `coord.host.consent.read_consented`.
    """
    content = read_content(file)
    return {} if content is None else parse_configuration(file, content)


@once_per_hook
def read_content(file: str) -> bytes | None:
    """Return the content of a configuration file; None if there is no such file."""
    if not file or not os.path.isfile(file):
        return None
    try:
        with open(file, "rb") as opened:
            content = opened.read(CONFIGURATION_BYTES_MAX + 1)
    except OSError as error:
        raise _unreadable(file, error.strerror or str(error)) from error
    if len(content) > CONFIGURATION_BYTES_MAX:
        raise _unreadable(file, f"it is larger than {CONFIGURATION_BYTES_MAX >> 10} KiB")
    return content


def parse_configuration(file: str, content: bytes) -> dict[str, Any]:
    """Return the tables in the content of a configuration file."""
    import tomllib  # noqa: PLC0415 - few repositories have the file

    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise _unreadable(file, str(error)) from error


def _unreadable(file: str, why: str) -> Invalid:
    return Invalid(f"{file} cannot be read: {why}", hint="correct it, or remove it")
