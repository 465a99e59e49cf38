"""`coord merge`: merge branches into another branch, one merge at a time.

The commits of a branch are checked (`scope.py`), the branch is merged in memory (`tree.py`), and a command
may check the result (`check.py`). Then the ref moves by compare-and-swap; if somebody else moved it, the
merge is repeated on top. The lock only saves others from doing the same work in vain. A refusal touches no
branch, no worktree and no file.

Several branches are merged on top of each other and checked once. If the check fails, each half is tried
again, down to the branch that fails; the others are merged. The ref never points to an unchecked commit.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import NamedTuple

from coord.core.errors import Busy, Invalid, NotFound, Refused
from coord.core.git_log import RecordMerge
from coord.integrations.git.gate.check import Finding, shown_path
from coord.integrations.git.gate.trailers import SESSION
from coord.integrations.git.interrupted_move import CHECKOUT, REF_ONLY, recover_moves
from coord.integrations.git.merge.check import CheckResult, check, remove_stale_worktrees
from coord.integrations.git.merge.queue_lock import LOCK, LOCK_TTL_S, release_dead_uses, use_name
from coord.integrations.git.merge.scope import Signer, check_branch, signer_of
from coord.integrations.git.merge.tree import (
    Party,
    changed_files,
    check_git,
    commit_tree,
    merge_trees,
    parties,
)
from coord.integrations.git.run import Git, GitFailed, as_text
from coord.integrations.git.unfinished import Note, own_process, running
from coord.integrations.git.worktree.worktree import git_dir, worktrees
from coord.integrations.git.writable import require_writable_git
from coord.sdk.client.blocks import LockBlock
from coord.sdk.client.client import Client

TRIES = 10
BRANCHES_MAX = 256
FILES_MAX = 50
CHECK_S = 1800.0


class MergeStatus(StrEnum):
    """The result for one branch."""

    MERGED = "merged"
    NOTHING_NEW = "nothing_new"
    REFUSED = "refused"
    CONFLICT = "conflict"
    CHECK_FAILED = "check_failed"


class Outcome(NamedTuple):
    """The result for one branch, and the reason."""

    branch: str
    tip: str
    status: MergeStatus
    commit: str = ""
    files: tuple[str, ...] = ()
    parties: tuple[Party, ...] = ()
    findings: tuple[Finding, ...] = ()
    said: str = ""


class MergeRequest(NamedTuple):
    """The branches to merge, and how to check them."""

    branches: tuple[str, ...]
    into: str
    check: tuple[str, ...] = ()
    check_s: float = CHECK_S
    any_file: bool = False
    wait_s: float | None = None


class MergeReport(NamedTuple):
    """The target branch before and after, and the result for each branch."""

    into: str
    before: str
    after: str
    outcomes: list[Outcome]
    warnings: list[str]

    @property
    def ok(self) -> bool:
        """Whether the target contains all branches now."""
        return all(each.status in (MergeStatus.MERGED, MergeStatus.NOTHING_NEW) for each in self.outcomes)


class _Branch(NamedTuple):
    name: str
    tip: str


class _Step(NamedTuple):
    """A branch merged on top of the ones before it."""

    branch: _Branch
    commit: str
    files: tuple[str, ...]


class _RefNotMoved(Exception):
    """Git refuses to move the ref, although nobody else moved it."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.what)
        self.finding = finding


def merge(
    client: Client,
    git: Git,
    request: MergeRequest,
    *,
    watch: Callable[[LockBlock], AbstractContextManager[object]] = nullcontext,
) -> MergeReport:
    """Merge branches under the lock of the merge queue; report those that cannot be merged.

    `watch` returns a block that frees the lock if this process dies inside it.
    """
    check_git(git)
    signer = signer_of(client)
    if request.any_file and not signer.person:
        raise Refused(
            "only a person may merge files that were changed without a lock",
            hint="lock and commit them again",
        )
    if not 0 < len(set(request.branches)) <= BRANCHES_MAX:
        raise Invalid(f"{len(request.branches)} branches in one merge", hint=f"name 1 to {BRANCHES_MAX}")
    names = list(dict.fromkeys(request.branches))
    for name in (request.into, *names):
        _tip(git, name)  # find a misspelled name before waiting for the lock
    require_writable_git(client.location.repository, "coord merge")
    reason = as_text(f"merge {', '.join(names)}")[:100]
    release_dead_uses(client)
    lock = client.lock(
        LOCK, profile="file", ttl_s=LOCK_TTL_S, wait_s=request.wait_s, reason=reason, name=use_name()
    )
    with watch(lock), lock as held:
        remove_stale_worktrees(git)
        recovered = _recover(git)
        before = _tip(git, request.into)
        branches = [_Branch(name, _tip(git, name)) for name in names]
        queue = _Queue(client, git, signer, request, held)
        queue.merge(branches)
        after = _tip(git, request.into)
    outcomes = sorted(queue.outcomes, key=lambda outcome: names.index(outcome.branch))
    return MergeReport(request.into, before, after, outcomes, [*recovered, *_warnings(git, branches)])


class _Queue:
    """Merges the branches of one request."""

    def __init__(
        self, client: Client, git: Git, signer: Signer, request: MergeRequest, held: LockBlock
    ) -> None:
        self._client, self._git, self._signer, self._request, self._held = client, git, signer, request, held
        self._ref = f"refs/heads/{request.into}"
        self._owners = {each.branch: each.owner for each in worktrees(git)}
        self._checked: dict[str, CheckResult] = {}
        self.outcomes: list[Outcome] = []

    def merge(self, branches: Sequence[_Branch]) -> None:
        """Merge branches in order; after a failing check try each half."""
        for _ in range(TRIES):
            base = _tip(self._git, self._request.into)
            branches = self._acceptable(base, branches)
            steps, conflicts = self._steps(base, branches)
            failed = self._failing_check(base, steps)
            if failed is not None:
                self._find_culprit(branches, steps, failed)
                return
            # The check may have taken long, so the branches are checked again.
            again = [step.branch for step in steps] if self._request.check else []
            if len(self._acceptable(base, again)) < len(again):
                branches = self._undecided(branches)
                continue
            try:
                moved = not steps or self._move(base, steps[-1].commit)
            except _RefNotMoved as stuck:
                self._record_outcomes(
                    *(self._refused(step.branch, stuck.finding) for step in steps), *conflicts
                )
                return
            if moved:
                self._record_outcomes(*(self._merged(step) for step in steps), *conflicts)
                return
        raise Busy(f"{self._request.into} changes faster than coord can merge", hint="try again")

    def _acceptable(self, base: str, branches: Sequence[_Branch]) -> list[_Branch]:
        """Return the branches without problems; record the others as refused."""
        found = []
        for branch in branches:
            if self._git.run("merge-base", "--is-ancestor", branch.tip, base).code == 0:
                self._record_outcomes(Outcome(*branch, MergeStatus.NOTHING_NEW, base))
                continue
            owner = self._owners.get(branch.name, "")
            signer = Signer(owner, person=False) if owner else self._signer
            findings = check_branch(
                self._client, self._git, signer, branch.tip, base, any_file=self._request.any_file
            )
            if findings:
                self._record_outcomes(self._refused(branch, *findings))
            else:
                found.append(branch)
        return found

    def _undecided(self, branches: Sequence[_Branch]) -> list[_Branch]:
        decided = {outcome.branch for outcome in self.outcomes}
        return [branch for branch in branches if branch.name not in decided]

    def _steps(self, base: str, branches: Sequence[_Branch]) -> tuple[list[_Step], list[Outcome]]:
        """Merge the branches on top of each other; leave out those that conflict."""
        steps, conflicts, top = list[_Step](), list[Outcome](), base
        for branch in branches:
            try:
                found = merge_trees(self._git, top, branch.tip)
            except GitFailed as error:  # histories without a common commit
                conflicts.append(self._refused(branch, Finding(error.message, error.hint)))
                continue
            if found.conflicts:
                names = (self._request.into, branch.name)
                who = parties(self._git, top, branch.tip, found.conflicts, names)
                conflicts.append(Outcome(*branch, MergeStatus.CONFLICT, "", found.conflicts, tuple(who)))
                continue
            message = f"Merge branch '{branch.name}'\n\n{SESSION}: {self._signer.session}\n"
            commit = commit_tree(self._git, found.tree, [top, branch.tip], message)
            steps.append(_Step(branch, commit, tuple(changed_files(self._git, top, commit))))
            top = commit
        return steps, conflicts

    def _failing_check(self, base: str, steps: Sequence[_Step]) -> CheckResult | None:
        """Run the check on the last step; return its failure. Raise if the target itself fails."""
        if not self._request.check or not steps:
            return None
        last = self._check(steps[-1].commit)
        if last.passed:
            return None
        before = self._check(base)
        if not before.passed:
            raise Refused(
                f"the check fails on {self._request.into} itself: {before.said.splitlines()[-1]}",
                hint="fix that branch first; nothing was merged",
            )
        return last

    def _check(self, commit: str) -> CheckResult:
        tree = self._git.must("rev-parse", f"{commit}^{{tree}}").text
        if tree not in self._checked:
            request = self._request
            self._checked[tree] = check(self._git, commit, request.check, self._held, request.check_s)
        return self._checked[tree]

    def _find_culprit(self, branches: Sequence[_Branch], steps: Sequence[_Step], failed: CheckResult) -> None:
        """Find the branch that fails the check, and merge the others, also those that conflicted with it."""
        if len(steps) > 1:
            half = len(branches) // 2
            self.merge(branches[:half])
            self.merge(branches[half:])
            return
        (step,) = steps
        self._record_outcomes(
            Outcome(*step.branch, MergeStatus.CHECK_FAILED, files=step.files, said=failed.said)
        )
        others = [branch for branch in branches if branch != step.branch]
        if others:
            self.merge(others)

    def _move(self, base: str, commit: str) -> bool:
        """Move the ref if nobody else moved it, and update the worktree that has it checked out."""
        self._held.check()
        sign_message = {} if self._signer.person else {"COORD_SESSION_ID": self._signer.session}
        folder = _checked_out(self._git).get(self._request.into, "")
        git = Git(folder or self._git.folder, environ={**self._git.environ, **sign_message})
        # As in a pull, git refuses to touch uncommitted changes, also in ignored files.
        options = ("--quiet", "--ff-only", "--no-autostash", "--no-overwrite-ignore")
        words = (
            ("merge", *options, commit)
            if folder
            else ("update-ref", "-m", "coord merge", self._ref, commit, base)
        )
        kind = CHECKOUT if folder else REF_ONLY
        note = Note(kind, own_process(), head=base, ref=self._ref, target=commit)
        with running(_notes_of(git, folder), note) as noted:
            done = git.run(*words, starter=noted.starter())
        if done.code and _tip(git, self._request.into) == base:
            if folder:  # git writes the files before its reference-transaction hook refuses
                git.run("read-tree", "-m", "-u", commit, base)
            where = f" in {shown_path(folder)}" if folder else ""
            what = f"git cannot move {self._request.into}{where}: {' '.join(done.stderr.split())[:500]}"
            raise _RefNotMoved(Finding(what, f"fix that{where} and merge again; nothing was changed"))
        # Somebody may have switched that worktree to another branch.
        return not done.code and not git.run("merge-base", "--is-ancestor", commit, self._ref).code

    def _merged(self, step: _Step) -> Outcome:
        return Outcome(*step.branch, MergeStatus.MERGED, step.commit, step.files)

    def _refused(self, branch: _Branch, *findings: Finding) -> Outcome:
        return Outcome(*branch, MergeStatus.REFUSED, findings=findings)

    def _record_outcomes(self, *outcomes: Outcome) -> None:
        """Keep outcomes and record them in the log, except for branches without new commits."""
        for outcome in outcomes:
            self.outcomes.append(outcome)
            if outcome.status is not MergeStatus.NOTHING_NEW:
                self._client.call(self._record(outcome))

    def _record(self, outcome: Outcome) -> RecordMerge:
        detail = "; ".join(finding.what for finding in outcome.findings) or outcome.said
        return RecordMerge(
            self._client.caller,
            branch=as_text(outcome.branch),
            into=as_text(self._request.into),
            tip=outcome.tip,
            commit=outcome.commit,
            status=outcome.status.value,
            files=tuple(as_text(path) for path in outcome.files[:FILES_MAX]),
            parties=tuple(dict.fromkeys(as_text(party.who) for party in outcome.parties)),
            detail=as_text(detail[-500:]),
        )


def _notes_of(git: Git, folder: str) -> str:
    """Return the git directory for the note of a move: of the worktree, or of the repository."""
    return (
        git_dir(git) if folder else git.must("rev-parse", "--path-format=absolute", "--git-common-dir").text
    )


def _recover(git: Git) -> list[str]:
    """Undo what killed merges have left in any worktree."""
    done = recover_moves(git, _notes_of(git, ""))
    for each in worktrees(git):
        inside = Git(each.path, environ=git.environ)
        if each.present and not each.main:
            done += recover_moves(inside, git_dir(inside))
    return done


def _tip(git: Git, branch: str) -> str:
    named = git.run("check-ref-format", f"refs/heads/{branch}")
    done = git.run("rev-parse", "--quiet", "--verify", f"refs/heads/{branch}^{{commit}}")
    if named.code or done.code:
        raise NotFound(f"there is no branch {branch!r}", hint="git branch lists the branches")
    return done.text


def default_branch(git: Git, protected: Sequence[str]) -> str:
    """Return the first of some branches that exists."""
    for name in protected:
        if git.run("rev-parse", "--quiet", "--verify", f"refs/heads/{name}").code == 0:
            return name
    raise Invalid(f"there is no branch {' or '.join(protected)}", hint="name the target with --into BRANCH")


def _checked_out(git: Git) -> dict[str, str]:
    """Return the worktree of each checked out branch."""
    return {each.branch: each.path for each in reversed(worktrees(git)) if each.branch and each.present}


def _warnings(git: Git, branches: Sequence[_Branch]) -> list[str]:
    """Return a warning for each branch with uncommitted changes."""
    folders, warnings = _checked_out(git), []
    for branch in branches:
        folder = folders.get(branch.name)
        if folder and Git(folder, environ=git.environ).must("status", "--porcelain", "-z").names:
            warnings.append(
                f"{shown_path(folder)} has uncommitted changes of {branch.name}, which are not merged"
            )
    return warnings
