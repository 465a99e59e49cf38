"""The text logs that coord keeps beside the store."""

import os
import tempfile
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.followers.mirrors import text_logs
from coord.followers.mirrors.log_lines import ALL, LOGS, Line
from coord.followers.mirrors.state import MirrorState
from coord.followers.mirrors.text_logs import PART_BYTES_MAX, TextLogs


def line(text: str) -> Line:
    return Line(1, ALL, f"{text}\n")


def test_what_no_state_counts_is_overwritten(tmp_path: Path) -> None:
    """AUD-10: a process that is killed before it saves its state has written nothing, also in a new part."""
    state = MirrorState("local", "shop")
    TextLogs(str(tmp_path), state).append([line("one")])
    for lost in (["two"], ["x" * PART_BYTES_MAX, "three"]):
        TextLogs(str(tmp_path), deepcopy(state)).append([line(text) for text in lost])
    TextLogs(str(tmp_path), state).append([line("four"), line("five")])
    TextLogs(str(tmp_path), state).append([line("six")])
    found = TextLogs(str(tmp_path), state).files()
    assert found[ALL] == b"one\nfour\nfive\nsix\n"
    assert list(found) == list(LOGS)


def test_a_log_shows_two_parts(tmp_path: Path) -> None:
    """Lines are never torn; the part before the current one is `.1`."""
    state = MirrorState("local", "shop")
    texts = [f"{number}{'x' * (PART_BYTES_MAX // 2)}" for number in range(5)]
    for text in texts:
        TextLogs(str(tmp_path), state).append([line(text)])
    found = TextLogs(str(tmp_path), state).files()
    shown = (found[f"{ALL}.1"] + found[ALL]).decode().splitlines()
    assert shown == texts[-len(shown) :]
    assert len(shown) == 2


def test_what_comes_in_one_go_has_as_many_parts_as_it_needs(tmp_path: Path) -> None:
    """AUD-10: a mirror that reads a long log at once is as bounded as one that followed it."""
    state = MirrorState("local", "shop")
    TextLogs(str(tmp_path), state).append([line("x" * (PART_BYTES_MAX // 2)) for _ in range(6)])
    TextLogs(str(tmp_path), state).remove_old()
    found = TextLogs(str(tmp_path), state).files()
    assert len(found[ALL]) == len(found[f"{ALL}.1"]) <= PART_BYTES_MAX
    assert len(list(tmp_path.iterdir())) == 2


def naive_parts(lines: list[Line], most: int) -> dict[str, list[bytes]]:
    """Fill parts one line at a time: a line that does not fit begins the next part."""
    found: dict[str, list[bytes]] = {}
    for line in lines:
        parts, data = found.setdefault(line.log, [b""]), line.text.encode()
        if parts[-1] and len(parts[-1]) + len(data) > most:
            parts.append(b"")
        parts[-1] += data
    return found


LINES = st.builds(
    lambda log, length: Line(1, log, "x" * length + "\n"), st.sampled_from(LOGS[:2]), st.integers(0, 60)
)


@given(st.lists(st.tuples(st.lists(LINES, max_size=12), st.booleans()), max_size=12))
def test_logs_are_those_of_a_naive_writer(batches: list[tuple[list[Line], bool]]) -> None:
    """AUD-10: whatever comes in one go or in many, and whoever is killed before its state is saved."""
    most = 100
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(text_logs, "PART_BYTES_MAX", most)
        state, kept = MirrorState("local", "shop"), list[Line]()
        for lines, killed in batches:
            before = deepcopy(state)
            TextLogs(folder, state).append(lines)
            if killed:
                state = before
            else:
                kept += lines
                TextLogs(folder, state).remove_old()
        found, shown = TextLogs(folder, state).files(), set(os.listdir(folder))
    for log, parts in naive_parts(kept, most).items():
        assert found[log] == parts[-1]
        assert found.get(f"{log}.1", b"") == (parts[-2] if len(parts) > 1 else b"")
        assert len(found[log]) <= most
        last = len(parts) - 1
        assert {f"{log}.{part}" for part in range(last - 1)} & shown == set(), "what nobody sees is removed"
