"""The demo's last act: its proof against a repository and a log that were tampered with."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.author import Author, Broken
from demo.git_act import Landing, MergeAnswer, Overwrite
from demo.git_proof import find_git_faults, find_log_faults, find_overwrite_faults
from demo.log import Event
from tests.support.git_folders import git

APP, PAYMENT = "src/app.py", "src/payment.py"
ASIDE = "refs/coord/salvage/hana-1/1"


@dataclass
class Yard:
    """What an act leaves behind: a repository, a log, and what the agents were told."""

    folder: Path
    events: list[Event]
    landing: Landing

    def git(self, *words: str) -> str:
        return git(self.folder, *words)

    def faults(self) -> list[str]:
        return [
            *find_overwrite_faults(self.folder, self.landing, self.events),
            *find_log_faults(self.landing, self.events),
            *find_git_faults(self.folder, self.landing, self.events),
        ]

    def overwrite(self, **changed: str) -> None:
        assert self.landing.overwrite is not None
        self.landing.overwrite = self.landing.overwrite._replace(**changed)

    def tell(self, number: int, *, merged: bool) -> None:
        self.landing.told[number] = self.landing.told[number]._replace(merged=merged)

    def drop(self, name: str) -> None:
        self.events = [event for event in self.events if event.name != name]

    def log(self, offset: int, name: str, **fields: object) -> None:
        self.events.append(Event(offset, offset, name, fields))


def write(yard: Yard, name: str, path: str, line: str) -> str:
    """Let an agent commit a line in its worktree; return the commit."""
    tree = yard.folder / ".worktrees" / name
    yard.git("worktree", "add", "-q", "-b", f"agent/{name}", str(tree), yard.landing.began_at)
    (tree / path).write_text(f"first\n{line}\n")
    git(tree, "commit", "-q", "-a", "-m", line)
    return git(tree, "rev-parse", "HEAD")


def act(yard: Yard, name: str, path: str, fence: int, *, asks: int, merged: bool) -> None:
    """Let an agent lock, commit and ask for a merge, as the log and its own account tell it."""
    branch, line = f"agent/{name}", f"{name}-1 was at work"
    tip = write(yard, name, path, line)
    yard.log(fence, "lock.acquired", resource=f"file:{path}")
    yard.log(fence + 1, "git.committed", commit=tip, fences=[fence])
    yard.landing.told.append(MergeAnswer(f"{name}-1", branch, tip, path, line, merged))
    if merged:
        yard.git("merge", "-q", "--no-ff", "-m", f"Merge {branch}", branch)
        yard.log(asks, "git.merged", branch=branch, tip=tip, commit=yard.git("rev-parse", "main"))
    else:
        yard.log(asks, "git.merge_refused", branch=branch, tip=tip, status="refused")


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Yard:
    """hana overwrites a file of gus, who lands; she has a file after ivo and lands; ivo is refused."""
    yard = Yard(tmp_path_factory.mktemp("act") / "shop", [], Landing())
    (yard.folder / "src").mkdir(parents=True)
    git(yard.folder, "init", "-q", "--initial-branch=main")
    yard.git("config", "user.name", "Ann")
    yard.git("config", "user.email", "ann@example.org")
    for path in (APP, PAYMENT):
        (yard.folder / path).write_text("hana-1 was here\n")
    yard.git("add", ".")
    yard.git("commit", "-q", "-m", "first")
    yard.git("update-ref", ASIDE, "main")
    yard.landing.began_at = yard.git("rev-parse", "main")
    yard.log(15, "message.sent", kind="overwrite", session="hana-1", to=["gus-1"])
    act(yard, "gus", APP, 10, asks=19, merged=True)
    act(yard, "hana", PAYMENT, 30, asks=39, merged=True)
    act(yard, "ivo", PAYMENT, 20, asks=49, merged=False)
    yard.events.sort(key=lambda event: event.offset)
    yard.landing.overwrite = Overwrite(
        holder="gus-1",
        writer="hana-1",
        path=APP,
        wrote="hana-1 was here",
        kept="as gus left it",
        found="as gus left it",
        writer_told=f"{APP} is held by gus-1",
        holder_told=f"{APP} was changed by hana-1",
        aside=ASIDE,
    )
    return yard


@pytest.fixture
def yard(honest: Yard, tmp_path: Path) -> Yard:
    """A copy that may be tampered with."""
    folder = tmp_path / "shop"
    shutil.copytree(honest.folder, folder)
    git(folder, "worktree", "repair", *(str(tree) for tree in (folder / ".worktrees").iterdir()))
    told = honest.landing
    events = [event._replace(fields=dict(event.fields)) for event in honest.events]
    return Yard(folder, events, Landing(told.began_at, list(told.told), told.overwrite))


def test_an_honest_act_has_no_faults(yard: Yard) -> None:
    """Issue 5, must show: what coord really leaves behind is accepted."""
    assert yard.faults() == []


def late_in_main(yard: Yard) -> None:
    yard.git("merge", "-q", "-s", "ours", "-m", "Smuggled", "agent/ivo")


def merged_late(yard: Yard) -> None:
    """The late branch is merged, and everybody says so: the locks alone give it away."""
    refused = yard.events.pop()
    late_in_main(yard)
    yard.log(49, "git.merged", **{**refused.fields, "commit": yard.git("rev-parse", "main")})
    yard.tell(2, merged=True)


def refused_in_time(yard: Yard) -> None:
    yard.events = [event for event in yard.events if (event.name, event.offset) != ("lock.acquired", 30)]


def uncommitted(yard: Yard) -> None:
    (yard.folder / APP).write_text("something else\n")


FORGERIES: dict[str, tuple[Callable[[Yard], object], str]] = {
    "no overwrite": (lambda yard: setattr(yard.landing, "overwrite", None), "no overwrite was caught"),
    "no message": (lambda yard: yard.drop("message.sent"), "the log has no word to gus-1"),
    "a holder in the dark": (lambda yard: yard.overwrite(holder_told=""), "gus-1 was not told"),
    "a writer in the dark": (lambda yard: yard.overwrite(writer_told=""), "hana-1 was not told"),
    "a file left overwritten": (lambda yard: yard.overwrite(found="x"), f"{APP} is not as gus-1 left it"),
    "a writer's loss": (lambda yard: yard.git("update-ref", "-d", ASIDE), f"wrote over {APP} is lost"),
    "a holder's loss": (lambda yard: yard.tell(0, merged=False), f"wrote into {APP} did not land"),
    "a late merge": (merged_late, "agent/ivo was merged, though its lock had passed"),
    "a false refusal": (refused_in_time, "agent/ivo was turned away, but not for a lock"),
    "a conflict instead": (lambda yard: yard.events[-1].fields.update(status="conflict"), "not for a lock"),
    "an unlogged merge": (lambda yard: yard.drop("git.merged"), "told of the merge of agent/gus"),
    "an unlogged refusal": (lambda yard: yard.drop("git.merge_refused"), "told of the merge of agent/ivo"),
    "no refusal": (lambda yard: yard.landing.told.pop(), "or none that was refused"),
    "a foreign commit": (
        lambda yard: yard.git("commit", "-q", "--allow-empty", "-m", "x"),
        "main is not what the accepted merges made of it",
    ),
    "a main put back": (
        lambda yard: yard.git("reset", "-q", "--hard", "main~1"),
        "main does not stand where the last accepted merge left it",
    ),
    "a lost line": (lambda yard: yard.git("reset", "-q", "--hard", "main~1"), "main has lost what hana-1"),
    "a smuggled commit": (late_in_main, "main has taken in what ivo-1 wrote"),
    "a dirty main": (uncommitted, "are not what main has"),
    "a moved branch": (
        lambda yard: yard.git("update-ref", "refs/heads/agent/ivo", "main"),
        "agent/ivo is not where ivo-1 left it",
    ),
    "a worktree removed": (
        lambda yard: yard.git("worktree", "remove", "--force", ".worktrees/ivo"),
        "the worktree of agent/ivo is gone",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_act_is_found_out(yard: Yard, forgery: str) -> None:
    """Issue 5, must show: the proof names each way in which main, branches or words would be wrong."""
    forge, fault = FORGERIES[forgery]
    forge(yard)
    assert fault in "\n".join(yard.faults())


def test_an_agent_that_is_denied_breaks_the_act(tmp_path: Path) -> None:
    """What the hook or coord refuses against the play stops it: nothing is proven then."""
    with open(tmp_path / "errors", "wb") as errors:
        author = Author("gus", tmp_path, "echo not now >&2; exit 2", errors.fileno())
        try:
            with pytest.raises(Broken, match=r"gus-1 may not write lamp\.py: not now"):
                author.write("lamp.py", "x")
            with pytest.raises(Broken, match="coord worktree add"):
                author.enter()
        finally:
            author.end()
    assert not (tmp_path / "lamp.py").exists()
