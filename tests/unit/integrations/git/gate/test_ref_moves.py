"""Every way of moving a protected branch, in a repository and in a shared one: held files and free ones.

`docs/reference/git.md` has the same lists, and a test compares them.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from coord.host.repository import find_repository
from coord.integrations.git.gate.accepted import protected_branches
from coord.integrations.git.gate.upstream import note_trusted
from coord.integrations.git.run import Git
from coord.integrations.setup.shared_gate import install_gate
from tests.support.gate_harness import CLIENT, GateHarness, gate_program

HELD, FREE = "app.py", "lib.py"
DOCUMENT = Path(__file__).parents[5] / "docs/reference/git.md"


class Way(NamedTuple):
    """Shell lines that put the commits of branch `evil` (or its change) on main; `$FILE` is its file."""

    lines: str
    seen: bool = True
    """Whether a gate sees it; otherwise the next gate and the doctor find the branch moved."""


LOCAL = {
    "commit": Way("git read-tree -m -u main evil && git commit -qm x"),
    "commit --no-verify": Way("git read-tree -m -u main evil && git commit -qnm x"),
    "commit-tree": Way("git update-ref refs/heads/main $(git commit-tree evil^{tree} -p main -m x)"),
    "update-ref": Way("git update-ref refs/heads/main evil"),
    "update-ref --stdin": Way(
        "printf 'start\\nupdate refs/heads/main evil\\ncommit\\n' | git update-ref --stdin"
    ),
    "branch -f": Way("git checkout -q --detach && git branch -f main evil"),
    "branch -M": Way("git checkout -q --detach && git branch -M evil main"),
    "fetch .": Way("git checkout -q --detach && git fetch -q . evil:main"),
    "push .": Way("git checkout -q --detach && git push -q . evil:main"),
    "push . --no-verify": Way("git checkout -q --detach && git push -q --no-verify . evil:main"),
    "pull .": Way("git pull -q --no-rebase . evil"),
    "merge": Way("git merge -q --no-ff --no-verify evil"),
    "merge --ff-only": Way("git merge -q --ff-only evil"),
    "reset": Way("git reset -q --hard evil"),
    "checkout -B": Way("git checkout -q --detach && git checkout -q -B main evil"),
    "switch -C": Way("git checkout -q --detach && git switch -q -C main evil"),
    "worktree add -B": Way("git checkout -q --detach && git worktree add -q -B main ../other evil"),
    "rebase": Way("git rebase -q evil"),
    "cherry-pick": Way("git cherry-pick evil"),
    "am": Way("git format-patch -1 --stdout evil | git am -q"),
    "fast-import": Way(
        "git checkout -q --detach && printf 'reset refs/heads/main\\nfrom %s\\n\\n' $(git rev-parse evil)"
        " | git fast-import --quiet"
    ),
    "refs/remotes": Way(
        "git update-ref refs/remotes/x/main evil; git update-ref refs/remotes/origin/main evil;"
        " git remote add origin .; git update-ref refs/heads/main evil"
    ),
    "tag": Way("git tag v1 evil && git update-ref refs/heads/main v1"),
    "packed refs": Way("git pack-refs --all && git update-ref refs/heads/main evil"),
    "grafts": Way(
        "echo $(git rev-parse main evil) > .git/info/grafts && git update-ref refs/heads/main evil;"
        " code=$?; rm .git/info/grafts; exit $code"
    ),
    "alternates": Way(
        'git clone -q . ../copy && git -C ../copy fetch -q origin evil && echo "$PWD/../copy/.git/objects"'
        " > .git/objects/info/alternates && git update-ref refs/heads/main evil"
    ),
    "branch -C": Way("git checkout -q --detach && git branch -C evil main", seen=False),
    "symbolic-ref": Way("git symbolic-ref refs/heads/main refs/heads/evil", seen=False),
    "core.hooksPath": Way("git -c core.hooksPath=/dev/null update-ref refs/heads/main evil", seen=False),
    "a file in .git/refs": Way("git rev-parse evil > .git/refs/heads/main", seen=False),
    "packed-refs": Way(
        'git pack-refs --all; sed -i "s/^.* refs.heads.main$/$(git rev-parse evil) refs\\/heads\\/main/"'
        " .git/packed-refs",
        seen=False,
    ),
}
ENVIRONMENT = {
    "COORD_TENANT": "export COORD_TENANT=other",
    "COORD_URL": "export COORD_URL=memory:",
    "COORD_PROTECTED": "export COORD_PROTECTED=other COORD_GATE_TENANT=other COORD_PROJECT=x",
    "PYTHONPATH": "mkdir ../py; echo 'raise SystemExit(0)' > ../py/sitecustomize.py; "
    " cp ../py/sitecustomize.py ../py/coord.py;"
    " export PYTHONPATH=$PWD/../py PYTHONSTARTUP=$PWD/../py/coord.py",
    "PATH": "mkdir ../bin; printf '#!/bin/sh\\nexit 0\\n' > ../bin/cat; cp ../bin/cat ../bin/python3;"
    " chmod +x ../bin/*; export PATH=$PWD/../bin:$PATH",
    "GIT_EXEC_PATH": "mkdir ../bin; real=$(command -v git);"
    " printf '#!/bin/sh\\nfor word; do case $word in log) exit;; esac; done; exec %s \"$@\"' $real"
    " > ../bin/git;"
    " chmod +x ../bin/git;"
    " export GIT_EXEC_PATH=$PWD/../bin",
    "GIT_GRAFT_FILE": "echo $(git rev-parse main evil) > ../grafts; export GIT_GRAFT_FILE=$PWD/../grafts",
    "GIT_REPLACE_REF_BASE": "git update-ref refs/x/$(git rev-parse evil) main;"
    " export GIT_REPLACE_REF_BASE=refs/x/",
    "GIT_CONFIG_PARAMETERS": "export GIT_CONFIG_PARAMETERS=\"'core.commitgraph=true'\"",
    "GIT_OBJECT_DIRECTORY": "forged=$PWD/../forged; cp -r .git/objects $forged;"
    " one=$(git rev-parse evil^{tree}); two=$(git rev-parse main^{tree});"
    " a=$(echo $one | cut -c1-2) b=$(echo $one | cut -c3-);"
    " rm -f $forged/$a/$b; cp $forged/$(echo $two | cut -c1-2)/$(echo $two | cut -c3-) $forged/$a/$b;"
    " export GIT_OBJECT_DIRECTORY=$forged GIT_ALTERNATE_OBJECT_DIRECTORIES=$PWD/.git/objects",
    "GIT_COMMON_DIR": "git init -q ../fake; cp -r ../before ../fake/.git/coord;"
    " echo $PWD/.git/objects > ../fake/.git/objects/info/alternates; cp -r .git/refs ../fake/.git;"
    " mkdir ../dir; echo ref: refs/heads/x > ../dir/HEAD; echo $PWD/../fake/.git > ../dir/commondir;"
    " export GIT_COMMON_DIR=$PWD/.git GIT_DIR=$PWD/../dir",
}
SHARED = {
    "push": "git push -q origin evil:main",
    "push --no-verify": "git push -q --no-verify origin evil:main",
    "push --atomic --force": "git push -q --no-verify --atomic --force origin evil:main evil:refs/tags/v1",
    "refs/remotes": "git push -q --no-verify origin evil:refs/remotes/x/main &&"
    " git push -q --no-verify origin evil:main",
    "tag": "git push -q --no-verify origin evil:refs/tags/v1 && git push -q --no-verify origin evil:main",
    "notes": "git push -q --no-verify origin evil:refs/notes/x && git push -q --no-verify origin evil:main",
    "replace": "git push -q --no-verify origin main:refs/replace/$(git rev-parse evil) &&"
    " git push -q --no-verify origin evil:main",
    "two branches": "git push -q --no-verify origin evil:refs/changes/1 &&"
    " git push -q --no-verify origin evil:main evil:master",
    "delete": "git push -q --no-verify origin evil:refs/x/y && git push -q --no-verify origin :main;"
    " git push -q --no-verify origin evil:main",
    "core.hooksPath of the pusher": "git -c core.hooksPath=/dev/null push -q origin evil:main",
    "COORD_TENANT": "COORD_TENANT=other git push -q --no-verify origin evil:main",
    "namespace": "GIT_NAMESPACE=x git push -q --no-verify origin evil:main;"
    " git push -q --no-verify origin evil:main",
    "fetch there": "here=$PWD; cd ../far.git && git fetch -q $here evil:main",
    "update-ref there": "git push -q --no-verify origin evil:refs/x/y; cd ../far.git &&"
    " git update-ref refs/heads/main refs/x/y",
    "branch -M there": "git push -q --no-verify origin evil:refs/x/y; cd ../far.git &&"
    " git -c core.hooksPath=/dev/null branch evil refs/x/y; git branch -M evil main",
}
UNSEEN_SHARED = {
    "core.hooksPath of the user": "git config --file ../hooks core.hooksPath /dev/null;"
    " GIT_CONFIG_GLOBAL=$PWD/../hooks git push -q origin evil:main",
    "--receive-pack": "git push -q origin evil:main"
    " --receive-pack='git -c core.hooksPath=/dev/null receive-pack'",
    "branch -C there": "git push -q --no-verify origin evil:refs/x/y; cd ../far.git &&"
    " git -c core.hooksPath=/dev/null branch evil refs/x/y; git branch -C evil main",
}
HARMLESS = {
    "tag": "git tag v1 evil",
    "notes": "git notes add -m x evil",
    "bisect": "git bisect start evil evil~1 && git bisect reset",
    "branch": "git branch other evil && git branch -m other third &&"
    " git branch -C third fourth && git branch -D third",
    "stash": "echo x >> app.py; git stash -q && git stash drop -q",
    "pack-refs": "git pack-refs --all --prune && git gc -q",
    "detached HEAD": "git checkout -q --detach evil && git checkout -q main",
    "worktree": "git worktree add -q ../w evil && git worktree remove ../w",
    "back": "git reset -q --hard main",
}


def _evil(shop: GateHarness, file: str) -> str:
    """Make a commit on `evil` without gates, and lock one file for bob; return the commit."""
    shop.plain("checkout", "-qb", "evil")
    shop.write(file, "evil\n")
    shop.plain("commit", "-qm", "evil")
    commit = shop.tip()
    shop.plain("checkout", "-q", "main")
    shop.lock("bob", HELD)
    return commit


def _sh(shop: GateHarness, lines: str, who: str = "ann") -> tuple[int, str]:
    """Run shell lines in the name of a session."""
    done = subprocess.run(
        ["sh", "-c", lines],
        cwd=shop.folder,
        env=shop.environ(who),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def _bypassed(folder: Path) -> bool:
    git = Git(str(folder), environ={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    commondir = folder / ".git" if (folder / ".git").exists() else folder
    return any(branch.bypassed for branch in protected_branches(git, str(commondir), ("main", "master")))


def _has(shop: GateHarness, file: str, ref: str = "main") -> bool:
    return shop.plain("--no-replace-objects", "show", f"{ref}:{file}") == "evil"


@pytest.mark.parametrize("name", LOCAL)
def test_way_to_move_a_branch(shop: GateHarness, name: str) -> None:
    """Issue 15, part 1: whatever moves main, its commits are checked; unseen moves are found later."""
    way = LOCAL[name]
    evil = _evil(shop, HELD)
    before = shop.tip("main")
    _, said = _sh(shop, way.lines)
    if way.seen:
        assert "app.py is locked by bob" in said, said
        assert "coord: refused" in said, said
        assert (shop.tip("main"), _bypassed(shop.folder)) == (before, False)
        assert shop.tip("evil") == evil, "git deletes a branch before it asks whether it may rename it"
        assert shop.git("ann", "branch", "-m", "evil", "again").code == 0, "git can still rename branches"
        return
    assert _has(shop, HELD)
    assert _bypassed(shop.folder)
    _, said = _sh(shop, "git update-ref refs/heads/main $(git commit-tree main^{tree} -p main -m next)")
    assert "app.py is locked by bob" in said
    assert f"without its gate\ncoord:   move it back: git update-ref refs/heads/main {before}" in said


@pytest.mark.parametrize("name", LOCAL)
def test_way_to_move_a_branch_freely(shop: GateHarness, name: str) -> None:
    """Issue 15, part 1: with a file that nobody holds the same command succeeds."""
    way = LOCAL[name]
    _evil(shop, FREE)
    code, said = _sh(shop, way.lines)
    assert code == 0, said
    assert _has(shop, FREE)
    shop.ok("ann", "update-ref", "refs/heads/main", "main")
    assert not _bypassed(shop.folder)


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_environment_does_not_move_the_judgement(shop: GateHarness, name: str) -> None:
    """Issue 15, part 1: no variable of the caller changes what a gate sees, or by whose locks it checks."""
    shutil.copytree(shop.folder / ".git/coord", shop.folder.parent / "before")  # a store without locks
    _evil(shop, HELD)
    before = shop.tip("main")
    move = f"evil=$(git rev-parse evil); {ENVIRONMENT[name]}; git update-ref refs/heads/main $evil"
    code, said = _sh(shop, move)
    assert code != 0, said
    assert "coord: " in said, said
    assert shop.tip("main") == before


@pytest.mark.parametrize("name", HARMLESS)
def test_what_moves_no_protected_branch_is_free(shop: GateHarness, name: str) -> None:
    """Issue 15, part 1: tags, notes, other branches, packing and bisecting are nobody's business."""
    _evil(shop, HELD)
    code, said = _sh(shop, HARMLESS[name])
    assert (code, "coord" in said) == (0, False), said


@pytest.fixture
def far(shop: GateHarness) -> GateHarness:
    """A shared repository beside the shop, with a gate; the shop itself has no hooks."""
    folder = shop.folder.parent / "far.git"
    shop.plain("clone", "-q", "--bare", ".", str(folder))
    shop.plain("remote", "add", "origin", str(folder))
    with shop.client("ann") as client:
        install_gate(client.location, str(folder))
    for hook in (shop.folder / ".git/hooks").iterdir():
        hook.unlink()
    for hook in (folder / "hooks").iterdir():
        hook.write_text(hook.read_text().replace(CLIENT, gate_program(shop.folder)))
    return GateHarness(folder, shop.home)


@pytest.mark.parametrize("name", SHARED)
def test_way_into_a_shared_repository(shop: GateHarness, far: GateHarness, name: str) -> None:
    """Issue 15, part 1: however commits reach a shared repository, main gets them only after a check."""
    _evil(shop, HELD)
    before = far.tip("main")
    _, said = _sh(shop, SHARED[name])
    assert "coord: refused" in said, said
    assert (far.tip("main"), _bypassed(far.folder)) == (before, False)
    shop.unlock("bob")
    code, said = _sh(shop, "git push -q origin evil:main")
    assert (code, _has(far, HELD)) == (0, True), said


@pytest.mark.parametrize("name", UNSEEN_SHARED)
def test_unseen_way_into_a_shared_repository(shop: GateHarness, far: GateHarness, name: str) -> None:
    """Issue 15, part 1: who writes into the folder itself passes, is found, and stops the next push."""
    _evil(shop, HELD)
    before = far.tip("main")
    _sh(shop, UNSEEN_SHARED[name])
    assert (_has(far, HELD), _bypassed(far.folder)) == (True, True)
    shop.plain("merge", "-q", "--no-ff", "evil")
    _, said = _sh(shop, "git push -q --force origin main")
    assert "app.py is locked by bob" in said
    assert f"move it back: git update-ref refs/heads/main {before}" in said


def test_protected_symbolic_ref_moves_with_its_branch(shop: GateHarness) -> None:
    """Issue 15, part 1: while main leads to another branch, that branch is protected too."""
    shop.plain("branch", "trunk")
    shop.plain("symbolic-ref", "refs/heads/main", "refs/heads/trunk")
    _evil(shop, HELD)
    assert "app.py is locked by bob" in shop.refused("ann", "update-ref", "refs/heads/trunk", "evil")
    assert shop.git("ann", "branch", "-f", "other", "evil").code == 0


@pytest.mark.parametrize(
    "lines", ["git branch -D main", "git branch -m main x", "git update-ref -d refs/heads/main"]
)
def test_agent_cannot_delete_a_protected_branch(shop: GateHarness, lines: str) -> None:
    """Issue 15, part 1: otherwise a branch could get its name, which git tells no hook; a person may."""
    shop.plain("checkout", "-q", "--detach")
    _, said = _sh(shop, "git branch other && git branch -m other third && git branch -D third; " + lines)
    assert "main is protected: an agent may not delete or rename it" in said
    assert shop.tip("main")
    shop.plain("pack-refs", "--all")
    assert _sh(shop, lines)[0] != 0
    code, said = _sh(shop, lines, "")
    assert (code, "coord" in said) == (0, False), said


def test_agent_cannot_replace_what_main_shows(shop: GateHarness) -> None:
    """Issue 15, part 1: `git replace` changes no branch, but shows other content in all of them."""
    _evil(shop, HELD)
    assert "git replace would show another object" in shop.refused("ann", "replace", "main", "evil")
    shop.ok("", "replace", "main", "evil")
    shop.ok("ann", "replace", "-d", shop.tip("main"))


def test_only_noted_remotes_count(shop: GateHarness, tmp_path: Path) -> None:
    """Issue 15, part 1: the origin's main was checked there; a remote that an agent adds does not count."""
    _evil(shop, HELD)
    far = tmp_path / "far.git"
    shop.plain("clone", "-q", "--bare", ".", str(far))
    shop.plain("-C", str(far), "update-ref", "refs/heads/main", "evil")
    shop.ok("ann", "remote", "add", "origin", str(far))
    shop.ok("ann", "fetch", "-q", "origin")
    assert "app.py is locked by bob" in shop.refused("ann", "merge", "-q", "origin/main")
    shop.plain("reset", "-q", "--hard")
    repository = find_repository(str(shop.folder))
    assert repository is not None
    note_trusted(repository, by="claude")
    shop.refused("ann", "update-ref", "refs/heads/main", "evil")
    clean = tmp_path / "clean.git"
    shop.plain("clone", "-q", "--bare", ".", str(clean))
    shop.plain("remote", "set-url", "origin", str(clean))
    note_trusted(repository)
    shop.plain("remote", "set-url", "origin", str(far))
    shop.refused("ann", "update-ref", "refs/heads/main", "evil")
    shop.plain("config", f"url.{far}.insteadOf", str(clean))
    shop.refused("ann", "update-ref", "refs/heads/main", "evil")
    shop.plain("config", "--unset", f"url.{far}.insteadOf")
    note_trusted(repository)
    shop.plain("branch", "-D", "evil")
    shop.plain("update-ref", "-d", "refs/remotes/origin/evil")
    shop.ok("ann", "merge", "-q", "origin/main")
    assert _has(shop, HELD)


def test_origin_that_moved_on_counts(shop: GateHarness, tmp_path: Path) -> None:
    """Issue 15, part 1: if the origin has moved on, the gate fetches what it has, and moves no ref."""
    _evil(shop, HELD)
    far = tmp_path / "far"
    shop.plain("clone", "-q", ".", str(far))
    other = GateHarness(far, shop.home)
    other.plain("merge", "-q", "origin/evil")
    shop.plain("remote", "add", "origin", str(far))
    shop.plain("fetch", "-q", "origin")
    repository = find_repository(str(shop.folder))
    assert repository is not None
    note_trusted(repository)
    other.plain("commit", "-q", "--allow-empty", "-m", "later")
    refs = shop.plain("for-each-ref")
    shop.ok("ann", "update-ref", "refs/heads/main", "refs/remotes/origin/main")
    assert _has(shop, HELD)
    assert shop.plain("for-each-ref", "refs/remotes") in refs


def test_unseen_move_that_goes_back_is_forgotten(shop: GateHarness) -> None:
    """Issue 15, part 1: the next step of the finding works, also for an agent."""
    _evil(shop, HELD)
    before = shop.tip("main")
    _sh(shop, LOCAL["core.hooksPath"].lines)
    shop.ok("ann", "update-ref", "refs/heads/main", before)
    assert not _bypassed(shop.folder)
    shop.ok("ann", "commit", "-q", "--allow-empty", "-m", "next")


def test_note_that_is_damaged_checks_more(shop: GateHarness) -> None:
    """A note of an accepted commit that git lacks, or that was cut off, is as good as none."""
    _evil(shop, HELD)
    note = shop.folder / ".git/coord/accepted/refs%2Fheads%2Fmain"
    for text in ("", "12", "x\ny\nz\n", f"{'1' * 40}\n{'2' * 40}\n"):
        note.write_text(text)
        shop.refused("ann", "update-ref", "refs/heads/main", "evil")
        assert not _bypassed(shop.folder)


def test_document_lists_every_way() -> None:
    """The tables of the reference name the same ways as this file."""
    text = DOCUMENT.read_text()

    def listed(title: str) -> set[str]:
        section = re.search(rf"^{title}\n\n(.*?)\n\n", text, re.MULTILINE | re.DOTALL)
        assert section is not None, title
        return set(re.findall(r"`([^`]+)`", section[1]))

    assert listed("The gates see:") == {name for name, way in LOCAL.items() if way.seen}
    assert listed("The gates do not see:") == {name for name, way in LOCAL.items() if not way.seen}
    assert listed("A shared repository sees:") == set(SHARED)
    assert listed("A shared repository does not see:") == set(UNSEEN_SHARED)
    assert listed("No variable changes that:") == set(ENVIRONMENT)
