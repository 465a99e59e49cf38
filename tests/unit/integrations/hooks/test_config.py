"""The settings of hooks in `coord.toml`."""

import pytest

from coord.core.errors import Invalid
from coord.host.config import parse_configuration
from coord.host.consent import Configuration
from coord.integrations.hooks.config import Settings, read_settings
from coord.integrations.hooks.named_locks import ACTIONS, Action, locks_for
from coord.integrations.shell_commands.line import CommandLine


def locks(line: str, actions: tuple[Action, ...]) -> tuple[str, ...]:
    return locks_for(CommandLine(line).words(), actions, branch="", main_tree=True)


def settings_in(text: str) -> Settings:
    return read_settings(Configuration("coord.toml", parse_configuration("coord.toml", text.encode())))


def test_a_repository_adds_actions_and_says_what_happens_without_a_store() -> None:
    """INT-12: the table is open; failing closed or open is a setting."""
    assert read_settings(Configuration("coord.toml")) == Settings()
    settings = settings_in(
        '[hooks]\nwrites_without_store = "open"\nreads_without_store = "closed"\n'
        '[[hooks.actions]]\ncommand = "npm publish"\nlock = "release"\n'
    )
    assert (settings.closed_for_writes, settings.closed_for_reads) == (False, True)
    assert settings.actions[-1] == Action("npm publish", "name:release")
    assert locks("npm publish --tag next", settings.actions) == ("name:release",)


def test_a_repository_drops_the_preset_locks() -> None:
    """INT-12: the example of the founding documents goes, the commands of git stay."""
    actions = settings_in("[presets]\nlocks = false\n").actions
    assert locks("cargo build", ACTIONS) == ("name:cargo-build",)
    assert locks("cargo build; pkill engram", actions) == ()
    assert locks("git push origin main", actions) == ("name:main-push",)


def test_a_repository_says_whether_and_how_often_agents_are_briefed() -> None:
    """CTX-16: two seconds apart unless it says otherwise."""
    assert (Settings().inject_brief, Settings().brief_every_ms) == (True, 2_000)
    settings = settings_in("[brief]\ninject = false\nevery_s = 1.5\n")
    assert (settings.inject_brief, settings.brief_every_ms) == (False, 1_500)


def test_a_repository_says_whether_the_ledger_has_reads() -> None:
    """AUD-5."""
    assert Settings().log_reads
    assert settings_in("[ledger]\nentries = 5\n").log_reads
    assert not settings_in("[ledger]\nreads = false\n").log_reads


@pytest.mark.parametrize(
    "text",
    [
        "hooks = 1",
        "[hooks]\nwrites_without_store = true",
        "[hooks]\nunknown = 1",
        "[hooks]\nactions = 1",
        "[[hooks.actions]]\ncommand = 'x'",
        "[[hooks.actions]]\ncommand = ' '\nlock = 'x'",
        "[[hooks.actions]]\ncommand = 'x'\nlock = 'y'\nother = 1",
        "[[hooks.actions]]\ncommand = 'x'\nlock = 'y'\nmain_tree = 'no'",
        "[hooks]\nrestore = 'x'",
        "brief = 1",
        "[brief]\ninject = 1",
        "[brief]\nevery_s = 0",
        "[brief]\nevery_s = true",
        "[brief]\nother = 1",
        "ledger = 1",
        "[ledger]\nreads = 'no'",
        "[ledger]\nentries = 0",
        "[ledger]\nread = false",
    ],
)
def test_wrong_settings_are_refused_with_a_hint(text: str) -> None:
    """A setting that is not understood is never passed over."""
    with pytest.raises(Invalid) as caught:
        settings_in(text)
    assert caught.value.hint
