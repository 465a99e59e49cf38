"""The doctor asks the real Codex about the hooks that `coord init` wrote."""

import os
import shutil
from pathlib import Path

import pytest

from coord.host.repository import find_repository
from coord.integrations.setup.checks import examine_hooks
from coord.sdk.client.open import initialise
from tests.support.agents.codex_trust import trust_hooks
from tests.support.agents.programs import cache_folder, command_of
from tests.support.agents.sessions import Place, make_place
from tests.support.setup_folders import set_up


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A repository whose store is pinned."""
    for name in list(os.environ):
        if name.startswith(("COORD_", "CLAUDE", "CODEX", "GEMINI", "GIT_")):
            monkeypatch.delenv(name)
    made = make_place(tmp_path)
    made.home.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder().parent.parent))
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.chdir(made.repository)
    initialise(str(made.repository), os.environ)
    return made


def test_codex_is_asked_what_it_trusts(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codex reports an untrusted folder, untrusted hooks or trusted hooks, and the doctor shows it."""
    program = command_of("codex")
    if program is None:
        pytest.skip("the coding agents are not installed (tools/setup agents)")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/codex").symlink_to(program[0])
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert shutil.which("codex") == f"{tmp_path}/bin/codex"
    set_up(place.repository, "codex")
    home = place.home / ".codex"
    home.mkdir()

    def found() -> tuple[str, str]:
        repository = find_repository(str(place.repository))
        assert repository is not None
        (finding,) = [each for each in examine_hooks(repository, os.environ) if each.check == "codex"]
        return finding.state, finding.message

    assert found() == ("bad", "Codex does not read the hooks here")
    (home / "config.toml").write_text(f'[projects."{place.repository}"]\ntrust_level = "trusted"\n')
    assert found() == ("bad", "Codex does not trust 9 of 9 coord hooks, and skips them")
    trust_hooks(program, place.home, place.repository)
    assert found() == ("ok", "Codex: the hook answers, and Codex trusts all 9")
