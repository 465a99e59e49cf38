"""The threat model: each defended row names a test that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/threat-model.md").read_text()
DEFENDED = re.findall(r"^\| (.+) \| (.+) \| `([\w/.]+)::(\w+)` \|$", PAGE, re.MULTILINE)


def test_every_row_names_a_test() -> None:
    rows = PAGE.partition("## Defended")[2].partition("\n\nTokens are found")[0].strip().splitlines()[2:]
    assert len(DEFENDED) == len(rows) > 25


@pytest.mark.parametrize(("attack", "_answer", "path", "name"), DEFENDED)
def test_the_test_of_a_row_exists(attack: str, _answer: str, path: str, name: str) -> None:
    assert f"\ndef {name}(" in (ROOT / "tests" / path).read_text(), attack
