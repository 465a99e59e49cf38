"""Recognise a coord that something may remove at any time: a cache, a build or a temporary folder.

`uvx coord init` and `pipx run coord init` run coord from a cache. Hooks that name this cache fail as soon as
it is cleaned, so init warns, and names the command that installs coord for good.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from shlex import quote

from coord.integrations.setup.tools import program

CACHE_TAG = "CACHEDIR.TAG"
"""Tools that keep a cache put this file into its top folder."""
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - compared with, never written to
CACHE_VARIABLES = ("XDG_CACHE_HOME", "UV_CACHE_DIR", "PIP_CACHE_DIR", "TMPDIR", "XDG_RUNTIME_DIR")
CACHE_FOLDERS = (".cache", "Library/Caches", ".local/pipx/.cache", ".local/share/pipx/.cache")


def ephemeral_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of this coord or of its Python that may vanish; empty if both are installed."""
    for path in (sys.prefix, program("")):
        if is_ephemeral(path, environ):
            return path.rstrip("/")
    return ""


def is_ephemeral(path: str, environ: Mapping[str, str]) -> bool:
    """Whether a folder is below a cache or a temporary folder; a repository there counts as installed."""
    path = os.path.realpath(path)
    tops = {os.path.realpath(top) for top in _tops(environ)}
    above = os.path.dirname(path)
    while above != os.path.dirname(above):
        if os.path.lexists(f"{above}/.git"):
            return False
        if above in tops or os.path.basename(above).startswith("pip-build-env-"):
            return True
        if os.path.isfile(f"{above}/{CACHE_TAG}") and not os.path.isfile(f"{above}/pyvenv.cfg"):
            return True
        above = os.path.dirname(above)
    return False


def _tops(environ: Mapping[str, str]) -> Iterator[str]:
    home = environ.get("HOME") or os.path.expanduser("~")
    yield from TEMPORARY
    yield tempfile.gettempdir()
    yield from (environ[name] for name in CACHE_VARIABLES if environ.get(name))
    yield from (f"{home}/{name}" for name in CACHE_FOLDERS)


def stable_command(environ: Mapping[str, str]) -> str:
    """Return the commands that install this coord for good, and write its hooks again."""
    source = quote(_source())
    for installer, words in (("uv", "uv tool install"), ("pipx", "pipx install")):
        if shutil.which(installer, path=environ.get("PATH")):
            return f"{words} {source} && coord init --yes"
    folder = "~/.local/coord"
    installs = f"python3 -m venv {folder} && {folder}/bin/pip install {source}"
    return f"{installs} && {folder}/bin/coord init --yes"


def _source() -> str:
    """Return what this coord was installed from: a folder, a URL, or its name in the package index."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        named = distribution("coord").read_text("direct_url.json")
        url = str(json.loads(named)["url"]) if named else ""
    except (PackageNotFoundError, ValueError, KeyError, TypeError):
        return "coord"
    return url.removeprefix("file://") or "coord"


def warning(folder: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return what is wrong with hooks that run from such a folder, and the next step."""
    message = (
        f"the hooks run a program in {folder}, which may be removed at any time: then agents cannot write"
    )
    return message, stable_command(environ)
