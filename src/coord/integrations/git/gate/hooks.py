"""The check of each git hook, and its report."""

import fnmatch
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from coord.core.errors import Corrupt, Invalid, NotFound
from coord.core.identity import Caller
from coord.core.sessions.commands import FindSession
from coord.host.caller import find_caller, find_tenant, shows_agent
from coord.host.store_location import find_location
from coord.integrations.git.gate.check import Finding, anonymous, check_commits
from coord.integrations.git.gate.commits import new_commits, staged, tips
from coord.integrations.git.gate.hidden_guides import hidden_guides, hidden_text
from coord.integrations.git.gate.sign import sign_message
from coord.integrations.git.gate.stubs import PROTECTED, PROTECTED_VARIABLE
from coord.integrations.git.run import Git
from coord.sdk.client.connection import Connection
from coord.sdk.client.open import open_location, open_timeout_s

FINDINGS_MAX = 10
"""How many problems are printed."""


class Gate(NamedTuple):
    """One call of a git hook: the repository, the store, and the caller of git."""

    git: Git
    connection: Connection
    caller: Caller
    person: bool
    protected: tuple[str, ...]
    arguments: list[str]


def run_hook(hook: str, arguments: list[str]) -> int:
    """Run the check of a hook; return its exit code."""
    check = _HOOKS.get(hook)
    if check is None:
        raise Invalid(
            f"coord has no gate for the hook {hook!r}", hint="run coord init to write the right hooks"
        )
    folder = os.environ.get("GIT_DIR") or os.getcwd()
    location = find_location(folder, os.environ)
    if location.repository is None or not location.pinned:  # the stub proves that coord was in use here
        raise Corrupt(
            "coord.id is missing, so the gate cannot find its store", hint="run coord init to restore it"
        )
    caller = find_caller(
        os.environ, cwd=os.getcwd(), repository=location.repository, project=location.project
    )
    timeout = open_timeout_s(os.environ)
    database, location = open_location(location, timeout)
    tenant = find_tenant(os.environ)
    with Connection(
        database, location, caller, tenant=tenant, cwd=folder, environ=os.environ, timeout=timeout
    ) as connection:
        person = False
        if hook == "pre-receive":
            caller = anonymous(caller)
        else:
            caller, person = _who(connection, caller)
        protected = tuple(os.environ.get(PROTECTED_VARIABLE, " ".join(PROTECTED)).split())
        gate = Gate(Git(os.getcwd(), in_hook=True), connection, caller, person, protected, arguments)
        return check(gate)


def _who(connection: Connection, caller: Caller) -> tuple[Caller, bool]:
    """Return the caller of git, and whether that is a person.

    Without signs of an agent tool, git may still run below the process of a registered session.
    """
    if shows_agent(os.environ):
        return caller, False
    try:
        shown = connection.call(FindSession(msgspec.structs.replace(caller, session="")))
    except (Invalid, NotFound):
        return caller, True
    agent = {"session": shown.session_id, "process": None, "person": False, "terminal": False}
    return msgspec.structs.replace(caller, **agent), False


def _pre_commit(gate: Gate) -> int:
    repository = gate.connection.location.repository
    hidden = hidden_guides(repository) if repository is not None and repository.root is not None else []
    if hidden:
        sys.stderr.write(f"coord: {hidden_text(hidden)}\n")
    return _report(gate, check_commits(gate.connection, gate.caller, [staged(gate.git)]))


def _prepare_commit_msg(gate: Gate) -> int:
    """Check the change that `--no-verify` hid from pre-commit, and add trailers to the message."""
    if gate.person:
        return 0
    file, source = gate.arguments[0], gate.arguments[1] if len(gate.arguments) > 1 else ""
    about_to = staged(gate.git)
    if source != "merge":  # a merge rightly contains the changes of others
        code = _report(gate, check_commits(gate.connection, gate.caller, [about_to]))
        if code:
            return code
    with open(file, encoding="utf-8", errors="surrogateescape", newline="") as message:
        text = message.read()
    if source == "message" and not text.strip():
        return 0  # git will refuse the empty message
    text = sign_message(gate.git, gate.connection, gate.caller, text, about_to.paths)
    with open(file, "w", encoding="utf-8", errors="surrogateescape", newline="") as message:
        message.write(text)
    return 0


def _reference_transaction(gate: Gate) -> int:
    if gate.arguments[:1] != ["prepared"]:
        return 0
    findings: dict[Finding, None] = {}
    for _, new, ref in _stdin_words(3):
        if _is_protected(gate, ref) and new.strip("0"):
            findings.update(dict.fromkeys(_check_new(gate, new, _accepted(gate))))
    return _report(gate, list(findings))


def _pre_push(gate: Gate) -> int:
    remote = gate.arguments[0] if gate.arguments else ""
    findings: dict[Finding, None] = {}
    for _, new, ref, old in _stdin_words(4):
        if not new.strip("0"):
            continue
        of_remote = [f"refs/remotes/{remote}/{branch}" for branch in gate.protected]
        known = (
            tips(gate.git, *of_remote)
            if _is_protected(gate, ref)
            else tips(gate.git, f"refs/remotes/{remote}/")
        )
        if old.strip("0") and gate.git.run("cat-file", "-e", f"{old}^{{commit}}").code == 0:
            known.append(old)
        findings.update(dict.fromkeys(_check_new(gate, new, known)))
    return _report(gate, list(findings))


def _pre_receive(gate: Gate) -> int:
    findings: dict[Finding, None] = {}
    for _, new, ref in _stdin_words(3):
        if new.strip("0") and ref.startswith("refs/heads/"):
            known = _accepted(gate) if _is_protected(gate, ref) else tips(gate.git, "refs/")
            findings.update(dict.fromkeys(_check_new(gate, new, known)))
    return _report(gate, list(findings))


def _check_new(gate: Gate, new: str, known: Sequence[str]) -> list[Finding]:
    return check_commits(gate.connection, gate.caller, new_commits(gate.git, new, known))


def _accepted(gate: Gate) -> list[str]:
    """Return the tips of protected branches, here and at remotes: their commits were checked before."""
    here = [f"refs/heads/{branch}" for branch in gate.protected]
    return tips(gate.git, *here, *(f"refs/remotes/*/{branch}" for branch in gate.protected))


def _is_protected(gate: Gate, ref: str) -> bool:
    return any(fnmatch.fnmatchcase(ref, f"refs/heads/{branch}") for branch in gate.protected)


def _stdin_words(number: int) -> Iterator[list[str]]:
    """Yield the words of each line that git writes to a hook."""
    for line in os.fsdecode(sys.stdin.buffer.read()).splitlines():
        words = line.split(" ")
        if len(words) == number:
            yield words
        elif line:
            raise Invalid(
                f"git sent an unknown line to its hook: {line!r}",
                hint="run coord doctor; coord may be too old",
            )


def _report(gate: Gate, findings: Sequence[Finding]) -> int:
    """Print the problems; return the exit code of the hook."""
    said = [line for finding in findings[:FINDINGS_MAX] for line in (finding.what, f"  {finding.next_step}")]
    if len(findings) > FINDINGS_MAX:
        said.append(f"… and {len(findings) - FINDINGS_MAX} more")
    if findings:
        said.append("Warning only: agents would be stopped here." if gate.person else "refused")
    sys.stderr.write("".join(f"coord: {line}\n" for line in said))
    return 1 if findings and not gate.person else 0


_HOOKS: dict[str, Callable[[Gate], int]] = {
    "pre-commit": _pre_commit,
    "prepare-commit-msg": _prepare_commit_msg,
    "reference-transaction": _reference_transaction,
    "pre-push": _pre_push,
    "pre-receive": _pre_receive,
}
