"""The check of each git hook, and its report."""

import fnmatch
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from coord.core.errors import CoordError, Corrupt, Invalid, NotFound
from coord.core.git_log import RecordCommitRefusal
from coord.core.identity import Caller
from coord.core.sessions.commands import FindSession
from coord.host.caller import find_caller, find_tenant, shows_agent
from coord.host.store_location import find_location
from coord.integrations.git.gate.accepted import ProtectedBranch, accept, protected_branches
from coord.integrations.git.gate.check import Finding, anonymous, check_commits
from coord.integrations.git.gate.commits import new_commits, staged, tips
from coord.integrations.git.gate.environment import commondir_of_stub, gate_git
from coord.integrations.git.gate.hidden_guides import hidden_guides, hidden_text
from coord.integrations.git.gate.sign import sign_message
from coord.integrations.git.gate.stubs import (
    GIT_VARIABLE,
    PROTECTED,
    PROTECTED_VARIABLE,
    SHARED_VARIABLE,
    STUB_VARIABLE,
    TENANT_VARIABLE,
)
from coord.integrations.git.gate.upstream import upstream_tips
from coord.integrations.git.run import Git
from coord.sdk.client.connection import Connection
from coord.sdk.client.open import open_location, open_timeout_s

REPLACE = "refs/replace/"
DELETING = "coord/deleting"
"""Where the stub notes the branch that git is about to delete."""
DETAIL_CHARS_MAX = 200
FINDINGS_MAX = 10
"""How many problems are printed."""


class Gate(NamedTuple):
    """One call of a git hook: the repository, the store, and the caller of git."""

    git: Git
    connection: Connection
    caller: Caller
    person: bool
    shared: bool
    protected: tuple[str, ...]
    arguments: list[str]
    hook: str

    @property
    def commondir(self) -> str:
        """The git directory whose branches and hooks these are."""
        repository = self.connection.location.repository
        assert repository is not None, "run_hook found it"
        return repository.commondir


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
    _check_repository(location.repository.commondir)
    caller = find_caller(
        os.environ, cwd=os.getcwd(), repository=location.repository, project=location.project
    )
    timeout = open_timeout_s(os.environ)
    shared = bool(os.environ.get(SHARED_VARIABLE))
    tenant = _tenant(shared=shared)
    database, location = open_location(location, timeout)
    with Connection(
        database, location, caller, tenant=tenant, cwd=folder, environ=os.environ, timeout=timeout
    ) as connection:
        person = False
        if shared:
            caller = anonymous(caller)
        else:
            caller, person = _who(connection, caller)
        protected = tuple(os.environ.get(PROTECTED_VARIABLE, " ".join(PROTECTED)).split())
        git = gate_git(folder, connection.location.repository)
        return check(Gate(git, connection, caller, person, shared, protected, arguments, hook))


def _check_repository(commondir: str) -> None:
    """Raise if git works on another repository than the one whose hook this is.

    Variables such as GIT_COMMON_DIR could otherwise choose by whose locks a gate checks.
    """
    stub = os.environ.get(STUB_VARIABLE, "")
    if stub and commondir_of_stub(stub) != commondir:
        raise Invalid(
            f"git works on {commondir}, but its hook belongs to {commondir_of_stub(stub)}",
            hint="unset GIT_DIR, GIT_COMMON_DIR and core.hooksPath",
        )


def _tenant(*, shared: bool) -> str:
    """Return the tenant that the stub names; the environment of a local caller has to agree."""
    ours, theirs = os.environ.get(TENANT_VARIABLE, ""), find_tenant(os.environ)
    if ours and ours != theirs and not shared:
        raise Invalid(
            f"COORD_TENANT says {theirs}, but the gates of this repository check tenant {ours}",
            hint=f"unset COORD_TENANT, or move the gates: coord init --yes --tenant {theirs}",
        )
    return ours or theirs


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
    """Check whatever moves a protected branch, or what it shows."""
    if gate.arguments[:1] != ["prepared"]:
        return 0
    branches = protected_branches(gate.git, gate.commondir, gate.protected)
    moves: list[tuple[ProtectedBranch, str]] = []
    findings: dict[Finding, None] = {}
    renamed = _Renamed("", "")
    for _, new, ref in _stdin_words(3):
        if ref.startswith(REPLACE) and new.strip("0") and not gate.shared:
            findings[_replaces(ref)] = None
        for branch in _moved(gate, branches, ref):
            renamed = renamed if new.strip("0") else _renamed_to(gate, branch)
            if new.strip("0") or renamed.tip:
                findings.update(dict.fromkeys(_check_move(gate, branches, branch, renamed.tip or new)))
                moves.append((branch, renamed.tip or new))
            elif not gate.person and not _prunes(gate, branch):
                findings[_deletes(branch)] = None
    code = _decide(gate, list(findings), moves)
    if code and renamed.tip:  # git has deleted it already, and would stop without it
        gate.git.run("update-ref", renamed.ref, renamed.tip, "0" * len(renamed.tip))
        logs = f"{gate.commondir}/logs"
        with suppress(OSError):  # otherwise git could rename no branch any more
            os.replace(f"{logs}/refs/.tmp-renamed-log", f"{logs}/{renamed.ref}")
    return code


class _Renamed(NamedTuple):
    """The branch that git is renaming to a protected one."""

    ref: str
    tip: str


def _renamed_to(gate: Gate, branch: ProtectedBranch) -> _Renamed:
    """Return the branch that the same git has just deleted; empty if it only deletes the protected one."""
    try:
        with open(f"{gate.commondir}/{DELETING}", encoding="utf-8", errors="surrogateescape") as file:
            process, old, _, ref = file.read(8192).split()
    except (OSError, ValueError):
        return _Renamed("", "")
    same = process == os.environ.get(GIT_VARIABLE) and ref != branch.ref and old.strip("0")
    gone = same and gate.git.run("rev-parse", "--quiet", "--verify", ref).code
    return _Renamed(ref, old) if gone else _Renamed("", "")


def _pre_push(gate: Gate) -> int:
    remote = gate.arguments[0] if gate.arguments else ""
    findings: dict[Finding, None] = {}
    for _, new, ref, old in _stdin_words(4):
        if not new.strip("0"):
            continue
        if old.strip("0") and gate.git.run("cat-file", "-e", f"{old}^{{commit}}").code == 0:
            known = [old]
        else:
            branches = protected_branches(gate.git, gate.commondir, gate.protected)
            known = [tip for branch in branches for tip in branch.known]
        if not _is_protected(gate, ref):
            known += tips(gate.git, f"refs/remotes/{remote}/")
        findings.update(dict.fromkeys(_check_new(gate, new, known)))
    return _report(gate, list(findings))


def _pre_receive(gate: Gate) -> int:
    """Check pushed branches; all other refs can wait until a branch gets their commits."""
    branches = protected_branches(gate.git, gate.commondir, gate.protected)
    moves: list[tuple[ProtectedBranch, str]] = []
    findings: dict[Finding, None] = {}
    for _, new, ref in _stdin_words(3):
        if not new.strip("0"):
            continue
        moved = _moved(gate, branches, ref)
        for branch in moved:
            findings.update(dict.fromkeys(_check_move(gate, branches, branch, new)))
            moves.append((branch, new))
        if not moved and ref.startswith("refs/heads/"):
            findings.update(dict.fromkeys(_check_new(gate, new, tips(gate.git, "refs/heads/"))))
    return _decide(gate, list(findings), moves)


def _moved(gate: Gate, branches: Sequence[ProtectedBranch], ref: str) -> list[ProtectedBranch]:
    """Return the protected branches that move with a ref: itself, and symbolic refs that lead to it."""
    found = [branch for branch in branches if ref in (branch.ref, branch.target)]
    return found or ([ProtectedBranch(ref, "", ())] if _is_protected(gate, ref) else [])


def _check_move(
    gate: Gate, branches: Sequence[ProtectedBranch], branch: ProtectedBranch, new: str
) -> list[Finding]:
    """Return the problems of commits that no protected branch has yet, here or at the origin."""
    known = [tip for each in branches for tip in each.known]
    findings = _check_new(gate, new, known)
    if findings and not gate.shared:
        beyond = upstream_tips(gate.commondir, gate.protected)
        findings = _check_new(gate, new, [*known, *beyond]) if beyond else findings
    if findings and branch.bypassed:
        findings.append(
            Finding(
                f"{branch.ref.removeprefix('refs/heads/')} was moved to {branch.tip[:10]} without its gate",
                f"move it back: git update-ref {branch.ref} {branch.accepted[-1]}",
            )
        )
    return findings


def _check_new(gate: Gate, new: str, known: Sequence[str]) -> list[Finding]:
    return check_commits(gate.connection, gate.caller, new_commits(gate.git, new, known))


def _prunes(gate: Gate, branch: ProtectedBranch) -> bool:
    """Whether git only removes the file of a ref that it has packed (`git pack-refs`, `git gc`)."""
    if os.path.exists(f"{gate.commondir}/packed-refs.lock"):  # git packs the deletion too
        return False
    with suppress(OSError), open(f"{gate.commondir}/packed-refs", encoding="utf-8", errors="replace") as file:
        return f"{branch.tip} {branch.ref}\n" in file
    return False


def _deletes(branch: ProtectedBranch) -> Finding:
    name = branch.ref.removeprefix("refs/heads/")
    return Finding(
        f"{name} is protected: an agent may not delete or rename it",
        f"make another branch (git branch NAME {name}), or move it: git update-ref {branch.ref} COMMIT",
    )


def _replaces(ref: str) -> Finding:
    return Finding(
        f"git replace would show another object instead of {ref.removeprefix(REPLACE)[:10]}, in every branch",
        "make a commit instead",
    )


def _is_protected(gate: Gate, ref: str) -> bool:
    return any(fnmatch.fnmatchcase(ref, f"refs/heads/{branch}") for branch in gate.protected)


def _decide(gate: Gate, findings: list[Finding], moves: Sequence[tuple[ProtectedBranch, str]]) -> int:
    """Report the problems, and write down what the gate lets through."""
    code = _report(gate, findings)
    for branch, new in moves if not code else ():
        accept(gate.commondir, branch, new)
    return code


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
    if not findings or gate.person:
        return 0
    if gate.shared:  # the session of a push is not known here
        return 1
    refusal = RecordCommitRefusal(
        gate.caller, hook=gate.hook, findings=len(findings), detail=findings[0].what[:DETAIL_CHARS_MAX]
    )
    with suppress(CoordError):  # the refusal counts, recorded or not
        gate.connection.call(refusal)
    return 1


_HOOKS: dict[str, Callable[[Gate], int]] = {
    "pre-commit": _pre_commit,
    "prepare-commit-msg": _prepare_commit_msg,
    "reference-transaction": _reference_transaction,
    "pre-push": _pre_push,
    "pre-receive": _pre_receive,
}
