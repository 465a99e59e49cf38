"""The text logs that coord keeps beside the store."""

from copy import deepcopy
from pathlib import Path

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
