"""Guides that git ignores because of coord, and into which somebody has written."""

from pathlib import Path

import pytest

from coord.host.repository import Repository
from coord.integrations.git.gate.hidden_guides import hidden_guides, hidden_text

EXCLUDE = "/AGENTS.md\n# coord begin (x)\n/CLAUDE.md\n/GEMINI.md\n# coord end\n"
BLOCK = "<!-- coord begin (x) -->\ntext\n<!-- coord end -->\n"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (BLOCK, []),
        (f"\n{BLOCK}\n", []),
        ("", []),
        (None, []),
        (f"# Rules\n\n{BLOCK}", ["CLAUDE.md"]),
        (f"{BLOCK}\nBe kind.\n", ["CLAUDE.md"]),
        (f"{BLOCK}Be kind.\n{BLOCK}", ["CLAUDE.md"]),
        ("Be kind.\n", ["CLAUDE.md"]),
    ],
)
def test_a_guide_with_more_than_our_block(tmp_path: Path, text: str | None, hidden: list[str]) -> None:
    """Only what coord itself hides counts: a person may ignore AGENTS.md on purpose."""
    (tmp_path / ".git/info").mkdir(parents=True)
    (tmp_path / ".git/info/exclude").write_text(EXCLUDE)
    (tmp_path / "AGENTS.md").write_text("mine\n")
    if text is not None:
        (tmp_path / "CLAUDE.md").write_text(text)
    assert hidden_guides(Repository(str(tmp_path), str(tmp_path / ".git"))) == hidden


def test_the_text_names_the_way_out() -> None:
    """Both steps, and each file."""
    assert hidden_text(["CLAUDE.md", "GEMINI.md"]).endswith(
        "run coord doctor --fix, then git add CLAUDE.md GEMINI.md"
    )
