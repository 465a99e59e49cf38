"""A person's consent to the `coord.toml` of a repository.

The file comes with a clone, so whoever can push can write it: it may name a foreign server, which would get
the user's password, or weaken the hooks. It only proposes. A person confirms it once (`coord init`,
`coord trust`), and nothing of it counts before. The consent lies in the user's state folder, under a digest
of the repository and the content, so it ends with the next change of the file.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from coord.core.errors import Invalid, Unavailable
from coord.host.config import configuration_file, parse_configuration, read_content
from coord.host.repository import Repository

CONFIRM = "a person reads it and runs: coord trust"


class Configuration(NamedTuple):
    """The `coord.toml` of a repository, and whether a person has confirmed it."""

    file: str
    proposed: Mapping[str, Any] = {}
    """What the file says."""
    consent: str = ""
    """The path of the consent to this content; empty if there is no file."""
    confirmed: bool = True
    problem: str = ""
    """Why the file cannot be read."""

    @property
    def tables(self) -> Mapping[str, Any]:
        """What counts: nothing before a person has confirmed it."""
        return self.proposed if self.confirmed else {}

    @property
    def notice(self) -> str:
        """What people and agents should know; empty if the file counts."""
        if self.problem:
            return f"{self.problem}; none of its settings count (correct it, then run coord trust)"
        if not self.confirmed:
            return f"{self.file} is not confirmed, so none of its settings count ({CONFIRM})"
        return ""


def read_consented(repository: Repository | None, environ: Mapping[str, str]) -> Configuration:
    """Return the configuration of a repository; a broken one counts as not confirmed."""
    file = configuration_file(repository)
    try:
        content = read_content(file)
        if repository is None or content is None:
            return Configuration(file)
        consent = _consent(repository, content, environ)
        return Configuration(file, parse_configuration(file, content), consent, os.path.isfile(consent))
    except Invalid as error:
        return Configuration(file, confirmed=False, problem=error.message)


def confirm(configuration: Configuration) -> None:
    """Record that a person has confirmed a configuration."""
    if configuration.problem:
        raise Invalid(configuration.problem, hint="correct it first")
    if not configuration.consent:
        raise Invalid("there is no coord.toml here", hint="nothing needs a confirmation")
    from coord.stores.local.folders import make_private_folder  # noqa: PLC0415 - only if a person confirms

    try:
        make_private_folder(os.path.dirname(configuration.consent))
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(configuration.consent, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(configuration.file.encode("utf-8", "backslashreplace").decode() + "\n")
    except OSError as error:
        raise Unavailable(
            f"{configuration.consent} cannot be written: {error.strerror}", hint="check your state folder"
        ) from error


def revoke(configuration: Configuration) -> bool:
    """Withdraw the consent; return whether there was one."""
    try:
        os.unlink(configuration.consent)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def state_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of the user's own state: store, consents."""
    state = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # the XDG standard ignores relative paths
        home = environ.get("HOME", "") or os.path.expanduser("~")
        state = f"{home}/.local/state"
    return f"{state}/coord"


def _consent(repository: Repository, content: bytes, environ: Mapping[str, str]) -> str:
    from hashlib import sha256  # noqa: PLC0415 - few repositories have the file

    digest = sha256(os.fsencode(repository.commondir) + b"\0" + content).hexdigest()
    return f"{state_folder(environ)}/trusted/{digest}"
