"""The stubs themselves: without a client, with a former hook, and how they can be gone round."""

from pathlib import Path

import pytest

from coord.integrations.git.gate.stubs import LOCAL_HOOKS, SHARED_HOOK, stub_text
from tests.support.gate_harness import GateHarness, put_stubs


def _former(shop: GateHarness, hook: str, text: str) -> None:
    file = shop.folder / f".git/hooks/{hook}.coord-former"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.mark.parametrize("python", ["", "/nowhere/python"], ids=["no client", "no python"])
def test_stub_without_client_refuses_agents(shop: GateHarness, python: str) -> None:
    """Issue 5, part 4: where the client is gone people are warned and agents refused."""
    put_stubs(
        shop.folder / ".git/hooks", client="/nowhere/client.py", **({"python": python} if python else {})
    )
    shop.write("new.py", "x\n")
    done = shop.git("", "commit", "-qm", "mine")
    assert done.code == 0
    assert "coord: pre-commit is not checked: /nowhere/client.py is missing" in done.said
    assert "reference-transaction is not checked" in done.said
    shop.write("new.py", "y\n")
    for more in ({"COORD_SESSION_ID": "ann"}, {"CLAUDECODE": "1"}, {"AI_AGENT": "x"}):
        done = shop.git("", "commit", "-qnm", "mine", more=more)
        assert done.code == 1
        assert "refused: the program that checks it is missing" in done.said
        assert "coord init" in done.said
    assert shop.git("ann", "update-ref", "refs/heads/main", "HEAD~1").code != 0


def test_client_that_cannot_be_loaded_refuses_agents(shop: GateHarness, tmp_path: Path) -> None:
    """A client whose package does not load any more judges nothing: people are told, agents refused."""
    exclusive = tmp_path / "gate_client.py"
    exclusive.write_text(Path(put_stubs.__globals__["CLIENT"]).read_text().replace("coord.", "no_coord."))
    put_stubs(shop.folder / ".git/hooks", client=str(exclusive))
    shop.write("new.py", "x\n")
    done = shop.git("ann", "commit", "-qm", "mine")
    assert done.code == 1
    assert "the check of pre-commit failed: No module named" in done.said


def test_former_hook_runs_after_the_gate(shop: GateHarness) -> None:
    """Chaining: the hook that was there sees the same arguments and lines, and may refuse after it."""
    _former(shop, "pre-commit", "echo former pre-commit >&2")
    _former(shop, "prepare-commit-msg", 'echo "former message $2" >&2')
    _former(shop, "reference-transaction", 'while read old new ref; do echo "$1 $ref" >&2; done')
    shop.lock("bob", "app.py")
    shop.write("app.py", "x\n")
    assert "former" not in shop.refused("ann", "commit", "-qm", "mine")
    done = shop.git("bob", "commit", "-qm", "his")
    assert done.code == 0
    for said in ("former pre-commit", "former message message", "prepared refs/heads/main"):
        assert said in done.said
    _former(shop, "pre-commit", "exit 1")
    shop.write("lib.py", "x\n")
    assert shop.git("ann", "commit", "-qm", "mine").code == 1


def test_python_starts_for_protected_branches_only(shop: GateHarness) -> None:
    """Speed: for other refs, and after a transaction, the stub alone answers, though the client is gone."""
    put_stubs(shop.folder / ".git/hooks", ("reference-transaction",), client="/nowhere/client.py")
    assert shop.git("ann", "branch", "side").code == 0
    assert shop.git("ann", "update-ref", "refs/heads/mains", "HEAD").code == 0
    done = shop.git("ann", "update-ref", "refs/heads/master", "HEAD")
    assert "refused: the program that checks it is missing" in done.said


@pytest.mark.parametrize("hook", [*LOCAL_HOOKS, SHARED_HOOK])
def test_stub_quotes_what_it_is_given(hook: str, tmp_path: Path) -> None:
    """Paths and branches with quotes, spaces and dollars arrive as they are."""
    python = tmp_path / "it's $HOME/py thon"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "$COORD_PROTECTED $2 $3 $4" >"$2.out"\n')
    python.chmod(0o755)
    client = tmp_path / "cl'ient $(x).py"
    client.touch()
    (tmp_path / "hooks").mkdir()
    stub = tmp_path / "hooks" / hook
    stub.write_text(stub_text(hook, str(python), str(client), ("it's", "a*")))
    stub.chmod(0o755)
    run = GateHarness(tmp_path, tmp_path)
    run.plain("init", "-q", ".")
    lines = f"{'0' * 40} {'1' * 40} refs/heads/it's\n"
    done = run.git("", "-c", "alias.run=!sh", "run", str(stub), "prepared", stdin=lines)
    assert done.code == 0, done
    assert (tmp_path / "cl'ient $(x).py.out").read_text() == f"it's a* {client} {hook} prepared\n"


@pytest.mark.parametrize(
    "way",
    [
        ("-c", "core.hooksPath=/dev/null", "commit", "-qm", "mine"),
        ("-c", "core.hooksPath=/nowhere", "commit", "-qnm", "mine"),
    ],
)
def test_known_way_round_hooks(shop: GateHarness, way: tuple[str, ...]) -> None:
    """Known bypass: whoever sets core.hooksPath runs no hook; only a shared repository stops that."""
    shop.lock("bob", "app.py")
    shop.write("app.py", "x\n")
    shop.ok("ann", *way)
    assert "Coord-" not in shop.message()


def test_known_way_round_trailers(shop: GateHarness) -> None:
    """Known bypass: trailers prove order, not authorship; a commit written by plumbing says what it likes."""
    shop.plain("checkout", "-qb", "side")
    shop.claim("ann", "T-1")
    shop.commit("ann", "app.py", "of ann\n")
    shop.claim("bob", "T-1", force=True)
    shop.refused("ann", "update-ref", "refs/heads/main", "side")
    washed = shop.ok("ann", "commit-tree", "side^{tree}", "-p", "main", "-m", "nothing to see")
    shop.ok("ann", "update-ref", "refs/heads/main", washed)
    assert shop.tip("main") == washed


def test_known_way_round_a_ref(shop: GateHarness) -> None:
    """Known bypass: a file written into the refs folder is no transaction."""
    shop.plain("checkout", "-qb", "side")
    shop.claim("ann", "T-1")
    late = shop.commit("ann", "app.py", "of ann\n")
    shop.claim("bob", "T-1", force=True)
    (shop.folder / ".git/refs/heads/main").write_text(f"{late}\n")
    assert shop.tip("main") == late
