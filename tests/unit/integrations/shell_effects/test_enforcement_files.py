"""Files that enforcement rests on are put back if a call changed them, by whatever means."""

import json
from pathlib import Path

import pytest

from coord.host.repository import find_repository
from coord.integrations.setup.checks import examine_hooks
from coord.integrations.shell_effects.enforcement_files import incidents_of
from tests.support.git_folders import git
from tests.unit.integrations.shell_effects.test_observe import EffectsHarness

SETTINGS = ".claude/settings.local.json"
OURS = {"hooks": {"PreToolUse": [{"hooks": [{"command": "coord hook claude"}]}]}}


@pytest.fixture
def harness(tmp_path: Path) -> EffectsHarness:
    found = EffectsHarness(tmp_path)
    (found.root / ".claude").mkdir()
    (found.root / SETTINGS).write_text(json.dumps(OURS))
    (found.root / ".git/hooks").mkdir(exist_ok=True)
    (found.root / ".git/hooks/pre-commit").write_text("#!/bin/sh\nexec true coord\n")
    (found.root / ".git/hooks/pre-commit").chmod(0o755)
    return found


def bob_does(harness: EffectsHarness, line: str) -> str:
    """Bob runs a program that no parser understands."""
    (harness.root.parent / "program").write_text(line)
    return harness.run("sh ../program")


WAYS = (
    (SETTINGS, f"""echo '{{"disableAllHooks": true}}' > {SETTINGS}"""),
    (SETTINGS, f"echo broken > {SETTINGS}"),
    (SETTINGS, "rm -rf .claude"),
    (SETTINGS, f"echo '{{}}' > {SETTINGS}"),
    (".git/hooks/pre-commit", "rm .git/hooks/pre-commit"),
    (".git/hooks/pre-commit", "chmod -x .git/hooks/pre-commit"),
    (".git/hooks/pre-commit", "echo true > .git/hooks/pre-commit"),
    (".git/config", "git config core.hooksPath /dev/null"),
    (".git/config", "git config include.path ../evil"),
    (".git/config", "git config core.bare true"),
    (".git/config", "printf '[core]bare=yes' >> .git/config"),
    (".git/config", "git config core.worktree .."),
    (".git/config", "git config core.repositoryFormatVersion 99"),
    (".git/config", "git config core.sshCommand ./liar"),
    (".git/config", "echo '[core' >> .git/config"),
)


@pytest.mark.parametrize(("path", "line"), WAYS)
def test_a_change_is_put_back_and_reported(harness: EffectsHarness, path: str, line: str) -> None:
    """The agent, everybody and the doctor hear of it; what was written is kept."""
    harness.tell("SessionStart", "person", source="startup")
    before, mode = (harness.root / path).read_bytes(), (harness.root / path).stat().st_mode
    notes = bob_does(harness, line)
    assert f"{path}, which decides whether locks are enforced" in notes
    assert (harness.root / path).read_bytes() == before
    assert (harness.root / path).stat().st_mode == mode
    assert [message.subject.startswith("session bob changed") for message in harness.inbox("person")] == [
        True
    ]
    (incident,) = incidents_of(str(harness.root / ".git/coord"))
    assert (incident.session, incident.path, incident.restored) == ("bob", str(harness.root / path), True)
    assert harness.run("true") == ""


def test_new_settings_that_switch_hooks_off_are_removed(harness: EffectsHarness) -> None:
    """There was no such file before."""
    notes = bob_does(harness, """echo '{"disableAllHooks": true}' > .claude/settings.json""")
    assert "coord put it back" in notes
    assert not (harness.root / ".claude/settings.json").exists()


def test_the_git_configuration_of_the_user_is_put_back(harness: EffectsHarness) -> None:
    """Another folder of hooks for all repositories would switch off this gate; a name would not."""
    home = Path(harness.environ["HOME"])
    home.mkdir(exist_ok=True)
    (home / ".gitconfig").write_text("[user]\n\tname = n\n")
    for line in ("[core]\\n\\thooksPath = /x\\n", "[broken\\n"):
        assert "coord put it back" in bob_does(harness, f"printf '{line}' >> {home}/.gitconfig")
        assert (home / ".gitconfig").read_text() == "[user]\n\tname = n\n"
    assert "enforced" not in bob_does(harness, f"printf '[user]\\n\\tname = m\\n' > {home}/.gitconfig")
    assert "name = m" in (home / ".gitconfig").read_text()


def test_settings_behind_a_link_are_put_back_with_their_link(harness: EffectsHarness) -> None:
    """People keep their settings elsewhere: neither the link nor its target may change the hooks."""
    target = harness.root.parent / "dotfiles.json"
    (harness.root / SETTINGS).rename(target)
    (harness.root / SETTINGS).symlink_to("../../dotfiles.json")
    for line in (f"echo '{{}}' > {SETTINGS}", f"rm {SETTINGS}", f"rm {SETTINGS}; echo '{{}}' > {SETTINGS}"):
        assert "coord put it back" in bob_does(harness, line), line
        assert (harness.root / SETTINGS).is_symlink()
        assert json.loads((harness.root / SETTINGS).read_text()) == OURS


def test_what_programs_change_there_rightly_stays(harness: EffectsHarness) -> None:
    """Claude stores permissions, git stores branches, and other programs add hooks of their own."""
    (harness.root.parent / "new.json").write_text(
        json.dumps({**OURS, "permissions": {"allow": ["Bash(ls)"]}})
    )
    line = f"cp ../new.json {SETTINGS}; git config branch.bare.remote origin; touch .git/hooks/pre-commit"
    assert "enforced" not in bob_does(harness, line)
    assert "permissions" in (harness.root / SETTINGS).read_text()
    assert git(harness.root, "config", "branch.bare.remote") == "origin"
    assert incidents_of(str(harness.root / ".git/coord")) == []


def test_what_coord_init_changes_stays(harness: EffectsHarness) -> None:
    """A person runs `coord init` or `coord uninstall` while an agent is at work: its journal shows that."""
    call = harness.begin("make")
    (harness.root / SETTINGS).write_text("{}")
    (harness.root / ".git/coord/setup.json").write_text("{}")
    assert "enforced" not in harness.after(call).note
    assert (harness.root / SETTINGS).read_text() == "{}"


def test_coord_toml_takes_proof(harness: EffectsHarness) -> None:
    """A person may edit it at any time; an agent may not, and git may bring another one."""
    (harness.root / "coord.toml").write_text("# people\n")
    harness.commit("coord.toml")
    call = harness.begin("make")
    (harness.root / "coord.toml").write_text("# a person has an idea\n")
    assert "enforced" not in harness.after(call).note
    assert (harness.root / "coord.toml").read_text() == "# a person has an idea\n"
    notes = bob_does(harness, "printf '[hooks]\\nrestore = false\\n' > coord.toml")
    assert "coord put it back" in notes, "the lines are in the program that the call names"
    assert (harness.root / "coord.toml").read_text() == "# a person has an idea\n"
    (harness.root / "coord.toml").write_text("# people\n")
    line = "python3 -c \"open('coord' + '.toml', 'w').write('''[hooks]\nrestore = false\n''')\""
    assert "coord put it back" in harness.run(line)
    assert (harness.root / "coord.toml").read_text() == "# people\n"


def test_the_doctor_shows_an_incident(harness: EffectsHarness) -> None:
    """People hear of it even if no one was there."""
    bob_does(harness, f"rm {SETTINGS}")
    (harness.root / ".git/coord/setup.json").write_text('{"schema": 1, "edits": []}')
    repository = find_repository(str(harness.root))
    assert repository is not None
    findings = examine_hooks(repository, harness.environ)
    assert [finding.message.partition(" at ")[0] for finding in findings if finding.check == "incidents"] == [
        f"session bob changed {harness.root / SETTINGS}"
    ]
