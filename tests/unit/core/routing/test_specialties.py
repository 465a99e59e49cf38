"""Which type and size a task has, by its words, its files or its fields."""

import pytest

from coord.core.errors import Invalid
from coord.core.routing.router import (
    Agent,
    declared,
    rank_agents,
    route,
)
from coord.core.routing.specialties import TASK_TYPES, Size, classify, matrix_with, stem
from coord.core.tasks.schema import Spec
from coord.host.presets import AGENTS_BY_TYPE

NOW = 1_700_000_000_000


MATRIX = matrix_with(AGENTS_BY_TYPE)


NEW_CODE = Spec(description="Create a signup form", type="code_gen")


def team(**changes: dict) -> list[Agent]:
    """The three agents of the first document, idle unless changed."""
    return [
        Agent(**{"name": name, "average_s": 45} | changes.get(name, {}))
        for name in ("rem", "otto", "beatrice")
    ]


def test_the_core_itself_names_no_agent() -> None:
    """The rows that name agents are data of the host: the core ships types and words."""
    assert TASK_TYPES.keys() == AGENTS_BY_TYPE.keys()
    assert not any(row.agents or row.because for row in TASK_TYPES.values())
    declares = Agent(name="ada", capabilities={"code_gen": 1})
    routing = route(NEW_CODE, [*team(), declares], NOW, TASK_TYPES)
    assert (routing.agent, routing.rationale) == ("ada", "")


@pytest.mark.parametrize(
    ("description", "kind", "word"),
    [
        ("Build the login page", "code_gen", "Build"),
        ("create an invoice module", "code_gen", "create"),
        ("Add email validation to signup form", "code_gen", "Add"),
        ("Refactor the session store", "review", "Refactor"),
        ("Optimizing slow queries", "review", "Optimizing"),
        ("Call the weather API", "api", "API"),
        ("Document the API endpoint", "doc", "Document"),
        ("Create tests for login", "testing", "tests"),
        ("Write integration tests", "testing", "tests"),
        ("Fix a typo in README.md", "doc", "README"),
        ("Create a bash script for backups", "script", "bash"),
        ("Fix tests/docs/api.py", "review", "Fix"),
    ],
)
def test_words_tell_the_type_and_the_word_that_decided_is_named(
    description: str, kind: str, word: str
) -> None:
    """RTE-12: “create” is new code unless a stronger word says what is created; file names say nothing."""
    found = classify(Spec(description=description))
    assert found.type == kind
    assert f"“{word}” decided" in found.because


def test_a_type_that_is_given_wins() -> None:
    """RTE-12: whoever adds a task knows best; other names of a type are understood, unknown ones are kept."""
    assert classify(Spec(description="Create tests", type="doc")).type == "doc"
    assert "given" in classify(Spec(description="Create tests", type="doc")).because
    assert classify(Spec(type="refactor")).type == "review"
    assert classify(Spec(type="juggling")).type == "juggling"


def test_a_task_without_a_type_is_for_anybody() -> None:
    """RTE-15: nothing is dropped because no word of it is known."""
    assert classify(Spec(description="Hm.")).type == ""
    choices = rank_agents(Spec(description="Hm."), team(otto={"queue_depth": 1}), NOW, MATRIX)
    assert [(choice.agent, choice.position) for choice in choices][:2] == [
        ("beatrice", "any"),
        ("rem", "any"),
    ]


def test_stems_are_alike_for_one_verb_and_no_word_vanishes() -> None:
    """Endings do not hide a word, and short words stay whole."""
    assert {stem(word) for word in ("create", "creates", "created", "Creating")} == {"creat"}
    assert stem("simplifies") == stem("simplified") == stem("simplify")
    assert [stem(word) for word in ("ci", "add", "red", "sing")] == ["ci", "add", "red", "sing"]


@pytest.mark.parametrize(
    ("task", "size"),
    [
        (Spec(description="Fix a minor glitch"), Size.SMALL),
        (Spec(description="Fix a glitch"), Size.NORMAL),
        (Spec(description="Migrating the entire store"), Size.LARGE),
        (Spec(description="Rename it", files=tuple("abcdef")), Size.LARGE),
        (Spec(description="Rename it", files=tuple("abcde")), Size.NORMAL),
        (Spec(description="Redesign all", requirements={"complexity": "small"}), Size.SMALL),
        (Spec(description="Rename it", requirements={"complexity": ["odd"]}), Size.NORMAL),
    ],
)
def test_size_is_told_by_words_or_files_or_given(task: Spec, size: Size) -> None:
    """RTE-12: complexity, with what decided."""
    found = classify(task)
    assert found.size is size
    assert size.value in found.because


@pytest.mark.parametrize(
    "table",
    [
        {"capabilities": {"doc": -1}},
        {"capabilities": {"doc": 11}},
        {"capacity": -1},
        {"capabilities": [{}]},
        {"x": 1},
    ],
)
def test_configuration_that_makes_no_sense_is_refused(table: dict) -> None:
    """RTE-17: the message names the agent, the hint where to correct it."""
    with pytest.raises(Invalid, match=r"\[agents\.mallory\]") as caught:
        declared(table, "coord.toml: [agents.mallory]")
    assert caught.value.hint
