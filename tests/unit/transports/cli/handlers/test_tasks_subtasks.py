"""SCN-4 through the command: subtasks claimed in batches, one lost and taken over, merged into their task."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coord.stores.sqlite import store as sqlite
from tests.support.cli import PROGRAM, Coord

T0 = 1_767_506_400_000


class Clock:
    """The clock of the store, in seconds since the beginning."""

    at = 0.0

    def __call__(self) -> int:
        return T0 + round(self.at * 1000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(sqlite, "host_now_ms", made)
    return made


def claimed(said: Any) -> list[tuple[str, int]]:
    return [(claim["task_id"], claim["generation"]) for claim in said.answer["claims"]]


def test_scn_4_subtasks_and_the_merge_of_their_results(coord: Coord, clock: Clock) -> None:
    """SCN-4, CLM-57, CLM-59: A loses ::3 to B, whose results count; then the parent is done by its parts."""
    coord("a task add T-101-search")
    split = coord("a task split T-101-search 5")
    assert split.answer["parts"] == [f"T-101-search::{number}" for number in range(1, 6)]
    assert split.line == "Split T-101-search into T-101-search::1 … T-101-search::5"

    said = coord("a task claim --lease 6 T-101-search::1 T-101-search::2 T-101-search::3")
    assert claimed(said) == [("T-101-search::1", 1), ("T-101-search::2", 1), ("T-101-search::3", 1)]
    clock.at = 1
    said = coord("b task claim --lease 60 T-101-search::3 T-101-search::4 T-101-search::5")
    assert (said.code, claimed(said)) == (0, [("T-101-search::4", 1), ("T-101-search::5", 1)])
    (denied,) = said.answer["denied"]
    assert (denied["task_id"], denied["reason"], denied["holder"]) == (
        "T-101-search::3",
        "DENIED_ACTIVE_CLAIM",
        "s-a",
    )
    clock.at = 5
    for number in (1, 2):
        assert coord(f"a task submit T-101-search::{number} 1 --result", '{"by": "a"}').code == 0
    assert coord("b task show T-101-search").line == "T-101-search is pending 2/5"
    clock.at = 7
    said = coord("b task claim T-101-search::3")
    assert (said.code, said.answer["claim"]["generation"]) == (0, 2)
    clock.at = 10
    for number, generation in ((3, 2), (4, 1), (5, 1)):
        assert coord(f"b task submit T-101-search::{number} {generation} --result", '{"by": "b"}').code == 0
    clock.at = 12
    said = coord("a task submit T-101-search::3 1 --result", '{"by": "a"}')
    assert (said.code, said.answer["reason"], said.answer["work_lost"]) == (1, "STALE_GENERATION", True)

    shown = coord("a task show T-101-search")
    assert shown.line == "T-101-search is done 5/5"
    assert shown.answer["result"]["result_data"] == {"parts": [{"by": by} for by in "aabbb"]}
    assert coord("a task result T-101-search").answer == shown.answer["result"]["result_data"]
    assert coord("a task next").answer["error"]["code"] == "done"


def test_none_of_several_is_a_refusal(coord: Coord) -> None:
    """CLM-57: per-key results; exit 1 only where nothing was granted; one holder at a time is forced out."""
    coord("a task add t")
    coord("a task split t 2")
    assert coord("a task claim t::1 t::2").code == 0
    said = coord("b task claim t::1 t::2")
    assert (said.code, len(said.answer["denied"]), said.answer["error"]["code"]) == (
        1,
        2,
        "denied_active_claim",
    )
    assert coord("b task claim t::1 t::2 --force --reason", "mine").code == 2
    assert coord("b task split t 1").code == 2
    assert coord("b task split nothing 2").code == 4


def test_a_large_result_comes_out_as_it_went_in(repository: Path, tmp_path: Path) -> None:
    """Issue 4, part 10: `coord task submit --result -` and `coord task result ID > file`, byte for byte."""
    data = json.dumps({"text": "ä\u202e\x7f" * 150_000}, ensure_ascii=False, separators=(",", ":")).encode()
    coord = (*PROGRAM, "--session", "s-a", "--agent", "a", "task")
    for words in (("add", "t"), ("claim", "t")):
        subprocess.run([*coord, *words], check=True, capture_output=True)
    subprocess.run([*coord, "submit", "t", "1", "--result", "-"], input=data, check=True, capture_output=True)
    printed = subprocess.run([*coord, "result", "t"], check=True, capture_output=True).stdout
    assert printed == data + b"\n"
    shown = subprocess.run([*coord, "show", "t"], check=True, capture_output=True).stdout
    assert len(shown) < 10_000
    missing = subprocess.run([*coord, "result", "nothing"], check=False, capture_output=True)
    assert (missing.returncode, json.loads(missing.stdout)["error"]["code"]) == (4, "not_found")
