"""Telemetry that a person switched on for a repository: its token, and files that set it in the tools.

A token names its store, so each store has a folder in the user's state folder. The settings of the
tools stay as they are: they count for all repositories of a user, are often kept in git, and those of Gemini
CLI have no place for the token. `coord work` reads the folder itself, so what it starts needs nothing.

Agents can read whatever their tools read. So the token has the role `report`, which reads and runs nothing.
"""

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec

from coord.core.errors import CoordError, Refused
from coord.core.tokens.schema import Role
from coord.core.tokens.text import parse_token
from coord.host.consent import state_folder
from coord.integrations.setup.files import Content, write_file
from coord.integrations.telemetry.setup import CLAUDE, ENDPOINT, GEMINI, codex_config, exports, variables
from coord.sdk.client.tokens import TokenCalls
from coord.stores.local.folders import make_private_folder

FOLDER = "telemetry"
STATE, SCRIPT, CODEX = "state.json", "env.sh", "codex.toml"
LABEL = "telemetry"
MODE = 0o600
BYTES_MAX = 64 * 1024


class Telemetry(NamedTuple):
    """What is switched on: where the files are, the hub, and the token."""

    folder: str
    url: str
    token: str

    @property
    def script(self) -> str:
        """The file that a shell reads before it starts Claude Code or Gemini CLI."""
        return f"{self.folder}/{SCRIPT}"

    @property
    def codex(self) -> str:
        """The file with what belongs into the configuration of Codex."""
        return f"{self.folder}/{CODEX}"


class _State(msgspec.Struct):
    url: str
    token: str


def switch_on(client: TokenCalls, url: str) -> Telemetry:
    """Write the files for the hub at `url`; a token that still counts is kept."""
    found = read_telemetry(client)
    token = found.token if found is not None and _counts(client, found.token) else ""
    token = token or client.create_token(Role.REPORT, label=LABEL).text
    telemetry = Telemetry(_folder(client), url, token)
    make_private_folder(telemetry.folder)
    texts = {
        STATE: msgspec.json.encode(_State(url, token)).decode(),
        SCRIPT: exports(variables(url, token, CLAUDE, GEMINI)),
        CODEX: codex_config(url, token),
    }
    for name, text in texts.items():
        write_file(f"{telemetry.folder}/{name}", Content(text.encode(), MODE), durable=True)
    return telemetry


def switch_off(client: TokenCalls) -> bool:
    """End the token and remove the files; return whether telemetry was on."""
    found = None
    with suppress(CoordError):
        found = read_telemetry(client)
    if found is not None:
        info = client.find_token(found.token)
        if info is not None:
            client.revoke_token(info.id)
    was_on = os.path.isdir(_folder(client))
    shutil.rmtree(_folder(client), ignore_errors=True)
    return was_on


def read_telemetry(client: TokenCalls) -> Telemetry | None:
    """Return what is switched on for the store of a client; None if nothing is."""
    folder = _folder(client)
    path = f"{folder}/{STATE}"
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    with open(opened, "rb") as file:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise Refused(
                f"{path} is not private, so others may know the token",
                hint="coord telemetry off, then on: that makes another one",
            )
        try:
            state = msgspec.json.decode(file.read(BYTES_MAX), type=_State)
        except msgspec.MsgspecError as error:
            raise Refused(f"{path} is damaged", hint="coord telemetry off, then on") from error
    parse_token(state.token)
    return Telemetry(folder, state.url, state.token)


def variables_of_worker(client: TokenCalls, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which tools of `coord work` report; the user may have chosen another one."""
    if ENDPOINT in environ:
        return {}
    try:
        found = read_telemetry(client)
    except CoordError:
        return {}
    return {} if found is None else variables(found.url, found.token, CLAUDE, GEMINI)


def _counts(client: TokenCalls, token: str) -> bool:
    info = client.find_token(token)
    return info is not None and info.role is Role.REPORT


def _folder(client: TokenCalls) -> str:
    return f"{state_folder(client.environ)}/{FOLDER}/{client.database.store_id}.{client.tenant}"
