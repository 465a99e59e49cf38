"""Events and situations: what the hook does about each, on a real repository and its store."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from coord.core.errors import Corrupt, Dead, LimitReached, Unavailable, Unreachable
from coord.integrations.hooks.events import ALLOW
from coord.integrations.hooks.handler import HookHandler
from coord.integrations.hooks.tools import claude, codex
from tests.support.git_folders import added_worktree, git, made_repository
from tests.support.hook_harness import HOOK_WAYS, HookHarness, answered_by


@pytest.fixture(params=HOOK_WAYS)
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[HookHarness]:
    with answered_by(request.param, HookHarness(tmp_path)) as found:
        yield found


def test_a_session_hears_of_its_peers(scene: HookHarness) -> None:
    """Two peers are told in one sentence, to be passed on to the user; nobody: nothing.

    SES-21, SCN-34, CTX-20, UI-6.
    """
    assert scene.tell("SessionStart", "one", source="startup").note == ""
    scene.tell("SessionStart", "two", source="startup")
    said = scene.tell("SessionStart", "three", source="startup").note
    assert "there are 2 other sessions" in said
    assert all(f"claude {name} (live) in {scene.root}" in said for name in ("one", "two"))
    assert "session three" in said


def test_a_held_file_is_refused_with_the_next_step(scene: HookHarness) -> None:
    """LCK-74, INT-5: who, until when, why, and the very command that waits for it."""
    with scene.client("bob") as bob:
        bob.acquire("src/app.py", reason="rework")
    deny = scene.write("src/app.py").deny
    assert "src/app.py is locked by session bob until" in deny
    assert 'for: "rework"' in deny
    assert "coord lock src/app.py` waits for it" in deny
    assert (scene.root / "src/app.py").read_text() == "app\n"


@pytest.mark.parametrize("glob", ["src/*", "src", "src/**", "s?c/[a-c]pp.py"])
def test_a_file_under_a_held_glob_is_refused(scene: HookHarness, glob: str) -> None:
    """LCK-76: the denial names the glob."""
    with scene.client("bob") as bob:
        bob.acquire(glob)
    assert "as part of file:" in scene.write("src/app.py").deny
    assert scene.write("free.txt").deny == ""


def test_beside_a_held_glob_other_files_are_written(scene: HookHarness) -> None:
    """LCK-76: a glob refuses the files that it matches, old and new, and no others; a folder is no file."""
    with scene.client("bob") as bob:
        bob.acquire("**/*.py")
    assert "as part of file:**/*.py" in scene.write("src/app.py").deny
    assert "as part of file:**/*.py" in scene.write("src/new.py").deny
    for path in ("README.md", "src/new.md", "src/new.md"):
        assert scene.write(path).deny == ""
    assert scene.held() == {"file:**/*.py": "bob", "file:README.md": "ada", "file:src/new.md": "ada"}


@pytest.mark.parametrize(("source", "denied"), [("docs", True), ("README.md", False)])
def test_what_a_folder_is_moved_to_is_no_file(scene: HookHarness, source: str, denied: bool) -> None:
    """LCK-76: where a call moves a folder, what is not there yet will be one, with files in it."""
    (scene.root / "docs").mkdir()
    with scene.client("bob") as bob:
        bob.acquire("new/*.py")
    given = {"source": str(scene.root / source), "destination": str(scene.root / "new")}
    call = {"tool_name": "mcp__files__move_file", "tool_input": given, "tool_use_id": "move"}
    assert bool(scene.before({"session": "ada", **call}).deny) is denied


def test_an_edit_is_locked_until_it_is_committed(scene: HookHarness) -> None:
    """Dirty against HEAD it stays locked; clean again, the next shell command's end frees it.

    INT-7, GIT-3.
    """
    scene.write("src/app.py")
    assert scene.held() == {"file:src/app.py": "ada"}
    assert "locked by claude (session ada)" in scene.write("src/app.py", "bob").deny
    call = scene.shell("make")
    scene.before(call)
    scene.after(call)
    assert scene.held() == {"file:src/app.py": "ada"}
    call = scene.shell("git commit -am more")
    scene.before(call)
    scene.commit("src/app.py")
    scene.after(call)
    assert scene.held() == {}
    assert scene.write("src/app.py", "bob", "bob\n").deny == ""


ODD = ("sp ace.txt", "[x]{y}*.txt", "-dash", "ü.txt", "quo'te\".txt", "a\\b.txt")


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_locked_and_freed(scene: HookHarness, name: str) -> None:
    """Wildcards in a name that a tool gives mean themselves; a new file is clean once it is committed."""
    scene.write(name)
    assert len(scene.held()) == 1
    assert scene.write(f"not-{name}", "bob").deny == ""
    assert scene.write(name, "bob").deny
    git(scene.root, "add", "--", name)
    git(scene.root, "commit", "-q", "-m", "more")
    scene.tell("Stop")
    assert scene.write(name, "bob").deny == ""


def test_an_ignored_file_is_not_clean(scene: HookHarness) -> None:
    """HEAD does not know it, so what was written is nowhere else."""
    (scene.root / ".gitignore").write_text("*.env\n")
    scene.write("x.env")
    scene.tell("Stop")
    assert scene.write("x.env", "bob").deny


def test_a_failed_edit_frees_its_file(scene: HookHarness) -> None:
    """Claude tells PostToolUseFailure instead: the file is as it was."""
    call = scene.edit("src/app.py")
    scene.before(call)
    scene.tell("PostToolUseFailure", **call)
    assert scene.held() == {}


def test_a_file_that_is_about_to_be_written_is_not_freed(scene: HookHarness) -> None:
    """Calls side by side: the end of one finds the other's file clean, but not yet written."""
    edit, shell = scene.edit("src/app.py"), scene.shell("true")
    scene.before(edit)
    scene.before(shell)
    scene.after(shell)
    assert scene.held() == {"file:src/app.py": "ada"}


def test_an_edit_in_a_worktree_is_looked_at_there(scene: HookHarness, tmp_path: Path) -> None:
    """A lock counts in every worktree, but its file is clean or not where it was edited."""
    added_worktree(scene.root, tmp_path / "tree")
    call = scene.edit(str(tmp_path / "tree/src/app.py"))
    scene.before(call)
    (tmp_path / "tree/src/app.py").write_text("new\n")
    scene.after(call)
    scene.tell("Stop")
    assert scene.write("src/app.py", "bob").deny
    git(tmp_path / "tree", "checkout", "-q", "src/app.py")
    scene.tell("Stop")
    assert scene.write("src/app.py", "bob").deny == ""


def test_where_the_store_was_removed_the_hook_does_not_guess(scene: HookHarness) -> None:
    """INT-5: a hook that was set up for this very repository raises, and what writes is refused."""
    shutil.rmtree(scene.root / ".git/coord")
    told = {"session_id": "ada", "cwd": str(scene.root), "hook_event_name": "PreToolUse"}
    event = claude.parse({**told, **scene.edit("src/app.py")})
    with pytest.raises(Corrupt, match="is gone"):
        scene.answer(event)
    (scene.root / ".git/coord.id").unlink()
    with pytest.raises(Unavailable, match="was set up in this repository"):
        scene.answer(event._replace(installed_for=str(scene.root / ".git")))
    assert scene.answer(event) == ALLOW, "hooks for all repositories do not know that it was there"


def test_a_patch_of_two_worktrees_is_looked_at_in_both(scene: HookHarness, tmp_path: Path) -> None:
    """Each file of a call is clean or not in the worktree where it was written."""
    tree = tmp_path / "tree"
    added_worktree(scene.root, tree)
    patch = f"*** Begin Patch\n*** Update File: src/app.py\n*** Add File: {tree}/new.txt\n*** End Patch"
    told = {"session_id": "ada", "cwd": str(scene.root), "tool_name": "apply_patch", "tool_use_id": "c"}
    told["tool_input"] = {"command": patch}  # type: ignore[assignment]
    assert scene.answer(codex.parse({**told, "hook_event_name": "PreToolUse"})).deny == ""
    (scene.root / "src/app.py").write_text("new\n")
    (tree / "new.txt").write_text("new\n")
    scene.answer(codex.parse({**told, "hook_event_name": "PostToolUse"}))
    scene.tell("Stop")
    assert set(scene.held()) == {"file:src/app.py", "file:new.txt"}
    (tree / "new.txt").unlink()
    scene.tell("Stop")
    assert set(scene.held()) == {"file:src/app.py"}


def test_a_patch_of_two_worktrees_is_refused_as_a_whole(scene: HookHarness, tmp_path: Path) -> None:
    """LCK-40: where one of its files is held, nothing of the call stays locked."""
    added_worktree(scene.root, tmp_path / "tree")
    with scene.client("bob") as bob:
        bob.acquire("new.txt")
    patch = (
        f"*** Begin Patch\n*** Update File: src/app.py\n*** Add File: {tmp_path}/tree/new.txt\n*** End Patch"
    )
    told = {"session_id": "ada", "cwd": str(scene.root), "tool_name": "apply_patch", "tool_use_id": "c"}
    given = {**told, "tool_input": {"command": patch}, "hook_event_name": "PreToolUse"}
    assert "new.txt is locked by session bob" in scene.answer(codex.parse(given)).deny
    assert scene.held() == {"file:new.txt": "bob"}


def test_files_elsewhere_are_nobody_s(scene: HookHarness, tmp_path: Path) -> None:
    """A file outside of every repository with coord is not locked; in another one it is locked there."""
    (tmp_path / "plain").mkdir()
    assert scene.write(str(tmp_path / "plain/x")).deny == ""
    made_repository(tmp_path / "without")
    assert scene.write(str(tmp_path / "without/x")).deny == ""
    assert not (tmp_path / "without/.git/coord").exists()
    other = HookHarness(tmp_path / "other")
    assert scene.write(str(other.root / "x")).deny == ""
    assert other.held() == {"file:x": "ada"}
    assert other.write("x", "bob").deny


def test_a_link_that_leads_out_is_followed(scene: HookHarness, tmp_path: Path) -> None:
    """A symlink to a file outside is not refused; one inside locks both names."""
    (tmp_path / "outside.md").write_text("x")
    os.symlink(tmp_path / "outside.md", scene.root / "CLAUDE.md")
    assert scene.write("CLAUDE.md").deny == ""
    os.symlink("src/app.py", scene.root / "link.py")
    scene.write("link.py")
    assert set(scene.held()) >= {"file:link.py", "file:src/app.py"}


@pytest.mark.parametrize("kind", ["symlink", "hard link"])
def test_a_link_that_was_made_after_the_grant(scene: HookHarness, kind: str) -> None:
    """Issue 15: a hook follows links when something is written, whenever they were made."""
    (scene.root / "lib").mkdir()
    (scene.root / "lib/real.py").write_text("x")
    assert scene.write("lib/real.py", "bob").deny == ""
    if kind == "symlink":
        os.symlink("../lib", scene.root / "src/link")
    else:
        (scene.root / "src/link").mkdir()
        os.link(scene.root / "lib/real.py", scene.root / "src/link/real.py")
    assert "lib/real.py" in scene.write("src/link/real.py").deny
    assert "file:src/link/real.py" not in scene.held()


def test_the_git_directory_is_no_place_to_edit(scene: HookHarness) -> None:
    """Hooks and locks live there."""
    for name in (
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/coord/store/coord.db",
        ".git/worktrees/x/config.worktree",
    ):
        assert "agents may not change" in scene.before(scene.edit(f".git/{name}")).deny
    assert scene.before(scene.edit(".git/COMMIT_EDITMSG")).deny == ""


def test_an_action_needs_its_lock_for_as_long_as_it_runs(scene: HookHarness) -> None:
    """INT-12, LCK-61: pushes of main go one after the other; the next step waits in line and runs it."""
    mine, theirs = scene.shell("git push origin main"), scene.shell("git push origin main", "bob")
    assert scene.before(mine).deny == ""
    assert scene.held() == {"name:main-push": "ada"}
    deny = scene.before(theirs).deny
    assert "name:main-push is locked by claude (session ada)" in deny
    assert "coord guard name:main-push -- sh -c 'git push origin main'` waits and runs it" in deny
    scene.after(mine)
    assert scene.before(theirs).deny == ""


def test_an_action_does_not_outlive_its_call(scene: HookHarness) -> None:
    """INT-12: nobody tells when a command in the background ends, so none with a lock runs there."""
    given = {"command": "git push origin main", "run_in_background": True}
    deny = scene.before(scene.shell("", tool_input=given)).deny
    assert "needs name:main-push while it runs" in deny
    assert "run it in the foreground" in deny
    assert scene.held() == {}
    given = {"command": "python -m http.server", "run_in_background": True}
    assert scene.before(scene.shell("", tool_input=given)).deny == ""


@pytest.mark.parametrize(
    "line",
    [
        "git push origin main &",
        "git push origin main& echo sent",
        "(sleep 1; git push origin main)&",
        "nohup git push origin main",
        "setsid -f git push origin main",
        "git push origin main & disown",
        "bash -c 'git push origin main &'",
        "bash <<EOF\ngit push origin main &\nEOF",
    ],
)
def test_an_action_does_not_outlive_its_line(scene: HookHarness, line: str) -> None:
    """INT-12: the shell can put a command into the background, too."""
    deny = scene.before(scene.shell(line)).deny
    assert "needs name:main-push while it runs" in deny
    assert "without `&`" in deny
    assert scene.held() == {}


@pytest.mark.parametrize(
    "line",
    [
        "git push origin main && echo sent",
        "git push origin main 2>&1 |& cat",
        "make &",
        "git commit -m \"$(cat <<'EOF'\nthis & that\nEOF\n)\" && git push origin main",
    ],
)
def test_an_action_in_the_foreground_is_run(scene: HookHarness, line: str) -> None:
    """INT-12: not every `&` puts something into the background, and not all that goes on needs a lock."""
    assert scene.before(scene.shell(line)).deny == ""


def test_an_action_under_the_session_s_own_lock_keeps_it(scene: HookHarness) -> None:
    """What the session asked for itself is not given back by a hook."""
    with scene.client("ada") as ada:
        ada.acquire("name:main-push")
    call = scene.shell("git push origin main")
    assert scene.before(call).deny == ""
    scene.after(call)
    assert scene.held() == {"name:main-push": "ada"}


def test_an_action_of_the_host_is_locked_for_all_repositories(scene: HookHarness, tmp_path: Path) -> None:
    """Names of the host stand in the user's own store; refused there, nothing is kept here.

    LCK-65, PRB-13.
    """
    other = HookHarness(tmp_path / "other")
    other.environ = scene.environ
    assert scene.before(scene.shell("pkill engram")).deny == ""
    line = "git push origin main; pkill engram"
    assert "engram-serve is locked" in other.before(other.shell(line, "bob")).deny
    assert other.held() == {}


def test_messages_come_at_the_end_of_a_call_once(scene: HookHarness) -> None:
    """MSG-13, MSG: a message is offered to one hook and delivered as its last act."""
    scene.tell("SessionStart", source="startup")
    with scene.client("bob") as bob:
        bob.send("ada", "request", "please review", body="branch login")
    said = scene.write("new.txt").note
    assert 'from bob (request): "please review"\n> branch login' in said
    assert scene.write("new2.txt").note == ""
    with scene.client("ada") as ada:
        assert ada.recv(peek=True).messages == []


def test_messages_come_with_the_next_prompt(scene: HookHarness) -> None:
    """Who sits idle hears of it when its user speaks."""
    scene.tell("SessionStart", source="startup")
    with scene.client("bob") as bob:
        bob.send("ada", "notify", "done")
    assert 'from bob (notify): "done"' in scene.tell("UserPromptSubmit", prompt="go on").note


def test_an_emergency_stops_calls_until_it_is_acknowledged(scene: HookHarness) -> None:
    """MSG-3: it is shown at the next hook, stops edits and commands, and lets pass what asks coord."""
    scene.tell("SessionStart", source="startup")
    with scene.client("bob") as bob:
        sent = bob.send("ada", "emergency", "the key leaked", body="do not push")
    shown = scene.tell("PostToolUse", **scene.edit("new.txt", tool_name="Read")).note
    assert 'from bob (emergency): "the key leaked" (edits' in shown
    assert "\n> do not push" in shown
    for call in (
        scene.edit("new.txt"),
        scene.shell("make"),
        scene.shell("coord ack x > new.txt"),
        scene.shell("coord recv; rm new.txt"),
        scene.shell("coord recv; date"),
        scene.shell("coord guard x -- make"),
        scene.shell("coord commit -m x"),
    ):
        deny = scene.before(call).deny
        assert "the key leaked" in deny
        assert f"ack {sent.id}` acknowledges it" in deny
    assert scene.held() == {}
    for line in (
        f"coord ack {sent.id}",
        f"/usr/bin/coord --session ada ack {sent.id}",
        "coord recv && coord locks",
    ):
        assert scene.before(scene.shell(line)).deny == ""
    assert "the key leaked" in scene.tell("Stop").keep_going
    assert scene.tell("Stop", stop_hook_active=True).keep_going == ""
    with scene.client("ada") as ada:
        ada.ack(sent.id)
    assert scene.write("new.txt").deny == ""
    assert scene.tell("UserPromptSubmit", prompt="go on").note == ""


def test_a_sub_agent_stops_with_its_session(scene: HookHarness) -> None:
    """MSG-3: the text names the session that acknowledges, where `coord ack` would mean another one."""
    scene.tell("SessionStart", source="startup")
    scene.tell("SubagentStart", agent_id="x1", agent_type="explorer")
    with scene.client("bob") as bob:
        first = bob.send("ada", "emergency", "stop all")
        assert f"coord ack {first.id}`" in scene.write("a.txt", agent_id="x1").deny.replace("/bin/", " ")
        second = bob.send("ada.x1", "emergency", "stop one")
    with scene.client("ada") as ada:
        ada.ack(first.id)
        assert scene.write("b.txt").deny == ""
        assert f"--session ada.x1 ack {second.id}`" in scene.write("a.txt", agent_id="x1").deny
    with scene.client("ada.x1") as child:
        child.ack(second.id)
    assert scene.write("a.txt", agent_id="x1").deny == ""


@pytest.mark.parametrize(("left_s", "waits_s"), [(-1.0, 0.0), (0.0, 0.0), (2.5, 2.5)])
def test_a_store_is_waited_for_while_there_is_time(
    scene: HookHarness, monkeypatch: pytest.MonkeyPatch, left_s: float, waits_s: float
) -> None:
    """REC-20: a hook retries to open its store until the moment that it was given, not for longer."""
    told: list[float] = []

    def opened(_place: object, timeout: float, *_: object) -> NoReturn:
        told.append(timeout)
        raise Unreachable("away")

    monkeypatch.setattr("coord.integrations.hooks.handler.open_for_use", opened)
    monkeypatch.setattr("coord.integrations.hooks.handler.time.monotonic", lambda: 100.0)
    given = {"session_id": "ada", "cwd": str(scene.root), "hook_event_name": "PreToolUse"}
    event = claude.parse({**given, "tool_name": "Write", "tool_input": {"file_path": "new.txt"}})
    with pytest.raises(Unreachable):
        HookHandler(event, {}, scene.environ, lambda _: None, open_by=100.0 + left_s).handle()
    assert told == [waits_s]


def test_a_reading_call_opens_nothing(scene: HookHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a tool that only reads there is nothing to ask."""
    monkeypatch.setattr("coord.integrations.hooks.handler.open_for_use", None)
    assert scene.before({**scene.edit("x"), "tool_name": "Read"}).deny == ""


def test_held_locks_are_recalled_at_the_stop_once(scene: HookHarness) -> None:
    """Each lock is recalled once; not while the tool says that it was reminded already."""
    scene.write("new.txt")
    assert scene.tell("Stop", stop_hook_active=True).keep_going == ""
    assert "still holds file:new.txt" in scene.tell("Stop").keep_going
    assert scene.tell("Stop").keep_going == ""
    with scene.client("ada") as ada:
        ada.acquire("name:release")
    assert "unlock name:release`" in scene.tell("Stop").keep_going


def test_after_compaction_it_is_told_who_does_what(scene: HookHarness) -> None:
    """CTX-15: the roster with its locks, the session's own locks, and the rules."""
    scene.tell("SessionStart", "bob", source="startup")
    scene.write("his.txt", "bob")
    scene.write("mine.txt")
    said = scene.tell("SessionStart", source="compact").note
    assert "- Agent bob (claude) — idle, No task, Locked: his.txt\n" in said
    assert "== COORDINATION RULES ==\n- This is session ada.\n- This session holds mine.txt.\n" in said


def test_a_cleared_session_goes_on_as_another(scene: HookHarness) -> None:
    """`/clear` gives a new id; the locks move to it in one commit."""
    scene.tell("SessionStart", "old", source="startup")
    scene.write("new.txt", "old")
    scene.tell("SessionEnd", "old", reason="clear")
    scene.tell("SessionStart", "young", source="clear")
    assert scene.held() == {"file:new.txt": "young"}


def test_a_session_is_known_with_its_program_and_model(scene: HookHarness) -> None:
    """SUP-16, SES-4: as far as the payload and the process of the tool show them."""
    scene.tell("SessionStart", source="startup", model="claude-opus-5")
    with scene.client("watcher") as client:
        ada = client.show("ada")
        assert (ada.model, ada.repository, ada.state) == ("claude-opus-5", str(scene.root), "idle")
        assert ada.bin, "the process that runs the tests stands for the tool"
    scene.before(scene.edit("src/new.py"))
    with scene.client("watcher") as client:
        ada = client.show("ada")
        assert (ada.state, ada.current_file, ada.model) == ("working", "src/new.py", "claude-opus-5")


def test_the_end_of_a_session_ends_its_sub_agents(scene: HookHarness) -> None:
    """SUP-9, SUP-14: a call of one that still runs is refused, and told why."""
    scene.tell("SessionStart", source="startup")
    scene.tell("SubagentStart", agent_id="a1", agent_type="reviewer")
    with scene.client("watcher") as client:
        assert client.show("ada").owned_resources == {"agents": ["ada.a1"]}
        assert client.show("ada.a1").state == "working"
    scene.write("src/new.py", agent_id="a1", agent_type="reviewer")
    scene.tell("SessionEnd", source="other")
    assert scene.held() == {}
    with pytest.raises(Dead, match="its lead ada has ended"):
        scene.before(scene.edit("src/more.py", agent_id="a1", agent_type="reviewer"))


def test_a_sub_agent_owns_what_it_edits(scene: HookHarness) -> None:
    """Sub-agents exclude each other and their session; what they edited stays with the session after them."""
    scene.tell("SessionStart", source="startup")
    one, two = {"agent_id": "a1", "agent_type": "worker"}, {"agent_id": "a2", "agent_type": "worker"}
    scene.tell("SubagentStart", **one)
    assert scene.write("part.txt", **one).deny == ""
    assert scene.held() == {"file:part.txt": "ada.a1"}
    assert "locked by worker (session ada.a1)" in scene.write("part.txt", **two).deny
    assert scene.write("part.txt").deny
    scene.tell("SubagentStop", **one)
    assert scene.held() == {"file:part.txt": "ada"}
    assert scene.write("part.txt").deny == ""


def test_the_end_of_a_session_frees_all(scene: HookHarness) -> None:
    """Nothing stays locked after it; a session that is not known ends all the same.

    INT-10, LCK-78, SES-24.
    """
    scene.write("new.txt")
    scene.tell("SessionEnd", reason="other")
    assert scene.held() == {}
    assert scene.tell("SessionEnd", "nobody", reason="other").deny == ""


def test_a_name_given_by_its_starter_is_the_session(scene: HookHarness) -> None:
    """INT-17: who starts an agent may name it; sub-agents stand below that name."""
    scene.environ["COORD_SESSION_ID"] = "worker-3"
    scene.environ["COORD_AGENT"] = "otto"
    scene.write("new.txt")
    scene.write("part.txt", agent_id="a1", agent_type="x")
    assert scene.held() == {"file:new.txt": "worker-3", "file:part.txt": "worker-3.a1"}


def test_without_coord_the_hook_stays_out_of_the_way(tmp_path: Path, scene: HookHarness) -> None:
    """PRB-24: Hooks of a user fire in every repository: where coord is not in use nothing happens."""
    made_repository(tmp_path / "plain")
    scene.root = tmp_path / "plain"
    assert scene.write("new.txt").deny == ""
    assert scene.tell("SessionStart", source="startup").note == ""
    assert scene.tell("Stop").keep_going == ""
    assert not (scene.root / ".git/coord").exists()


def test_a_lost_store_is_no_free_store(scene: HookHarness) -> None:
    """A pinned store that is gone refuses; the program makes a denial of that."""
    for file in (scene.root / ".git/coord/store").glob("coord.db*"):
        file.unlink()
    with pytest.raises(Corrupt):
        scene.write("new.txt")


def test_what_the_last_holder_left_is_put_aside_first(scene: HookHarness) -> None:
    """REC-11: an edit under a lock that somebody lost begins from HEAD; it is refused once, then passes."""
    then_s = int(time.time()) - 120
    with scene.client("bob", clock=lambda: then_s * 1000) as bob:
        (fence,) = [lock.fence for lock in bob.acquire("src/app.py", ttl_s=30).locks]
    (scene.root / "src/app.py").write_text("half done\n")
    os.utime(scene.root / "src/app.py", (then_s + 10, then_s + 10))
    deny = scene.write("src/app.py").deny
    ref = f"refs/coord/salvage/{fence}/1"
    assert ref in deny
    assert "read them again" in deny
    assert (scene.root / "src/app.py").read_text() == "app\n"
    assert git(scene.root, "show", f"{ref}:src/app.py") == "half done"
    assert scene.held() == {"file:src/app.py": "ada"}
    assert not scene.write("src/app.py").deny
    scene.tell("Stop")
    scene.commit("src/app.py")
    scene.tell("Stop")
    assert scene.held() == {}, "the call that was refused keeps nothing"


def test_an_agent_too_many_is_refused(scene: HookHarness) -> None:
    """PRB-5, SUP-3: MAX_AGENTS holds for hooks; the sub-agent that is one too many writes nothing."""
    scene.environ["MAX_AGENTS"] = "1"
    scene.tell("SessionStart", "one", source="startup")
    assert not scene.write("a.py", "one").deny
    with pytest.raises(LimitReached, match=r"has 1 agent and may have 1: claude \(one\)"):
        scene.write("b.py", "one", agent_id="helper", agent_type="Explore")
    assert not (scene.root / "b.py").exists()


def test_a_hook_uses_the_project_of_the_plan(scene: HookHarness) -> None:
    """DESIGN §7: an agent that a hook registers belongs to the project that is remembered here."""
    with scene.client("lead") as client:
        client.use_project("reverie", remember=True)
    scene.tell("SessionStart", "one", source="startup")
    with scene.client("lead") as client:
        assert (client.project, client.show("one").project) == ("reverie", "reverie")
