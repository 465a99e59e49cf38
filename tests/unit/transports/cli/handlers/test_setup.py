"""`coord init` and `coord uninstall` for people and scripts, and the hook checks of the doctor."""

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from coord.integrations.hooks import hook as hook_program
from coord.integrations.setup import tools
from coord.integrations.setup.text import agent_docs
from coord.transports.cli.commands.registry import find
from coord.transports.cli.main import main
from tests.support.cli import PROGRAM, Coord, Said
from tests.support.setup_folders import Snapshot, snapshot, write
from tests.support.terminals import Terminal

ALL = ("--tools", "claude,codex,gemini")


def found(said: Said, check: str) -> tuple[str, str, str]:
    """The state, message and hint of one check."""
    (finding,) = [each for each in said.answer["checks"] if each["check"] == check]
    return finding["state"], finding["message"], finding["hint"]


def test_init_asks_before_it_writes_hooks(coord: Coord, repository: Path) -> None:
    """Without a terminal and without --yes init prepares only the store, and names the next step.

    PRB-35.
    """
    said = coord("ann init", *ALL)
    assert said.code == 0
    assert said.answer["changed"] == []
    assert str(repository / ".claude/settings.local.json") in said.answer["proposed"]
    assert "coord init --yes writes hooks into" in said.line
    assert sorted(path.name for path in repository.iterdir()) == [".git"]
    assert not (repository / ".git/hooks/pre-commit").exists()


@pytest.mark.parametrize(("answer", "made"), [("y\n", True), ("\n", False)])
def test_a_person_is_shown_and_asked(repository: Path, answer: str, made: bool) -> None:
    """On a terminal init shows a line per file first, the diff if asked, and writes only after a yes."""
    terminal = Terminal(*PROGRAM[1:], "init", "--tools", "gemini", cwd=str(repository))
    terminal.wait_for("Change these files? [y/N]")
    assert ".gemini/settings.json: new, " in terminal.shown
    assert ("+++" in terminal.shown, terminal.shown.count("\n") < 20) == (False, True)
    terminal.type("d\n")
    terminal.wait_for("+++")
    terminal.wait_until(lambda shown: shown.count("Change these files?") == 2)
    terminal.type(answer)
    assert terminal.exit_code() == 0
    assert (repository / ".gemini/settings.json").exists() == made


def test_a_dry_run_changes_nothing(
    coord: Coord, repository: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--dry-run prints a diff in patch format, and creates nothing, not even the store."""
    write(repository / "GEMINI.md", "# Ours")
    before = snapshot(repository)
    assert main(["init", "--dry-run", *ALL]) == 0
    diff = capfd.readouterr().out
    assert snapshot(repository) == before
    assert f"--- /dev/null\n+++ {repository}/.codex/hooks.json\n" in diff
    assert "-# Ours\n\\ No newline at end of file\n+# Ours\n" in diff
    coord("ann init --yes", *ALL)
    assert main(["uninstall", "--dry-run"]) == 0
    assert f"--- {repository}/.codex/hooks.json\n+++ /dev/null\n" in capfd.readouterr().out
    assert (repository / ".codex/hooks.json").exists()


def test_init_and_uninstall(coord: Coord, repository: Path) -> None:
    """init writes hooks with absolute paths, a skill and a text; uninstall removes all but the store.

    INT-15, CTX-19, DOC-7, INT-11.
    """
    said = coord("ann init --yes", *ALL)
    assert (said.code, len(said.answer["changed"])) == (0, 22)
    settings = json.loads((repository / ".claude/settings.local.json").read_text())
    (group,) = settings["hooks"]["PreToolUse"]
    words = settings["hooks"]["PostToolUse"][0]["hooks"][0]["command"].split()
    assert (words[0], *words[2:4], words[5]) == ("exec", "-I", "-S", "claude")
    assert all(os.path.isabs(word) and os.path.isfile(word) for word in (words[1], words[4]))
    assert group["hooks"][0]["onFailure"] == "block"
    assert (repository / agent_docs.SKILL_PATH).read_text().startswith("---\nname: agent-sync\n")
    assert coord("ann init --yes", *ALL).answer["changed"] == []
    gone = coord("ann uninstall")
    assert gone.line == "Restored 22 files"
    assert sorted(path.name for path in repository.iterdir()) == [".git"]
    assert coord("ann lock a.py").code == 0
    assert coord("ann uninstall").line == "Nothing to undo"


def test_init_protects_every_tool_without_a_program(
    coord: Coord, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 15: plain init writes the hooks of all tools although no program is on the PATH."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert coord("ann init --yes").code == 0
    for tool in tools.TOOLS:
        assert tools.our_hooks(tools.settings_in(str(repository / tool.local)))[tool.before]
    before = snapshot(repository)
    assert coord("ann init --yes").answer["changed"] == []
    assert without_store(snapshot(repository)) == without_store(before)


def without_store(found: Snapshot) -> Snapshot:
    """Return a snapshot without the files of the store."""
    return {path: each for path, each in found.items() if "coord.db" not in path}


def test_tools_are_added_and_removed_by_name(coord: Coord, repository: Path) -> None:
    """Issue 15: `init --tools` never removes a tool; `uninstall --tools` removes just these."""

    def have() -> list[str]:
        files = {tool.name: str(repository / tool.local) for tool in tools.TOOLS}
        return [name for name, file in files.items() if tools.our_hooks(tools.settings_in(file))]

    coord("ann init --yes")
    assert coord("ann init --yes --tools claude").answer["changed"] == []
    assert have() == ["claude", "codex", "gemini"]
    said = coord("ann uninstall --tools codex,gemini")
    assert (said.code, said.line) == (0, "Restored 11 files; the hooks of git, claude stay")
    assert (have(), (repository / ".git/hooks/pre-commit").exists()) == (["claude"], True)
    assert not any((repository / name).exists() for name in (".codex", ".gemini", "AGENTS.md", "GEMINI.md"))
    assert coord("ann init --yes --tools gemini").line.count("(claude, gemini)") == 1
    assert have() == ["claude", "gemini"]
    assert coord("ann doctor").code == 0


def test_a_tool_without_protection_fails_the_setup(coord: Coord, repository: Path) -> None:
    """Issue 15: init exits 1 and names the reason and the next step; the other tools are protected."""
    write(repository / ".claude/settings.local.json", "{}\n")
    subprocess.run(["git", "add", "-A"], check=True)
    said = coord("ann init --yes")
    assert (said.code, said.answer["problems"][0]["subject"]) == (1, "claude")
    assert "git tracks .claude/settings.local.json (use coord init --shared, or coord" in said.line
    assert (repository / ".claude/settings.local.json").read_text() == "{}\n"
    assert found(coord("ann doctor"), "gemini")[0] == "ok"
    bad = coord("ann doctor")
    assert (bad.code, found(bad, "claude")[:2]) == (1, ("bad", "Claude Code has no coord hook"))


def test_the_settings_of_the_user(coord: Coord, repository: Path, tmp_path: Path) -> None:
    """--user writes hooks into the home for all repositories, so another repository needs none."""
    write(tmp_path / ".claude/settings.json", '{"model": "x"}\n')
    assert coord("ann init --yes --user", *ALL).code == 0
    assert "PreToolUse" in (tmp_path / ".claude/settings.json").read_text()
    assert not (repository / ".claude").exists()
    assert found(coord("ann doctor"), "claude")[0] == "ok"
    said = coord("ann init --yes", *ALL)
    assert [note.rpartition(" already has the hooks for ")[2] for note in said.answer["notes"]] == [
        *("Claude Code", "Codex", "Gemini CLI")
    ]
    coord("ann uninstall")
    coord("ann uninstall --user")
    assert (tmp_path / ".claude/settings.json").read_text() == '{"model": "x"}\n'
    assert not any((tmp_path / name).exists() for name in (".codex", ".gemini", ".config/coord"))


REFUSED = [
    ("--tools vim", "no hooks for 'vim'"),
    ("--shared --user", "--user"),
    ("--tools ,", "--tools is empty"),
]


@pytest.mark.parametrize(("words", "told"), REFUSED)
def test_what_cannot_be_asked_for(coord: Coord, repository: Path, words: str, told: str) -> None:
    """Bad input is refused with a hint, and changes nothing."""
    said = coord(f"ann init {words} --yes")
    assert (said.code, told in said.line) == (2, True)
    assert not (repository / ".git/coord").exists()


def test_the_doctor_plays_the_hooks(coord: Coord, repository: Path) -> None:
    """The doctor reports hooks that answer; --fix restores a missing gate and changes no lock."""
    coord("ann init --yes", *ALL)
    coord("ann lock a.py")
    said = coord("ann doctor")
    assert said.code == 0
    assert {found(said, name)[0] for name in ("hooks", "git hooks", "claude", "codex", "gemini")} == {"ok"}
    (repository / ".git/hooks/pre-commit").unlink()
    (repository / "CLAUDE.md").unlink()
    bad = coord("ann doctor")
    assert (bad.code, found(bad, "hooks")[0], found(bad, "hooks")[2]) == (1, "bad", "coord doctor --fix")
    mended = coord("ann doctor --fix")
    assert (mended.code, found(mended, "hooks")[0]) == (0, "ok")
    assert (repository / ".git/hooks/pre-commit").exists()
    assert [lock["resource"] for lock in coord("ann locks").answer["locks"]] == ["file:a.py"]


SWITCHES = [
    ("claude", ".claude/settings.json", '{"disableAllHooks": true}', "disableAllHooks"),
    ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks"),
    ("gemini", "../.gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled"),
    (
        "gemini",
        "../.gemini/settings.json",
        '{"hooksConfig": {"disabled": ["coord"]}}',
        "hooksConfig.disabled",
    ),
]


@pytest.mark.parametrize(("tool", "file", "text", "switch"), SWITCHES)
def test_hooks_that_are_switched_off(
    coord: Coord, repository: Path, tool: str, file: str, text: str, switch: str
) -> None:
    """A setting that disables hooks is bad in any file; the hint says which one to remove."""
    coord("ann init --yes --tools", tool)
    write(repository / file, text)
    state, message, hint = found(coord("ann doctor"), tool)
    assert (state, switch in message, hint.startswith(f"remove {switch} from ")) == ("bad", True, True)


def test_a_hook_that_lets_everything_pass(coord: Coord, repository: Path) -> None:
    """The doctor finds a hook whose program is missing or silent, because it runs the hook."""
    coord("ann init --yes --tools claude")
    path = repository / ".claude/settings.local.json"
    path.write_text(path.read_text().replace("hooks/main.py claude", "hooks/main.py claude; exit 0"))
    path.write_text(path.read_text().replace(f"{sys.executable} -I", f"true {sys.executable} -I"))
    state, message, hint = found(coord("ann doctor"), "claude")
    assert (state, hint) == ("bad", "coord doctor --fix")
    assert "does not refuse a forbidden call (exit 0)" in message
    assert coord("ann doctor --fix").code == 0


def test_an_agent_does_not_take_its_hooks_out(
    coord: Coord, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent may run the first setup, but neither remove it nor reduce it."""
    monkeypatch.setenv("CLAUDECODE", "1")
    assert coord("ann init --yes", *ALL).code == 0
    before = snapshot(repository)
    for words in ("uninstall", "uninstall --tools claude", "init --yes --shared", "init --yes --new-store"):
        said = coord(f"ann {words}")
        assert (said.code, "only people may" in said.line) == (1, True)
    assert without_store(snapshot(repository)) == without_store(before)
    monkeypatch.delenv("CLAUDECODE")
    assert coord("ann uninstall").code == 0


def test_the_dead_are_ended_and_nobody_else(coord: Coord) -> None:
    """SES-19: --fix frees the locks of a process that is proven dead; all others keep their locks."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    coord(f"bob --pid {child.pid} lock main-push")
    coord("eve lock name:build")
    child.communicate()
    said = coord("ann doctor --fix")
    assert (said.code, found(said, "peers")[0], found(said, "locks")[0]) == (0, "ok", "ok")
    assert [lock["resource"] for lock in coord("ann locks").answer["locks"]] == ["name:build"]


def test_agents_without_hooks_are_told(coord: Coord, repository: Path) -> None:
    """If a repository has files for an agent but no hooks, the doctor names the command."""
    (repository / ".gemini").mkdir()
    coord("ann init")
    assert found(coord("ann doctor"), "hooks") == (
        *("warn", "Gemini CLI works without hooks here", "coord init"),
    )


def test_texts_name_commands_that_exist() -> None:
    """INT-15, INT-11: the skill and the block are short, and name only existing commands."""
    for text in (agent_docs.SKILL, agent_docs.BLOCK):
        named = re.findall(r"`coord ([a-z-]+)(?: ([a-z]+))?", text)
        assert named
        assert [words for words in named if find(words[0]) is None and find(" ".join(words)) is None] == []
        assert len(text) < 2500


@pytest.mark.parametrize("asked", ["", "30", "nonsense"])
def test_tools_wait_longer_than_their_hooks_take(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """INT-9: the hook answers before the timeout of its tool, for every deadline."""
    monkeypatch.setenv("COORD_HOOK_DEADLINE", asked)
    takes = {"30": 30.0}.get(asked, 7.0)
    for tool in tools.TOOLS:
        hooks = tools.hooks_of(tool, shared=False)
        waits = {event: group["hooks"][0]["timeout"] / tool.unit for event, group in hooks.items()}
        assert waits.pop(tool.end, 3) == tools.END_TIMEOUT_S > hook_program.END_DEADLINE_S
        assert waits.pop(hook_program.PERMISSION, takes + 603) == takes + 603
        assert set(waits.values()) == {takes + 3}
    hook = hook_program.Hook("claude")
    hook.set_deadline()
    assert hook.deadline_s == takes


def test_hooks_are_set_for_all_that_the_client_knows() -> None:
    """INT-9: the settings configure all events that the hook knows."""
    for tool in tools.TOOLS:
        form = import_module(f"coord.integrations.hooks.tools.{tool.name}")
        assert set(tool.events) == set(form.KINDS)
        writers = [*getattr(form, "EDITORS", ()), *getattr(form, "SHELLS", ())]
        writers += [getattr(form, name) for name in ("SHELL", "PATCH") if hasattr(form, name)]
        unknown = ("mcp__files__write_file", "mcp_idea_reformat_file", "ReadAndWrite", "NextYearsTool")
        assert all(re.search(tool.matchers[tool.before], name) for name in (*writers, *unknown))
        readers = [
            name for name in hook_program.READERS[tool.name] if re.search(tool.matchers[tool.before], name)
        ]
        assert readers == ([] if tool.name != "codex" else list(hook_program.READERS["codex"]))
