"""The environment of a gate: the variables of its caller must not change what it sees.

Git passes on whatever its caller has set. A variable could name other objects, other parents or other
settings than those that the branch will have afterwards.
"""

import os
from collections.abc import Mapping

from coord.host.repository import Repository
from coord.integrations.git.run import Git

_KEPT = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Git sets these for its hooks. All others are dropped."""
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.commitGraph": "false",  # it repeats who the parents are, and anybody could have written it
    "trailer.separators": ":",
    "i18n.logOutputEncoding": "UTF-8",
}


def gate_git(folder: str, repository: Repository | None, environ: Mapping[str, str] = os.environ) -> Git:
    """Return the git of a gate, which sees real objects, real parents and no settings of its caller."""
    assert repository is not None, "a hook has a repository"
    given = {name: value for name, value in environ.items() if not name.startswith("GIT_") or name in _KEPT}
    foreign = environ.get("GIT_EXEC_PATH", "")
    folders = given.get("PATH", os.defpath).split(os.pathsep)
    given["PATH"] = os.pathsep.join(each for each in folders if not foreign or each != foreign)
    if repository.root is None or "GIT_DIR" in environ:
        given["GIT_DIR"] = os.path.abspath(folder)
    given |= _objects(repository.commondir, environ)
    given |= {"GIT_GRAFT_FILE": os.devnull, "GIT_CONFIG_COUNT": str(len(_SETTINGS))}
    for number, (key, value) in enumerate(_SETTINGS.items()):
        given |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return Git(os.getcwd(), in_hook=True, environ=given)


def _objects(commondir: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for the objects of a push, which git keeps apart until its hooks allow it."""
    objects = f"{commondir}/objects"
    apart = os.path.realpath(environ.get("GIT_QUARANTINE_PATH", "") or "/")
    if os.path.dirname(apart) != os.path.realpath(objects):
        return {}
    return {
        "GIT_OBJECT_DIRECTORY": apart,
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects,
        "GIT_QUARANTINE_PATH": apart,
    }


def commondir_of_stub(stub: str) -> str:
    """Return the git directory that a stub lies in: `hooks/…` or `coord/hooks/…`."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(stub)))
    if os.path.basename(folder) == "coord":
        folder = os.path.dirname(folder)
    return os.path.realpath(folder)
