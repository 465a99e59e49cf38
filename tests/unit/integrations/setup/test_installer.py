"""`coord uninstall` restores every byte in repositories of all kinds."""

import shutil
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import SOAK
from tests.support.git_folders import git, made_repository
from tests.support.setup_folders import planned, set_up, snapshot, take_out, write

FORMER = "#!/bin/sh\nexit 0\n"
HOOK_NAMES = ("pre-commit", "commit-msg", "post-checkout", "reference-transaction")
TEXTS = st.sampled_from(["", "\n", "# Ours\n", "no end", "a\r\nb\r\n", "\n\n# Gap\n\n\n"])
SETTINGS = st.sampled_from(
    [
        *("", "{}", "{ }\n", '{"a": [1]}', '{\n    "hooks": {\n        "Stop": []\n    }\n}'),
        *('\ufeff{"hooks": {}}\n', '{"hooks": {"PreToolUse": [{"hooks": [{"command": "lint"}]}]}, "b": 2}'),
    ]
)
FILES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys((".claude/settings.local.json", ".claude/settings.json"), SETTINGS),
        **dict.fromkeys((".codex/hooks.json", ".gemini/settings.json"), SETTINGS),
        **dict.fromkeys(("CLAUDE.md", "AGENTS.md", "GEMINI.md", ".git/info/exclude"), TEXTS),
        ".claude/skills/agent-sync/SKILL.md": st.just("my own\n"),
    },
)
CASES = st.fixed_dictionaries(
    {
        "files": FILES,
        "tracked": st.booleans(),
        "hooks": st.dictionaries(st.sampled_from(HOOK_NAMES), st.sampled_from([0o644, 0o755, 0]), max_size=3),
        "hooks_path": st.sampled_from([None, None, ".husky/_", "absolute"]),
        "worktree": st.booleans(),
        "tools": st.sampled_from(["claude", "codex,gemini", "claude,codex,gemini", ""]),
        "shared": st.booleans(),
        "again": st.sampled_from([None, "claude", "claude,gemini"]),
    }
)


def build(shop: Path, case: dict[str, Any]) -> list[Path]:
    """Create the repository of a case; return its worktrees."""
    made_repository(shop)
    for name, text in case["files"].items():
        write(shop / name, text)
    if case["tracked"]:
        git(shop, "add", "-A")
        git(shop, "commit", "-q", "-m", "settings", "--allow-empty")
    folder = shop / ".git/hooks"
    if case["hooks_path"]:
        folder = shop / ".husky/_"
        named = str(folder) if case["hooks_path"] == "absolute" else case["hooks_path"]
        git(shop, "config", "core.hooksPath", named)
    for name, mode in case["hooks"].items():
        if mode:
            write(folder / name, FORMER, mode)
        else:  # a link, as some teams have
            write(shop / "scripts/hook", FORMER, 0o755)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(shop / "scripts/hook")
    if not case["worktree"]:
        return [shop]
    git(shop, "worktree", "add", "-q", "--detach", str(shop.parent / "second"))
    return [shop, shop.parent / "second"]


@settings(max_examples=500 if SOAK else 10)
@given(case=CASES)
def test_every_byte_is_what_it_was(case: dict[str, Any], home: Path) -> None:
    """After one or two inits and an uninstall no byte, mode, link or folder differs."""
    base = home.parent / "case"
    shutil.rmtree(base, ignore_errors=True)
    places = build(base / "shop", case)
    before = snapshot(base)
    try:
        set_up(places[-1], case["tools"], shared=case["shared"])
        assert snapshot(base) != before
        if case["again"] is not None:
            set_up(places[0], case["again"])
            assert planned(places[-1], case["again"]).changes == []
    finally:
        plan = take_out(places[0])
    assert plan.notes == []
    assert snapshot(base) == before
