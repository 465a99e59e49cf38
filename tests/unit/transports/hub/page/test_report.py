"""A run in one file: everything that the page needs, nothing that runs by itself, and no request."""

import base64
import gzip
import json
import re
from hashlib import sha256
from typing import Any

import pytest

from coord.core.errors import LimitReached
from coord.core.page.state import PageState, apply_entry
from coord.sdk.page.past import PastStates
from coord.sdk.page.snapshot import take_snapshot
from coord.stores.contract import Store
from coord.transports.hub.page import report
from coord.transports.hub.page.report import ADDED, FOLDER, MARK, STATIC, make_report, read_run
from coord.transports.hub.page.run_facts import RunFacts
from tests.simulation.oracles.page import comparable
from tests.support.lock_harness import T0, LockHarness
from tests.support.stores.leaping import leap

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def harness() -> LockHarness:
    found = LockHarness()
    for number in range(10):
        found.pass_time(60_000)
        found.lock(f"s{number}", f"file:{number}.py", reason=HOSTILE)
    return found


def report_of(log: Store, from_ms: int = 0) -> bytes:
    return make_report(read_run(log, PastStates(log), from_ms), RunFacts(), "shop")


def packed(made: bytes) -> dict[str, Any]:
    text = re.search(r'id="coord-report">([^<]*)</script>', made.decode())
    assert text is not None
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text[1])))
    return found


def test_a_report_holds_the_state_before_and_every_entry_since(harness: LockHarness) -> None:
    found = packed(report_of(harness.store, T0 + 5 * 60_000))
    state = PageState(**found["base"])
    assert [each["offset"] for each in found["entries"]] == list(range(state.offset + 1, 11))
    assert state.offset == 5
    for entry in found["entries"]:
        apply_entry(
            state, entry["offset"], entry["at"], [json.dumps(each).encode() for each in entry["events"]]
        )
    assert comparable(state) == comparable(take_snapshot(harness.store))


def test_a_report_of_a_trimmed_log_begins_where_the_log_begins(harness: LockHarness) -> None:
    other = LockHarness()
    for number in range(6):
        other.lock(f"s{number}", f"file:{number}.py")
    other.store.trim(4)
    found = packed(report_of(other.store))
    assert (found["base"]["offset"], [each["offset"] for each in found["entries"]]) == (3, [4, 5, 6])
    assert (found["whole"], found["base"]["tables"]["locks"]) == (False, {})


def test_a_report_of_a_trimmed_log_begins_with_a_state_that_was_kept(harness: LockHarness) -> None:
    other = LockHarness()
    past = PastStates(other.store)
    for number in range(6):
        other.lock(f"s{number}", f"file:{number}.py")
        if number == 3:
            past.kept.keep(take_snapshot(other.store))
    other.store.trim(4)
    found = packed(make_report(read_run(other.store, past, 0), RunFacts(), "shop"))
    assert (found["base"]["offset"], [each["offset"] for each in found["entries"]]) == (4, [5, 6])
    assert (found["whole"], len(found["base"]["tables"]["locks"])) == (True, 4)


def test_text_of_the_log_is_no_part_of_the_file(harness: LockHarness) -> None:
    """It is packed, so that no text of an agent can end the script it stands in."""
    made = report_of(harness.store)
    assert b"alert(1)" not in made
    assert MARK in made
    assert packed(made)["entries"][0]["events"][1]["reason"] == HOSTILE


def test_the_policy_names_every_script_by_its_hash_and_allows_no_request(harness: LockHarness) -> None:
    text = report_of(harness.store).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "unsafe" not in policy[1]
    assert "connect-src 'none'" in policy[1]
    inline = re.findall(
        r'<(?:style|script type="(?:importmap|module)")>(.*?)</(?:style|script)>', text, re.DOTALL
    )
    assert len(inline) == 3
    for each in inline:
        assert f"'sha256-{base64.b64encode(sha256(each.encode()).digest()).decode()}'" in policy[1]


def test_every_module_is_in_the_file_and_imports_only_those(harness: LockHarness) -> None:
    """A browser refuses to load a file beside it."""
    text = report_of(harness.store).decode()
    found = re.search(r'<script type="importmap">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    modules = json.loads(found[1])["imports"]
    files = [path for folder in (STATIC, ADDED) for path in folder.rglob("*.js")]
    assert {*modules} == {f"coord/{path.relative_to(FOLDER).as_posix()}" for path in files}
    for name, data in modules.items():
        source = base64.b64decode(data.partition(",")[2]).decode()
        imported = re.findall(r'(?:\bfrom|\bimport)\s*"([^"]+)"', source)
        assert {*imported} <= {*modules}, name
    assert (
        'from "coord/static/core/state.js"'
        in base64.b64decode(modules["coord/static/core/store.js"].partition(",")[2]).decode()
    )


def test_a_run_that_is_too_long_is_refused(harness: LockHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "ENTRIES_MAX", 3)
    with pytest.raises(LimitReached, match="more than 3 entries") as refused:
        report_of(harness.store)
    assert "--since" in refused.value.hint


def test_a_report_counts_entries_where_offsets_leap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "ENTRIES_MAX", 6)
    other = LockHarness()
    other.lock("s1", "file:1.py")
    other.lock("s2", "file:2.py")
    first = leap(other.store)
    other.lock("s3", "file:3.py")
    found = packed(report_of(other.store))
    assert [each["offset"] for each in found["entries"]] == [1, 2, first]
    assert found["whole"]
