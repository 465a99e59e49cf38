"""Work that is much like other work: what counts as alike, and what does not."""

import pytest

from coord.core.plans.commands import AddTasks, FindSimilarTasks, NewTask, SimilarTask
from coord.core.plans.similarity import COMPARED_MAX
from tests.support.rule_harness import RuleHarness

LOGIN = "Fix the validation of the login form"


def alike(new: str, *, tasks: dict[str, str], hands: tuple[str, ...] = ()) -> list[SimilarTask]:
    """What is like a new task n, among tasks of which some are worked on."""
    harness = RuleHarness()
    described = {**tasks, "n": new}
    harness.run(
        AddTasks("p", tuple(NewTask(task_id=name, description=told) for name, told in described.items()))
    )
    for name in hands:
        assert harness.claim(task=name).reply.success
    found: list[SimilarTask] = harness.run(FindSimilarTasks("p", ("n",), ("n",))).reply
    return found


@pytest.mark.parametrize(
    ("other", "like"),
    [
        ("Fix validation in the login form", True),
        ("fix login validation", True),  # 3 of 4
        ("repair login validation", False),  # 2 of 4: half is not more than half
        ("Fix login", False),  # 2 of 4
        ("Write the changelog", False),
        ("the of and", False),
        ("", False),
    ],
)
def test_more_than_half_of_the_words(other: str, *, like: bool) -> None:
    """DED-1: alike means more than 50 % of the words of the longer description, not exactly 50 %."""
    assert [each.task_id for each in alike(LOGIN, tasks={"A-1": other})] == (["A-1"] if like else [])


@pytest.mark.parametrize(
    ("one", "other"), [("tests", "Write tests that cover payment refunds"), ("", ""), ("the", "the")]
)
def test_little_is_like_nothing(one: str, other: str) -> None:
    """A short description is not like every longer one with its word; without words nothing is alike."""
    assert alike(one, tasks={"A-1": other}) == []


def test_the_warning_names_the_most_alike_first_and_not_too_many() -> None:
    """DED-2: the lead reads which tasks, how alike and in which words; it is a list, not an error."""
    tasks = {f"A-{number}": "Fix validation of login" for number in range(9)} | {"B-1": LOGIN}
    found = alike(LOGIN, tasks=tasks)
    assert [each.task_id for each in found] == ["B-1", "A-0", "A-1", "A-2", "A-3"]
    assert str(found[1]) == "n is 75% like A-0 (fix, login, validation)"


def test_only_so_many_are_compared_and_those_in_hand_first() -> None:
    """DED-1: what is worked on is always looked at; of what waits, the first by id; finished work never."""
    tasks = {f"a{number:03d}": "something else" for number in range(COMPARED_MAX)}
    tasks |= {"y": LOGIN, "z": LOGIN}
    assert [each.task_id for each in alike(LOGIN, tasks=tasks, hands=("z",))] == ["z"]
    harness = RuleHarness()
    harness.run(
        AddTasks("p", (NewTask(task_id="a", description=LOGIN), NewTask(task_id="n", description=LOGIN)))
    )
    harness.claim(task="a")
    harness.submit(task="a")
    assert harness.run(FindSimilarTasks("p", ("n",), ("n",))).reply == []
