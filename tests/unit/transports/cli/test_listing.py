"""Long listings: printed page by page, one JSON document, and an end for everything that can go wrong."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from coord.core.errors import Unavailable
from coord.sdk.client import locks, tasks
from coord.transports.cli import output
from coord.transports.cli.listing import Listing, Page, show_pages
from tests.support.cli import Coord
from tests.unit.transports.cli.test_output import Screen

NAMES = Listing("names", "name", ("name",), lambda items: [{"name": item} for item in items])


def printed(
    pages: Iterator[Page], monkeypatch: pytest.MonkeyPatch, form: str = "json"
) -> tuple[int, str, str]:
    """Return the exit code and what stdout and stderr show."""
    out, err = Screen(terminal=False), Screen(terminal=False)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(output, "_chosen", form)
    shown = show_pages(NAMES, pages)
    code = shown if isinstance(shown, int) else output.show(shown)
    err.flush()
    return code, out.text, err.text


def test_one_page_is_an_ordinary_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(iter([Page(["a", "b"])]), monkeypatch) == (
        0,
        '{"ok":true,"names":["a","b"]}\n',
        "2 names\n",
    )


def test_a_limited_page_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = printed(iter([Page(["a"], "key-a")]), monkeypatch)
    assert (code, json.loads(out)) == (0, {"ok": True, "names": ["a"], "next": "key-a"})
    assert err == "1 name; the next ones: --after key-a\n"


@pytest.mark.parametrize(
    "pages",
    [
        [Page(["a"], "1"), Page(["b", "c"])],
        [Page([], "1"), Page(["a", "b"], "2"), Page([], "3"), Page(["c"], "4"), Page([])],
    ],
)
def test_pages_are_one_document(pages: list[Page], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same fields as in one page, also if some pages are empty because a filter left nothing of them."""
    code, out, err = printed(iter(pages), monkeypatch)
    assert (code, json.loads(out), err) == (0, {"ok": True, "names": ["a", "b", "c"]}, "3 names\n")


def test_nothing_on_any_page(monkeypatch: pytest.MonkeyPatch) -> None:
    _, out, _ = printed(iter([Page([], "1"), Page([])]), monkeypatch)
    assert json.loads(out) == {"ok": True, "names": []}


def test_each_page_is_printed_before_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """CLI memory stays small and the first page comes at once; only one page is read ahead."""
    shown: list[str] = []

    def pages() -> Iterator[Page]:
        for number in range(4):
            assert isinstance(sys.stdout, Screen)
            shown.append(sys.stdout.text)
            yield Page([f"item {number}"], str(number) if number < 3 else "")

    printed(pages(), monkeypatch)
    assert [text.count("item") for text in shown] == [0, 0, 2, 3]


def test_a_table_for_each_page(monkeypatch: pytest.MonkeyPatch) -> None:
    _, out, err = printed(iter([Page(["a"], "1"), Page(["b"])]), monkeypatch, "table")
    assert (out, err) == ("NAME\na\nNAME\nb\n", "2 names\n")


def test_an_error_in_the_middle_ends_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader gets valid JSON that says that the list is not whole, and the exit code says so, too."""

    def pages() -> Iterator[Page]:
        yield Page(["a"], "1")
        yield Page(["b"], "2")
        raise Unavailable("the store is away", hint="start it")

    code, out, err = printed(pages(), monkeypatch)
    found = json.loads(out)
    assert code == 69
    assert (found["ok"], found["names"], found["next"]) == (False, ["a", "b"], "2")
    assert found["error"]["message"] == "the store is away"
    assert err == "coord: the store is away (start it)\n"


def test_an_error_of_the_first_page_is_an_ordinary_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(_: int) -> Page:
        raise Unavailable("the store is away")

    with pytest.raises(Unavailable):
        printed(map(page, range(2)), monkeypatch)


def test_a_reader_that_left_ends_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """`coord locks | head` reads no further page, and is no error."""
    read = []

    def pages() -> Iterator[Page]:
        for number in range(100):
            read.append(number)
            yield Page(["x"], str(number))

    monkeypatch.setattr(output, "_write", lambda _text, exit_code: exit_code)
    monkeypatch.setattr(output, "_unread", True)
    assert printed(pages(), monkeypatch)[0] == 0
    assert read == [0, 1]


def listed(coord: Coord, line: str, name: str, field: str) -> tuple[list[str], dict[str, Any]]:
    answer = coord(line).answer
    return [each[field] for each in answer[name]], answer


def test_locks_and_tasks_in_pages(coord: Coord, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole list, a limited one, and the rest of it, whatever the length of a page."""
    coord("ann lock name:a name:b name:c name:d name:e")
    for name in "vwxyz":
        coord(f"ann task add {name}")
    for line, name, field, every in (
        ("ann locks", "locks", "resource", [f"name:{each}" for each in "abcde"]),
        ("ann task list", "tasks", "task_id", list("vwxyz")),
    ):
        for size in (2, 5, 1000):
            monkeypatch.setattr(locks, "PAGE", size)
            monkeypatch.setattr(tasks, "PAGE", size)
            found, answer = listed(coord, line, name, field)
            assert (found, answer["ok"], set(answer)) == (every, True, {"ok", name})
            found, answer = listed(coord, f"{line} --limit 3", name, field)
            assert found == every[:3]
            found, answer = listed(coord, f"{line} --limit 3 --after {answer['next']}", name, field)
            assert (found, "next" in answer) == (every[3:], False)
    assert coord("ann task list --limit 0").code == 2
    assert coord("ann locks --after elsewhere").code == 2


def test_a_filter_and_a_limit(coord: Coord, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts the tasks that are shown, not those that the filter passes over."""
    monkeypatch.setattr(tasks, "PAGE", 2)
    for name in "uvwxyz":
        coord(f"ann task add {name} --type {'odd' if name in 'vxz' else 'even'}")
    line = "ann task list --type odd --limit"
    found, answer = listed(coord, f"{line} 2", "tasks", "task_id")
    assert found == ["v", "x"]
    assert listed(coord, f"{line} 2 --after {answer['next']}", "tasks", "task_id")[0] == ["z"]
    assert listed(coord, f"{line} 1", "tasks", "task_id")[0] == ["v"]


def test_a_check_prints_a_hundred_holders(coord: Coord) -> None:
    for start in (0, 60):
        coord("ann lock " + " ".join(f"file:d/{number}.py" for number in range(start, start + 60)))
    answer = coord("bob check file:d/*.py").answer
    assert (answer["free"], len(answer["holders"]), answer["more"]) == (False, 100, True)
    assert coord("bob check file:d/7.py").answer["more"] is False
