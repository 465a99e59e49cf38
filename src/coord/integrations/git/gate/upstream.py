"""The protected branches of the remotes that a person confirmed with `coord init`.

A commit that the origin has in a protected branch was checked there. But a remote-tracking branch is a ref
like any other, and the address of a remote is a line of configuration: an agent could write both. So a gate
asks the remote itself, at the address that `coord init` noted, and only if it would refuse otherwise.
"""

import os
from collections.abc import Sequence

from coord.core.errors import CoordError
from coord.host.repository import Repository
from coord.integrations.git.gate.accepted import note_branches
from coord.integrations.git.gate.stubs import PROTECTED
from coord.integrations.git.run import Git

FILE = "coord/remotes"
TIMEOUT_S = 10.0
_REMOTES_MAX = 8


def note_trusted(repository: Repository, *, by: str = "") -> None:
    """Write down what the gates start from: the protected branches, and the addresses of remotes.

    An agent tool (`by`) cannot add a remote.
    """
    git = Git(repository.root or repository.commondir)
    if repository.root is not None:
        note_branches(git, repository.commondir, PROTECTED)
    if by:
        return
    names = git.run("remote").text.split()
    addresses = [git.run("ls-remote", "--get-url", "--", name).text for name in names]
    path = f"{repository.commondir}/{FILE}"
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(f"{address}\n" for address in dict.fromkeys(addresses) if address)
    os.replace(file.name, path)


def upstream_tips(commondir: str, protected: Sequence[str]) -> list[str]:
    """Return the commits of protected branches at the noted remotes; fetch those that are missing here."""
    git = _git(commondir)
    found: list[str] = []
    for address in _addresses(commondir):
        try:
            found += _tips(git, address, [f"refs/heads/{branch}" for branch in protected])
        except CoordError:  # unreachable: what the gate cannot ask for it checks itself
            continue
    return found


def _tips(git: Git, address: str, refs: list[str]) -> list[str]:
    if git.run("ls-remote", "--get-url", "--", address).text != address:  # a later url.….insteadOf
        return []
    listed = git.run("ls-remote", "--quiet", "--", address, *refs, timeout_s=TIMEOUT_S)
    lines = [line.partition("\t") for line in listed.text.splitlines()] if not listed.code else []
    tips = {ref: tip for tip, _, ref in lines}
    missing = [ref for ref, tip in tips.items() if git.run("cat-file", "-e", f"{tip}^{{commit}}").code]
    if missing:
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--refmap=")
        git.run("fetch", *options, "--", address, *missing, timeout_s=TIMEOUT_S)
    return [tip for tip in tips.values() if not git.run("cat-file", "-e", f"{tip}^{{commit}}").code]


def _addresses(commondir: str) -> list[str]:
    try:
        with open(f"{commondir}/{FILE}", encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()[:_REMOTES_MAX]
    except OSError:
        return []


def _git(commondir: str) -> Git:
    """Return a git without the caller's variables, which could name another program or another address."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return Git(commondir, in_hook=True, environ={**given, "GIT_DIR": commondir})
