"""The grammar of bash: loaded on demand, and safe if it is missing."""

import subprocess
import sys

import pytest

from coord.integrations.setup import checks
from coord.integrations.shell_commands import grammar, line
from coord.integrations.shell_commands.line import CommandLine
from coord.sdk.reports.doctor import BAD


def test_without_the_grammar_every_line_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken for reading, named locks are still asked for, and the doctor says what is wrong."""
    assert checks._check_parser() == []
    monkeypatch.setattr(grammar, "load_error", lambda: "ImportError: no tree_sitter")
    monkeypatch.setattr(line, "load_error", lambda: "ImportError: no tree_sitter")
    read = CommandLine("cat a; git push origin main")
    assert read.effects.unknown
    assert not read.only_reads()
    assert ["git", "push", "origin", "main"] in read.words()
    (finding,) = checks._check_parser()
    assert finding.state == BAD
    assert "no tree_sitter" in finding.message


def test_an_edit_does_not_load_the_grammar() -> None:
    """Only a call of a shell tool pays for it."""
    code = (
        "import sys, coord.integrations.hooks.handler, coord.integrations.hooks.tools.claude\n"
        "print([name for name in sys.modules if 'tree_sitter' in name or 'shell_commands' in name])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
