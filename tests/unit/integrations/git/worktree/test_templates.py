"""Each worktree has the hook settings of its agents, whoever made it and in whichever way."""

import json
import shutil
from pathlib import Path

import pytest

from coord.integrations.git.worktree.templates import restore_templates
from coord.integrations.setup.tools import TOOLS, our_hooks, settings_in
from tests.support.cli import Coord
from tests.support.git_folders import git
from tests.support.hook_harness import HookHarness
from tests.support.setup_folders import set_up, write

NAMES = [tool.local for tool in TOOLS]


@pytest.fixture
def shop(coord: Coord, repository: Path) -> Path:
    """A repository with a commit, in which `coord init` wrote the hooks."""
    write(repository / "a.txt", "a\n")
    git(repository, "add", "-A")
    git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a")
    assert coord("ann init --yes").code == 0
    return repository


def missing(root: Path) -> list[str]:
    """The tools that have no hook in a worktree."""
    found = {tool.name: our_hooks(settings_in(f"{root}/{tool.local}")) for tool in TOOLS}
    return [name for name, hooks in found.items() if not hooks]


@pytest.mark.parametrize(
    "words",
    [
        ("-b", "second", "../second"),
        ("--detach", "../second"),
        ("-b", "second", "nested/deep/second"),
        ("-b", "second", "../out side/sécond"),
    ],
    ids=["branch", "detach", "nested", "outside"],
)
def test_a_worktree_of_git_has_hooks(shop: Path, words: tuple[str, ...]) -> None:
    """Issue 15: `git worktree add` runs a hook that copies the settings; moving it keeps them."""
    git(shop, "worktree", "add", "-q", *words)
    second = shop / words[-1]
    assert missing(second) == []
    git(shop, "worktree", "move", words[-1], "../moved")
    assert missing(shop.parent / "moved") == []


def test_a_worktree_of_coord_has_hooks(coord: Coord, shop: Path) -> None:
    """Issue 15: `coord worktree add` makes it without a checkout, and copies the settings itself."""
    marked = "ls .claude/settings.local.json .codex/hooks.json .gemini/settings.json > seen"
    said = coord("ann worktree add second --setup", marked)
    assert said.code == 0
    root = Path(said.answer["path"])
    assert missing(root) == []
    assert (root / "seen").read_text().split() == sorted(NAMES)


def test_a_branch_with_settings_of_its_own_is_checked_out(coord: Coord, shop: Path) -> None:
    """Files that the branch tracks win, even if an earlier command has put a template there."""
    git(shop, "checkout", "-q", "-b", "agent/second")
    write(shop / ".gemini/settings.json", "{}\n")
    git(shop, "add", "-f", ".gemini/settings.json")
    git(shop, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--no-verify", "-m", "own")
    git(shop, "checkout", "-q", "-")
    git(shop, "worktree", "add", "-q", "--no-checkout", ".worktrees/second", "agent/second")
    coord("ann locks")
    assert missing(shop / ".worktrees/second") == []
    assert coord("ann worktree add second").code == 0
    assert (shop / ".worktrees/second/.gemini/settings.json").read_text() == "{}\n"


@pytest.mark.parametrize("command", ["locks", "worktree list", "peers"])
def test_the_next_command_closes_the_gap(coord: Coord, shop: Path, command: str) -> None:
    """Git runs no hook for `git worktree add --no-checkout`; the doctor names it until somebody looks."""
    git(shop, "worktree", "add", "-q", "--no-checkout", "-b", "second", "../second")
    assert missing(shop.parent / "second") == ["claude", "codex", "gemini"]
    checks = coord("ann doctor").answer["checks"]
    named = [each for each in checks if each["check"] == "worktree second" and each["state"] == "bad"]
    assert [each["hint"] for each in named] == ["coord doctor --fix"] * 3
    coord(f"ann {command}")
    assert missing(shop.parent / "second") == []
    assert [each for each in coord("ann doctor").answer["checks"] if each["check"] == "worktrees"]


def test_the_doctor_repairs_every_worktree(coord: Coord, shop: Path) -> None:
    """A worktree that lost its settings, and one whose settings lost our hooks."""
    for name in ("second", "third"):
        git(shop, "worktree", "add", "-q", "-b", name, f"../{name}")
    shutil.rmtree(shop.parent / "second/.codex")
    write(shop.parent / "third/.gemini/settings.json", '{"mine": 1}\n')
    said = coord("ann doctor")
    bad = {each["check"]: each["message"] for each in said.answer["checks"] if each["state"] == "bad"}
    assert bad["worktree second"] == f"{shop.parent}/second: Codex has no coord hook"
    assert bad["worktree third"] == f"{shop.parent}/third: Gemini CLI has no coord hook"
    assert coord("ann doctor --fix").code == 0
    assert (missing(shop.parent / "second"), missing(shop.parent / "third")) == ([], [])
    assert json.loads((shop.parent / "third/.gemini/settings.json").read_text())["mine"] == 1


def test_the_hooks_of_agents_close_the_gap(tmp_path: Path) -> None:
    """An agent that makes a worktree by a shell command, or that starts, gives it hooks."""
    agents = HookHarness(tmp_path)
    set_up(agents.root)
    second = agents.root.parent / "second"
    git(agents.root, "worktree", "add", "-q", "--no-checkout", "--detach", "../second")
    agents.tell("PostToolUse", **agents.shell("git worktree add"))
    assert missing(second) == []
    shutil.rmtree(second / ".gemini")
    agents.tell("SessionStart", source="startup")
    assert missing(second) == []


def test_files_that_a_checkout_took_away_return(shop: Path) -> None:
    """A branch that tracks the settings replaces ours; they are back when the branch is left."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(shop, "checkout", "-q", "-b", "own")
    git(shop, "add", "-f", ".gemini/settings.json")
    git(shop, *identity, "commit", "-q", "--no-verify", "-m", "own")
    git(shop, "checkout", "-q", "-")
    assert missing(shop) == []


def test_a_clean_that_takes_ignored_files_is_repaired(coord: Coord, shop: Path) -> None:
    """`git clean -fdx` removes every file of coord in the worktree; the next command restores them."""
    git(shop, "clean", "-fdxq")
    assert missing(shop) == ["claude", "codex", "gemini"]
    coord("ann locks")
    assert missing(shop) == []
    assert coord("ann doctor").code == 0
    assert coord("ann uninstall").code == 0
    assert sorted(path.name for path in shop.iterdir()) == [".git", "a.txt"]


def test_nothing_is_written_through_a_link(shop: Path) -> None:
    """A folder of a worktree that leads elsewhere gets no file, and neither does a missing worktree."""
    second, outside = shop.parent / "second", shop.parent / "outside"
    git(shop, "worktree", "add", "-q", "--no-checkout", "-b", "second", "../second")
    git(shop, "worktree", "add", "-q", "-b", "third", "../third")
    shutil.rmtree(shop.parent / "third")
    outside.mkdir()
    (second / ".gemini").symlink_to(outside)
    made = restore_templates(str(shop / ".git"))
    assert (f"{second}/.codex/hooks.json" in made, list(outside.iterdir())) == (True, [])
    assert not (shop.parent / "third").exists()
    assert not [path for path in second.rglob("*") if ".coord-" in path.name]
