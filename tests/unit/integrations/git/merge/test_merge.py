"""What `coord merge` lets in, and what it refuses: on a real repository, nothing changes where it refuses."""

import pytest

from coord.core.errors import Denied, NotFound, Refused
from coord.integrations.git.merge import merge
from coord.integrations.git.merge.merge import MergeStatus
from coord.integrations.git.merge.queue_lock import LOCK
from coord.integrations.git.run import Git
from coord.integrations.git.worktree import worktree
from tests.support.git_harness import GitHarness


def test_a_branch_in_scope_becomes_part_of_main(harness: GitHarness) -> None:
    """GIT-8, GIT-14: what was changed under locks is merged, and the worktree of main follows."""
    before, tip = harness.tip(), harness.work("ann", {"app.py": "1\n2\n3\nann\n", "new.py": "new\n"})
    done = harness.merge("ann", "ann")
    assert done.ok
    assert done.before == before
    assert done.after == harness.tip() == done.outcomes[0].commit
    assert harness.git("shop", "log", "-1", "--format=%P") == f"{before} {tip}"
    assert "Coord-Session: ann" in harness.git("shop", "log", "-1", "--format=%B")
    assert (harness.text("app.py"), harness.text("new.py")) == ("1\n2\n3\nann\n", "new\n")
    assert harness.clean()
    (event,) = harness.events("git.merged")
    assert event["files"] == ["app.py", "new.py"]
    assert event["commit"] == harness.tip()
    assert harness.client().locks() == []
    assert harness.one("ann", "ann").status is MergeStatus.NOTHING_NEW


def test_main_that_is_nowhere_checked_out_moves_too(harness: GitHarness) -> None:
    """GIT-8: the ref moves by compare-and-swap; a worktree is not needed."""
    tip = harness.work("ann", {"app.py": "ann\n"})
    harness.git("shop", "checkout", "-q", "--detach")
    assert harness.merge("ann", "ann").ok
    assert harness.git("shop", "rev-parse", "main^2") == tip
    assert harness.text("app.py") == "1\n2\n3\n"


def test_a_file_that_was_not_locked_is_out_of_scope(harness: GitHarness) -> None:
    """GIT-14: a file that its session never held is refused, by name, and nothing is merged of the branch."""
    harness.branch("ann")
    assert harness.client("ann").acquire("file:app.py").ok
    harness.commit("ann", {"app.py": "ann\n", "lib.py": "ann\n"})
    before = harness.tip()
    outcome = harness.one("ann", "ann")
    assert outcome.status is MergeStatus.REFUSED
    (finding,) = outcome.findings
    assert "changes lib.py, which ann had not locked" in finding.what
    assert "coord lock lib.py" in finding.next_step
    assert (harness.tip(), harness.text("app.py")) == (before, "1\n2\n3\n")
    (event,) = harness.events("git.merge_refused")
    assert event["status"] == "refused"
    assert "lib.py" in event["detail"]


def test_a_lock_that_was_held_when_the_edit_was_made_counts_after_its_end(harness: GitHarness) -> None:
    """CFL-33: the scope is that of the locks held at edit time, signed or not; no others count."""
    harness.client("ann").acquire("file:lib.py")
    harness.client("ann").unlock()
    harness.now += 60_000
    harness.write("shop", "lib.py", "main\n")
    harness.git("shop", "commit", "-q", "-m", "moved on")
    harness.branch("ann")
    harness.client("ann").acquire("file:*.md")
    harness.client("ann").unlock()
    harness.commit("ann", {"a.md": "ann\n"}, sign_message=False)
    assert harness.one("ann", "ann").status is MergeStatus.MERGED
    harness.now += 60_000
    harness.commit("ann", {"lib.py": "ann\n"}, sign_message=False)
    harness.now += 60_000
    harness.client("ann").acquire("file:lib.py")
    assert harness.one("ann", "ann").status is MergeStatus.REFUSED


def test_who_was_not_the_last_to_hold_a_file_did_not_hold_it(harness: GitHarness) -> None:
    """CFL-33: an edit made after somebody else had the file is not covered by the lock from before."""
    harness.branch("ann")
    for name in ("ann", "ben"):
        harness.client(name).acquire("file:app.py")
        harness.client(name).unlock()
    harness.now += 1000
    harness.commit("ann", {"app.py": "ann\n"})
    outcome = harness.one("ann", "ann")
    assert outcome.status is MergeStatus.REFUSED
    assert "which ann had not locked" in outcome.findings[0].what


def test_a_read_lock_is_none(harness: GitHarness) -> None:
    """GIT-14: who may only read a file does not bring it into scope."""
    harness.branch("ann")
    harness.client("ann").acquire("file:app.py", mode="read")
    harness.commit("ann", {"app.py": "ann\n"})
    assert harness.one("ann", "ann").status is MergeStatus.REFUSED


def test_a_fence_that_was_never_granted_proves_nothing(harness: GitHarness) -> None:
    """GIT-14: trailers are believed only as far as the store knows them."""
    harness.branch("ann")
    harness.write("ann", "app.py", "ann\n")
    forged = "change\n\nCoord-Session: ann\nCoord-Fence: 4711 file:app.py"
    harness.git("ann", "commit", "-q", "-m", forged)
    assert harness.one("ann", "ann").status is MergeStatus.REFUSED


def test_commits_without_a_session_are_a_persons_or_the_callers(harness: GitHarness) -> None:
    """GIT-14: a person needs no locks; an agent that leaves its name out does."""
    harness.branch("ann")
    harness.commit("ann", {"app.py": "ann\n"}, sign_message=False)
    assert harness.one("ann", "ann").status is MergeStatus.REFUSED
    assert harness.one("", "ann").status is MergeStatus.MERGED


def test_commits_without_a_session_belong_to_the_worktree_they_are_in(
    harness: GitHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIT-14: who merges the branch of another does not lend it the locks that it holds itself."""
    for name, value in harness.environ.items():
        monkeypatch.setenv(name, value)
    worktree.add(harness.client("ann"), "ann", branch="ann", path=str(harness.top / "ann"))
    harness.commit("ann", {"app.py": "ann\n"}, sign_message=False)
    assert harness.client("ben").acquire("file:app.py").ok
    for name in ("ben", ""):
        outcome = harness.one(name, "ann")
        assert outcome.status is MergeStatus.REFUSED
        assert "which ann had not locked" in outcome.findings[0].what


def test_only_a_person_merges_files_that_nobody_held(harness: GitHarness) -> None:
    """GIT-14: the way out of the scope is a person's decision."""
    harness.branch("ann")
    harness.commit("ann", {"app.py": "ann\n"})
    with pytest.raises(Refused, match="only a person"):
        harness.merge("ann", "ann", any_file=True)
    assert harness.one("", "ann").status is MergeStatus.REFUSED
    assert harness.one("", "ann", any_file=True).status is MergeStatus.MERGED


def test_a_lock_that_was_lost_to_another_does_not_count(harness: GitHarness) -> None:
    """CFL-33: what was committed under a fence that somebody has overtaken is refused, even for a person."""
    harness.branch("ann")
    harness.client("ann").acquire("file:app.py")
    harness.commit("ann", {"app.py": "ann\n"})
    harness.now += 301_000
    assert harness.client("ben").acquire("file:app.py").ok
    harness.client("ben").unlock()
    before = harness.tip()
    outcome = harness.one("", "ann", any_file=True)
    assert outcome.status is MergeStatus.REFUSED
    assert "ben has held it since" in outcome.findings[0].what
    assert harness.tip() == before


def test_what_was_finished_before_another_began_gets_in(harness: GitHarness) -> None:
    """GIT-14: a lock that was given back in order counts, although the file has another holder by now."""
    harness.branch("ann")
    harness.client("ann").acquire("file:app.py")
    harness.commit("ann", {"app.py": "ann\n"})
    harness.client("ann").unlock()
    harness.client("ben").acquire("file:app.py")
    assert harness.one("ann", "ann").status is MergeStatus.MERGED


def test_a_superseded_generation_never_gets_in(harness: GitHarness) -> None:
    """A claim that somebody has taken over is stale: its commits are refused at the merge, too."""
    harness.branch("ann")
    assert harness.client("ann").claim_task("A-001").success
    harness.client("ann").acquire("file:app.py")
    harness.commit("ann", {"app.py": "ann\n"})
    harness.client("ann").unlock("file:app.py")
    harness.now += 301_000
    assert harness.client("ben").claim_task("A-001").success
    outcome = harness.one("ben", "ann")
    assert outcome.status is MergeStatus.REFUSED
    assert "generation 2 has taken over" in outcome.findings[0].what


def test_a_conflict_names_files_and_parties_and_resolves_nothing(harness: GitHarness) -> None:
    """GIT-9, OPN-12: conflicts are detected and logged with those who made them, not resolved."""
    for name in ("ann", "ben"):
        harness.work(name, {"app.py": f"{name}\n", 'odd/-a "b"\nc.py': f"{name}\n"}, "app.py", "odd")
    assert harness.one("ann", "ann").status is MergeStatus.MERGED
    before, tip = harness.tip(), harness.tip("ben")
    outcome = harness.one("ben", "ben")
    assert outcome.status is MergeStatus.CONFLICT
    assert sorted(outcome.files) == ["app.py", 'odd/-a "b"\nc.py']
    assert {(party.who, party.branch) for party in outcome.parties} == {("ann", "main"), ("ben", "ben")}
    assert (harness.tip(), harness.tip("ben")) == (before, tip)
    assert harness.clean()
    assert harness.clean("ben")
    (event,) = harness.events("git.merge_refused")
    assert (event["status"], set(event["parties"])) == ("conflict", {"ann", "ben"})


def test_what_main_deleted_is_not_brought_back(harness: GitHarness) -> None:
    """GIT-25: three-way: a file that only main changed or deleted stays as main has it."""
    harness.work("ann", {"app.py": "ann\n"})
    harness.work("ben", {"lib.py": None})
    assert harness.merge("ben", "ben", "ann").ok
    assert (harness.text("lib.py"), harness.text("app.py")) == (None, "ann\n")


def test_coordination_files_are_never_merged(harness: GitHarness) -> None:
    """GIT-24, CFL-39: what tells how somebody works in a worktree stays there, and never conflicts."""
    here, there = ".claude/settings.local.json", ".coord/state.json"
    harness.work("main-ann", {here: "main\n"})
    harness.one("", "main-ann", any_file=True)
    harness.git("shop", "rm", "-q", "--cached", "--ignore-unmatch", here)
    (harness.shop / here).parent.mkdir(exist_ok=True)
    harness.write("shop", here, "of main\n")
    harness.git("shop", "commit", "-q", "-m", "by a person")
    harness.work("ben", {here: "of ben\n", there: "ben\n", "app.py": "ben\n"})
    harness.write("shop", here, "of main again\n")
    harness.git("shop", "commit", "-q", "-m", "by a person")
    assert harness.one("ben", "ben").status is MergeStatus.MERGED
    assert (harness.text(here), harness.text(there), harness.text("app.py")) == (
        "of main again\n",
        None,
        "ben\n",
    )
    assert harness.git("ben", "show", f"HEAD:{here}") == "of ben"


def test_what_is_not_committed_on_main_is_not_touched(harness: GitHarness) -> None:
    """Nothing lost: a changed file in the worktree of main refuses a merge that concerns it."""
    tip = harness.work("ann", {"app.py": "ann\n"})
    (harness.shop / "app.py").write_text("by hand\n")
    outcome = harness.one("ann", "ann")
    assert outcome.status is MergeStatus.REFUSED
    assert "app.py" in outcome.findings[0].what
    assert harness.text("app.py") == "by hand\n"
    harness.git("shop", "checkout", "-q", "app.py")
    (harness.shop / "lib.py").write_text("by hand\n")
    assert harness.one("ann", "ann").status is MergeStatus.MERGED
    assert (harness.text("app.py"), harness.text("lib.py")) == ("ann\n", "by hand\n")
    assert harness.tip("ann") == tip


KEEPS_MAIN = """#!/bin/sh
[ "$1" = prepared ] && grep -q refs/heads/main && exit 1
exit 0
"""


def test_files_stay_as_they_are_where_a_hook_keeps_main(harness: GitHarness) -> None:
    """GIT-14: git writes files before it asks the hook of refs; a merge that is refused there undoes that."""
    harness.work("ann", {"app.py": "ann\n", "new.py": "new\n"})
    hook = harness.shop / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(KEEPS_MAIN)
    hook.chmod(0o755)
    before = harness.text("app.py")
    (harness.shop / "lib.py").write_text("by hand\n")
    outcome = harness.one("ann", "ann")
    assert outcome.status is MergeStatus.REFUSED
    assert "git cannot move main" in outcome.findings[0].what
    assert (harness.text("app.py"), harness.text("new.py"), harness.text("lib.py")) == (
        before,
        None,
        "by hand\n",
    )
    assert harness.git("shop", "status", "--porcelain") == "M lib.py"
    hook.unlink()
    assert harness.one("ann", "ann").status is MergeStatus.MERGED
    assert harness.text("lib.py") == "by hand\n"


def test_what_is_not_committed_on_the_branch_is_told(harness: GitHarness) -> None:
    """Nothing lost: what an agent left in its worktree stays there, and the answer says so."""
    harness.work("ann", {"app.py": "ann\n"})
    (harness.top / "ann/lib.py").write_text("half done\n")
    done = harness.merge("ann", "ann")
    assert done.ok
    assert "ann has uncommitted changes of ann" in done.warnings[0]
    assert harness.text("lib.py", "ann") == "half done\n"


def test_one_merge_at_a_time(harness: GitHarness) -> None:
    """GIT-27: merges are serialised by the named lock; who does not wait is told who has it."""
    harness.work("ann", {"app.py": "ann\n"})
    assert harness.client("ben").acquire(LOCK).ok
    with pytest.raises(Denied, match="held by ben"):
        harness.merge("ann", "ann")
    harness.client("ben").unlock()
    assert harness.merge("ann", "ann").ok


def test_histories_without_a_common_beginning_are_refused(harness: GitHarness) -> None:
    """Bad input changes nothing: a branch that never parted from main, and one that does not exist."""
    harness.git("shop", "checkout", "-q", "--orphan", "other")
    harness.git("shop", "commit", "-q", "-m", "other")
    harness.git("shop", "checkout", "-q", "main")
    before = harness.tip()
    outcome = harness.one("", "other")
    assert outcome.status is MergeStatus.REFUSED
    assert "unrelated" in outcome.findings[0].what
    with pytest.raises(NotFound, match="no branch '--all'"):
        harness.merge("", "--all")
    assert harness.tip() == before


def test_what_is_ignored_on_main_is_not_written_over(harness: GitHarness) -> None:
    """Nothing lost: an ignored file in the worktree of main refuses a branch that brings one of its name."""
    harness.work("ann", {"local.ini": "ann\n"})
    (harness.shop / ".git/info/exclude").write_text("local.ini\n")
    (harness.shop / "local.ini").write_text("by hand\n")
    outcome = harness.one("ann", "ann")
    assert (outcome.status, harness.text("local.ini")) == (MergeStatus.REFUSED, "by hand\n")
    assert "local.ini" in outcome.findings[0].what


def test_main_that_is_switched_away_from_just_now_is_merged_all_the_same(
    harness: GitHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is called merged that main does not have: its worktree may be at another branch by now."""
    tip = harness.work("ann", {"app.py": "ann\n"})
    really = merge._checked_out

    def seen_before(git: Git) -> dict[str, str]:
        found = really(git)
        if found.get("main") == str(harness.shop):
            harness.git("shop", "switch", "-q", "-c", "other")
        return found

    monkeypatch.setattr(merge, "_checked_out", seen_before)
    assert harness.one("ann", "ann").status is MergeStatus.MERGED
    assert harness.try_git("shop", "merge-base", "--is-ancestor", tip, "main")
