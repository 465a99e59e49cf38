"""Which events a reaction means; what a field can do to a text or to a command: nothing."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.followers.reactions.events import (
    Delivery,
    Position,
    check_arguments,
    fields_of,
    fill_arguments,
    fill_text,
    read_pattern,
)

HOSTILE = [
    "$(reboot)",
    "; rm -rf /",
    "`id`",
    "a b",
    '"',
    "\n",
    "{task}",
    "%s",
    "&& x",
    "| y",
    "> /etc/passwd",
]


@pytest.mark.parametrize(
    ("pattern", "where", "event", "details", "expected"),
    [
        ("task.completed", {}, "task.completed", {}, True),
        ("task.completed", {}, "task.completed2", {}, False),
        ("task.*", {}, "task.completed", {}, True),
        ("task.*", {}, "tasks.completed", {}, False),
        ("*", {}, "lock.acquired", {}, True),
        ("*", {}, "reaction.failed", {}, False),
        ("reaction.*", {}, "reaction.failed", {}, True),
        (["lock.acquired", "task.*"], {}, "task.failed", {}, True),
        ("lock:expired", {}, "lock.released", {"end_reason": "expired"}, True),
        ("lock:expired", {}, "lock.released", {"end_reason": "released"}, False),
        ("agent:crashed", {}, "session.ended", {"end_reason": "dead"}, True),
        ("agent:crashed", {}, "session.ended", {"end_reason": "deregistered"}, False),
        ("alert:new", {}, "alert.raised", {}, True),
        ("agent:context_compacted", {}, "session.compacted", {}, True),
        ("commit", {"branch": "release/*"}, "git.committed", {"branch": "release/2"}, True),
        ("commit", {"branch": "release/*"}, "git.committed", {"branch": "main"}, False),
        ("task_completed", {}, "task.completed", {}, True),
        ("RESULT_SUBMITTED", {}, "task.completed", {}, True),
        ("task.completed", {"agent": ["ada", "bob"]}, "task.completed", {"agent": "bob"}, True),
        ("task.completed", {"agent": ["ada", "bob"]}, "task.completed", {"agent": "eve"}, False),
        ("task.completed", {"generation": 1}, "task.completed", {"generation": True}, False),
        ("git.committed", {"files": "*.sql"}, "git.committed", {"files": ["a.py", "b.sql"]}, True),
        ("message.sent", {"origin.user": "kim"}, "message.sent", {"origin": {"user": "kim"}}, True),
        ("message.sent", {"origin.user": "kim"}, "message.sent", {"origin": "kim"}, False),
    ],
)
def test_a_pattern_means_names_and_fields(
    pattern: str | list[str], where: dict, event: str, details: dict, *, expected: bool
) -> None:
    """EVT-2, EVT-10: an event by name, by the name of the founding documents, and by its fields."""
    assert read_pattern(pattern, where).matches(event, details) is expected


@pytest.mark.parametrize(
    ("pattern", "where", "problem"),
    [
        ("task.complete", {}, "no event is called 'task.complete'"),
        ("tusk.*", {}, "no event is called"),
        ([], {}, "event is empty"),
        ("agent:restart_limit", {}, "this version of coord has no event agent:restart_limit"),
        (["lock:expired", "task.*"], {}, "stands alone"),
        ("task.*", {"agent": {"a": 1}}, "where.agent"),
    ],
)
def test_a_pattern_that_means_nothing_is_refused(pattern: str, where: dict, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        read_pattern(pattern, where)


@given(st.one_of(st.text(max_size=50), st.sampled_from(HOSTILE)))
@example("-rf")
def test_a_value_is_one_argument_or_refused(value: str) -> None:
    """Whatever a field contains, the command has as many arguments, and none is an option or a program."""
    fields = {"task": value}
    try:
        filled = fill_arguments(("deploy", "--task", "{task}", "end"), fields)
    except Invalid:
        assert not value or value.startswith("-") or "\0" in value
        return
    assert value
    assert not value.startswith("-")
    assert filled == ["deploy", "--task", value, "end"]


@pytest.mark.parametrize(
    "bad", [["x{task}"], ["a", "--task={task}"], ["{task}", "x"], ["a", "{x} {y}"], [""], ["a\0"]]
)
def test_a_placeholder_is_a_whole_argument(bad: list[str]) -> None:
    with pytest.raises(Invalid):
        check_arguments(bad)
    check_arguments(["a", "{task}", "b{", "}", "{ task }", "{Task}"])


@given(st.text(max_size=700))
def test_a_value_in_a_text_controls_nothing(value: str) -> None:
    text = fill_text("[{task}] {missing}|{task.more}", {"task": value})
    assert text.startswith("[")
    assert text.endswith("] |")
    assert "\n" not in text
    assert not any(ord(each) < 32 or each in "\u2028\u2029\u202e\x7f" for each in text)
    assert len(text) < 8000


def test_a_value_is_not_a_template() -> None:
    assert fill_text("{a}", {"a": "{b}", "b": "secret"}) == "{b}"
    assert fill_text("{a} {n} {l}", {"a": "x", "n": 3, "l": ["y"]}) == 'x 3 ["y"]'


def test_a_delivery_has_an_id_that_no_field_can_replace() -> None:
    delivery = Delivery(
        Position(41, 2), "task.completed", 7, {"id": "forged", "event": "forged", "task": "A"}
    )
    fields = fields_of(delivery, "chat")
    assert (fields["id"], fields["event"], fields["task"]) == ("41.2.chat", "task.completed", "A")
