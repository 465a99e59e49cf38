"""Files that unknown tools name are found by their fields, to refuse a call before it writes."""

from typing import Any

import pytest

from coord.integrations.hooks.named_files import FILES_MAX, named_files

HELD = "src/app.py"
WRITERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mcp__filesystem__write_file", {"path": HELD, "content": "x"}),
    ("mcp__filesystem__edit_file", {"path": HELD, "edits": [{"oldText": "a", "newText": "b"}]}),
    ("mcp__filesystem__move_file", {"source": "a.py", "destination": HELD}),
    ("mcp__idea__replace_text_in_file", {"pathInProject": HELD, "oldText": "a", "newText": "b"}),
    ("mcp__idea__reformat_file", {"path_in_project": HELD}),
    ("mcp__idea__rename_refactoring", {"pathInProject": HELD, "symbolName": "a", "newName": "b"}),
    ("mcp__cursor__apply_diff", {"target_filepath": HELD, "diff": "-a\n+b\n"}),
    ("mcp__morph__edit_file", {"target_file": HELD, "code_edit": "x"}),
    ("mcp__batch__write_files", {"files": [{"path": "other.py", "content": "x"}, {"path": HELD}]}),
    ("mcp__batch__apply_edits", {"edits": [{"file": HELD, "range": [1, 2]}]}),
    ("mcp__lsp__apply_workspace_edit", {"edit": {"documentChanges": [{"textDocument": {"uri": HELD}}]}}),
    ("mcp__serena__insert_after_symbol", {"relative_path": HELD, "body": "x"}),
    ("mcp__notebook__updateCell", {"notebookPath": HELD}),
    ("mcp_idea_reformat_file", {"pathInProject": HELD}),
    ("apply_patch_to", {"filePaths": [HELD]}),
    ("mcp__x__deleteFile", {"uri": f"file:///repository/{HELD}"}),
    ("mcp__x__saveAs", {"request": {"options": {"output_file": HELD}}}),
)


@pytest.mark.parametrize(("tool", "given"), WRITERS, ids=[tool for tool, _ in WRITERS])
def test_a_writing_tool_names_its_files(tool: str, given: dict[str, Any]) -> None:
    """Whatever the field is called and however deep it is."""
    assert any(path.endswith(HELD) for path in named_files(tool, given))


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("mcp__filesystem__read_file", {"path": HELD}),
        ("mcp__x__get_updates", {"path": HELD}),
        ("mcp__x__search_and_list", {"file": HELD}),
        ("mcp__x__write_file", {"content": HELD, "text": "x/y", "path": "two\nlines"}),
        ("mcp__mail__create_mail", {"to": "somebody", "source": "agent"}),
        ("mcp__web__save_page", {"uri": "https://example.org/x"}),
        ("", {}),
    ],
)
def test_what_is_no_file_or_not_written_is_not_locked(tool: str, given: dict[str, Any]) -> None:
    """A wrong file costs a lock, so contents and tools that read are left alone."""
    assert named_files(tool, given) == ()


def test_a_hostile_input_is_bounded() -> None:
    """Deep, wide and long inputs end."""
    deep: Any = {"path": HELD}
    for _ in range(5000):
        deep = {"path": deep}
    assert named_files("mcp__x__write", {"a": deep}) == ()
    many = {"files": [{"path": f"{number}.py"} for number in range(5000)]}
    assert len(named_files("mcp__x__write", many)) == FILES_MAX
    assert named_files("mcp__x__write", {"path": "x" * 5000, "file": 7, "uri": None}) == ()
    assert named_files("mcp__x__write", {"uri": "file:///a%20b"}) == ("/a b",)
