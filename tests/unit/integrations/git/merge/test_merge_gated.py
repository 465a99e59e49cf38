"""A merge through the gates of git: what they sign is what the merge believes, and they let it pass."""

from pathlib import Path

from coord.integrations.git.merge.merge import MergeReport, MergeRequest, MergeStatus, merge
from coord.integrations.git.run import Git
from tests.support.gate_harness import GateHarness, made_gated


def merged(shop: GateHarness, session: str, branch: str) -> MergeReport:
    """Merge a branch in the name of a session; its git runs the gates."""
    git = Git(str(shop.folder), environ=shop.environ(session))
    with shop.client(session) as client:
        return merge(client, git, MergeRequest((branch,), "main", wait_s=0))


def test_what_the_gates_signed_is_merged_and_what_they_refuse_is_not(tmp_path: Path) -> None:
    """Signed commits prove their locks; one that lost its lock passes neither merge nor gate.

    GIT-14, PRB-33.
    """
    shop = made_gated(tmp_path / "made")
    for name, file in (("ann", "app.py"), ("ben", "lib.py")):
        shop.plain("checkout", "-q", "-b", name, "main")
        shop.lock(name, file)
        shop.commit(name, file, f"{name}\n")
    shop.plain("checkout", "-q", "main")
    shop.unlock("ann")
    shop.steal("cyd", "lib.py")
    done = merged(shop, "ann", "ann")
    assert done.ok, done
    assert (shop.folder / "app.py").read_text() == "ann\n"
    (outcome,) = merged(shop, "ben", "ben").outcomes
    assert outcome.status is MergeStatus.REFUSED
    assert "which was lost (stolen)" in outcome.findings[0].what
    assert shop.tip("main") == done.after
    shop.refused("ben", "merge", "--no-edit", "ben")
