"""Progress reaches `coord work` through a file that anybody below it can touch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coord.host.progress import VARIABLE, report_progress

LONG_AGO_NS = 1_000_000_000


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that was touched long ago."""
    path = tmp_path / "progress"
    path.touch()
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def touched(file: Path) -> bool:
    return file.stat().st_mtime_ns != LONG_AGO_NS


def test_a_tool_call_of_an_agent_is_progress(file: Path) -> None:
    """Its hook runs before and after each call, whatever the call is."""
    event = '{"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {}}'
    hook = [sys.executable, "-m", "coord.integrations.hooks.main", "claude"]
    subprocess.run(hook, input=event, text=True, check=True, timeout=60)
    assert touched(file)


def test_without_a_worker_nothing_is_touched(tmp_path: Path) -> None:
    """Outside of `coord work`, and after the end of a task, there is nothing to report to."""
    report_progress({})
    report_progress({VARIABLE: str(tmp_path / "gone")})
    assert list(tmp_path.iterdir()) == []
