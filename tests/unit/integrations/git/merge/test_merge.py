"""What `coord merge` lets in, and what it refuses: on a real repository, nothing changes where it refuses."""

import pytest

from coord.core.errors import Denied, NotFound, Refused
from coord.integrations.git.merge import merge
from coord.integrations.git.merge.merge import LOCK, Verdict
from coord.integrations.git.run import Git
from coord.integrations.git.worktree import worktree
from tests.support.git_harness import Yard


def test_a_branch_in_scope_becomes_part_of_main(yard: Yard) -> None:
    """GIT-8, GIT-14: what was changed under locks is merged, and the worktree of main follows."""
    before, tip = yard.tip(), yard.work("ann", {"app.py": "1\n2\n3\nann\n", "new.py": "new\n"})
    done = yard.merge("ann", "ann")
    assert done.ok
    assert done.before == before
    assert done.after == yard.tip() == done.outcomes[0].commit
    assert yard.git("shop", "log", "-1", "--format=%P") == f"{before} {tip}"
    assert "Coord-Session: ann" in yard.git("shop", "log", "-1", "--format=%B")
    assert (yard.text("app.py"), yard.text("new.py")) == ("1\n2\n3\nann\n", "new\n")
    assert yard.clean()
    (event,) = yard.events("git.merged")
    assert event["files"] == ["app.py", "new.py"]
    assert event["commit"] == yard.tip()
    assert yard.client().locks() == []
    assert yard.one("ann", "ann").verdict is Verdict.NOTHING_NEW


def test_main_that_is_nowhere_checked_out_moves_too(yard: Yard) -> None:
    """GIT-8: the ref moves by compare-and-swap; a worktree is not needed."""
    tip = yard.work("ann", {"app.py": "ann\n"})
    yard.git("shop", "checkout", "-q", "--detach")
    assert yard.merge("ann", "ann").ok
    assert yard.git("shop", "rev-parse", "main^2") == tip
    assert yard.text("app.py") == "1\n2\n3\n"


def test_a_file_that_was_not_locked_is_out_of_scope(yard: Yard) -> None:
    """GIT-14: a file that its session never held is refused, by name, and nothing is merged of the branch."""
    yard.branch("ann")
    assert yard.client("ann").acquire("file:app.py").ok
    yard.commit("ann", {"app.py": "ann\n", "lib.py": "ann\n"})
    before = yard.tip()
    outcome = yard.one("ann", "ann")
    assert outcome.verdict is Verdict.REFUSED
    (finding,) = outcome.findings
    assert "changes lib.py, which ann did not hold" in finding.what
    assert "coord lock lib.py" in finding.next_step
    assert (yard.tip(), yard.text("app.py")) == (before, "1\n2\n3\n")
    (event,) = yard.events("git.merge_refused")
    assert event["verdict"] == "refused"
    assert "lib.py" in event["detail"]


def test_a_lock_that_was_held_when_the_edit_was_made_counts_after_its_end(yard: Yard) -> None:
    """CFL-33: the scope is that of the locks held at edit time, signed or not; no others count."""
    yard.client("ann").acquire("file:lib.py")
    yard.client("ann").unlock()
    yard.now += 60_000
    yard.write("shop", "lib.py", "main\n")
    yard.git("shop", "commit", "-q", "-m", "moved on")
    yard.branch("ann")
    yard.client("ann").acquire("file:*.md")
    yard.client("ann").unlock()
    yard.commit("ann", {"a.md": "ann\n"}, signed=False)
    assert yard.one("ann", "ann").verdict is Verdict.MERGED
    yard.now += 60_000
    yard.commit("ann", {"lib.py": "ann\n"}, signed=False)
    yard.now += 60_000
    yard.client("ann").acquire("file:lib.py")
    assert yard.one("ann", "ann").verdict is Verdict.REFUSED


def test_who_was_not_the_last_to_hold_a_file_did_not_hold_it(yard: Yard) -> None:
    """CFL-33: an edit made after somebody else had the file is not covered by the lock from before."""
    yard.branch("ann")
    for name in ("ann", "ben"):
        yard.client(name).acquire("file:app.py")
        yard.client(name).unlock()
    yard.now += 1000
    yard.commit("ann", {"app.py": "ann\n"})
    outcome = yard.one("ann", "ann")
    assert outcome.verdict is Verdict.REFUSED
    assert "which ann did not hold" in outcome.findings[0].what


def test_a_read_lock_is_none(yard: Yard) -> None:
    """GIT-14: who may only read a file does not bring it into scope."""
    yard.branch("ann")
    yard.client("ann").acquire("file:app.py", mode="read")
    yard.commit("ann", {"app.py": "ann\n"})
    assert yard.one("ann", "ann").verdict is Verdict.REFUSED


def test_a_fence_that_was_never_granted_proves_nothing(yard: Yard) -> None:
    """GIT-14: trailers are believed only as far as the store knows them."""
    yard.branch("ann")
    yard.write("ann", "app.py", "ann\n")
    forged = "change\n\nCoord-Session: ann\nCoord-Fence: 4711 file:app.py"
    yard.git("ann", "commit", "-q", "-m", forged)
    assert yard.one("ann", "ann").verdict is Verdict.REFUSED


def test_commits_without_a_session_are_a_persons_or_the_callers(yard: Yard) -> None:
    """GIT-14: a person needs no locks; an agent that leaves its name out does."""
    yard.branch("ann")
    yard.commit("ann", {"app.py": "ann\n"}, signed=False)
    assert yard.one("ann", "ann").verdict is Verdict.REFUSED
    assert yard.one("", "ann").verdict is Verdict.MERGED


def test_commits_without_a_session_belong_to_the_worktree_they_are_in(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIT-14: who merges the branch of another does not lend it the locks that it holds itself."""
    for name, value in yard.environ.items():
        monkeypatch.setenv(name, value)
    worktree.add(yard.client("ann"), "ann", branch="ann", path=str(yard.top / "ann"))
    yard.commit("ann", {"app.py": "ann\n"}, signed=False)
    assert yard.client("ben").acquire("file:app.py").ok
    for name in ("ben", ""):
        outcome = yard.one(name, "ann")
        assert outcome.verdict is Verdict.REFUSED
        assert "which ann did not hold" in outcome.findings[0].what


def test_only_a_person_merges_files_that_nobody_held(yard: Yard) -> None:
    """GIT-14: the way out of the scope is a person's decision."""
    yard.branch("ann")
    yard.commit("ann", {"app.py": "ann\n"})
    with pytest.raises(Refused, match="only a person"):
        yard.merge("ann", "ann", any_file=True)
    assert yard.one("", "ann").verdict is Verdict.REFUSED
    assert yard.one("", "ann", any_file=True).verdict is Verdict.MERGED


def test_a_lock_that_was_lost_to_another_does_not_count(yard: Yard) -> None:
    """CFL-33: what was committed under a fence that somebody has overtaken is refused, even for a person."""
    yard.branch("ann")
    yard.client("ann").acquire("file:app.py")
    yard.commit("ann", {"app.py": "ann\n"})
    yard.now += 301_000
    assert yard.client("ben").acquire("file:app.py").ok
    yard.client("ben").unlock()
    before = yard.tip()
    outcome = yard.one("", "ann", any_file=True)
    assert outcome.verdict is Verdict.REFUSED
    assert "ben was granted it since" in outcome.findings[0].what
    assert yard.tip() == before


def test_what_was_finished_before_another_began_gets_in(yard: Yard) -> None:
    """GIT-14: a lock that was given back in order counts, although the file has another holder by now."""
    yard.branch("ann")
    yard.client("ann").acquire("file:app.py")
    yard.commit("ann", {"app.py": "ann\n"})
    yard.client("ann").unlock()
    yard.client("ben").acquire("file:app.py")
    assert yard.one("ann", "ann").verdict is Verdict.MERGED


def test_a_superseded_generation_never_gets_in(yard: Yard) -> None:
    """A claim that somebody has taken over is stale: its commits are refused at the merge, too."""
    yard.branch("ann")
    assert yard.client("ann").claim_task("A-001").success
    yard.client("ann").acquire("file:app.py")
    yard.commit("ann", {"app.py": "ann\n"})
    yard.client("ann").unlock("file:app.py")
    yard.now += 301_000
    assert yard.client("ben").claim_task("A-001").success
    outcome = yard.one("ben", "ann")
    assert outcome.verdict is Verdict.REFUSED
    assert "generation 2 has taken over" in outcome.findings[0].what


def test_a_conflict_names_files_and_parties_and_resolves_nothing(yard: Yard) -> None:
    """GIT-9, OPN-12: conflicts are detected and logged with those who made them, not resolved."""
    for name in ("ann", "ben"):
        yard.work(name, {"app.py": f"{name}\n", 'odd/-a "b"\nc.py': f"{name}\n"}, "app.py", "odd")
    assert yard.one("ann", "ann").verdict is Verdict.MERGED
    before, tip = yard.tip(), yard.tip("ben")
    outcome = yard.one("ben", "ben")
    assert outcome.verdict is Verdict.CONFLICT
    assert sorted(outcome.files) == ["app.py", 'odd/-a "b"\nc.py']
    assert {(party.who, party.branch) for party in outcome.parties} == {("ann", "main"), ("ben", "ben")}
    assert (yard.tip(), yard.tip("ben")) == (before, tip)
    assert yard.clean()
    assert yard.clean("ben")
    (event,) = yard.events("git.merge_refused")
    assert (event["verdict"], set(event["parties"])) == ("conflict", {"ann", "ben"})


def test_what_main_deleted_is_not_brought_back(yard: Yard) -> None:
    """GIT-25: three-way: a file that only main changed or deleted stays as main has it."""
    yard.work("ann", {"app.py": "ann\n"})
    yard.work("ben", {"lib.py": None})
    assert yard.merge("ben", "ben", "ann").ok
    assert (yard.text("lib.py"), yard.text("app.py")) == (None, "ann\n")


def test_coordination_files_are_never_merged(yard: Yard) -> None:
    """GIT-24, CFL-39: what tells how somebody works in a worktree stays there, and never conflicts."""
    here, there = ".claude/settings.local.json", ".coord/state.json"
    yard.work("main-ann", {here: "main\n"})
    yard.one("", "main-ann", any_file=True)
    yard.git("shop", "rm", "-q", "--cached", "--ignore-unmatch", here)
    (yard.shop / here).parent.mkdir(exist_ok=True)
    yard.write("shop", here, "of main\n")
    yard.git("shop", "commit", "-q", "-m", "by a person")
    yard.work("ben", {here: "of ben\n", there: "ben\n", "app.py": "ben\n"})
    yard.write("shop", here, "of main again\n")
    yard.git("shop", "commit", "-q", "-m", "by a person")
    assert yard.one("ben", "ben").verdict is Verdict.MERGED
    assert (yard.text(here), yard.text(there), yard.text("app.py")) == ("of main again\n", None, "ben\n")
    assert yard.git("ben", "show", f"HEAD:{here}") == "of ben"


def test_what_is_not_committed_on_main_is_not_touched(yard: Yard) -> None:
    """Nothing lost: a changed file in the worktree of main refuses a merge that concerns it."""
    tip = yard.work("ann", {"app.py": "ann\n"})
    (yard.shop / "app.py").write_text("by hand\n")
    outcome = yard.one("ann", "ann")
    assert outcome.verdict is Verdict.REFUSED
    assert "app.py" in outcome.findings[0].what
    assert yard.text("app.py") == "by hand\n"
    yard.git("shop", "checkout", "-q", "app.py")
    (yard.shop / "lib.py").write_text("by hand\n")
    assert yard.one("ann", "ann").verdict is Verdict.MERGED
    assert (yard.text("app.py"), yard.text("lib.py")) == ("ann\n", "by hand\n")
    assert yard.tip("ann") == tip


KEEPS_MAIN = """#!/bin/sh
[ "$1" = prepared ] && grep -q refs/heads/main && exit 1
exit 0
"""


def test_files_stay_as_they_are_where_a_hook_keeps_main(yard: Yard) -> None:
    """GIT-14: git writes files before it asks the hook of refs; a merge that is refused there undoes that."""
    yard.work("ann", {"app.py": "ann\n", "new.py": "new\n"})
    hook = yard.shop / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(KEEPS_MAIN)
    hook.chmod(0o755)
    before = yard.text("app.py")
    (yard.shop / "lib.py").write_text("by hand\n")
    outcome = yard.one("ann", "ann")
    assert outcome.verdict is Verdict.REFUSED
    assert "git does not move main" in outcome.findings[0].what
    assert (yard.text("app.py"), yard.text("new.py"), yard.text("lib.py")) == (before, None, "by hand\n")
    assert yard.git("shop", "status", "--porcelain") == "M lib.py"
    hook.unlink()
    assert yard.one("ann", "ann").verdict is Verdict.MERGED
    assert yard.text("lib.py") == "by hand\n"


def test_what_is_not_committed_on_the_branch_is_told(yard: Yard) -> None:
    """Nothing lost: what an agent left in its worktree stays there, and the answer says so."""
    yard.work("ann", {"app.py": "ann\n"})
    (yard.top / "ann/lib.py").write_text("half done\n")
    done = yard.merge("ann", "ann")
    assert done.ok
    assert "ann has changes of ann that are not committed" in done.warnings[0]
    assert yard.text("lib.py", "ann") == "half done\n"


def test_one_merge_at_a_time(yard: Yard) -> None:
    """GIT-27: merges are serialised by the named lock; who does not wait is told who has it."""
    yard.work("ann", {"app.py": "ann\n"})
    assert yard.client("ben").acquire(LOCK).ok
    with pytest.raises(Denied, match="held by ben"):
        yard.merge("ann", "ann")
    yard.client("ben").unlock()
    assert yard.merge("ann", "ann").ok


def test_histories_without_a_common_beginning_are_refused(yard: Yard) -> None:
    """Bad input changes nothing: a branch that never parted from main, and one that does not exist."""
    yard.git("shop", "checkout", "-q", "--orphan", "other")
    yard.git("shop", "commit", "-q", "-m", "other")
    yard.git("shop", "checkout", "-q", "main")
    before = yard.tip()
    outcome = yard.one("", "other")
    assert outcome.verdict is Verdict.REFUSED
    assert "unrelated" in outcome.findings[0].what
    with pytest.raises(NotFound, match="no branch '--all'"):
        yard.merge("", "--all")
    assert yard.tip() == before


def test_what_is_ignored_on_main_is_not_written_over(yard: Yard) -> None:
    """Nothing lost: an ignored file in the worktree of main refuses a branch that brings one of its name."""
    yard.work("ann", {"local.ini": "ann\n"})
    (yard.shop / ".git/info/exclude").write_text("local.ini\n")
    (yard.shop / "local.ini").write_text("by hand\n")
    outcome = yard.one("ann", "ann")
    assert (outcome.verdict, yard.text("local.ini")) == (Verdict.REFUSED, "by hand\n")
    assert "local.ini" in outcome.findings[0].what


def test_main_that_is_switched_away_from_just_now_is_merged_all_the_same(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is called merged that main does not have: its worktree may be at another branch by now."""
    tip = yard.work("ann", {"app.py": "ann\n"})
    really = merge._checked_out

    def seen_before(git: Git) -> dict[str, str]:
        found = really(git)
        if found.get("main") == str(yard.shop):
            yard.git("shop", "switch", "-q", "-c", "other")
        return found

    monkeypatch.setattr(merge, "_checked_out", seen_before)
    assert yard.one("ann", "ann").verdict is Verdict.MERGED
    assert yard.try_git("shop", "merge-base", "--is-ancestor", tip, "main")
