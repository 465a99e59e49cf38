"""A session sees whether others changed something, and leaves out its own changes."""

from hypothesis import given
from hypothesis import strategies as st

from coord.core.sessions.changes import changes_by_others, next_change
from coord.core.sessions.schema import CrewChanges


@given(st.lists(st.sampled_from("abc"), max_size=12), st.sampled_from("abcd"))
def test_the_number_is_that_of_the_last_change_by_another(made_by: list[str], reader: str) -> None:
    record = CrewChanges()
    for session in made_by:
        record = CrewChanges(**next_change(record, session))  # type: ignore[arg-type]
    by_others = [number for number, session in enumerate(made_by, 1) if session != reader]
    assert changes_by_others(record, reader) == (by_others[-1] if by_others else 0)
    assert record.changes == len(made_by)


def test_without_a_record_nothing_changed() -> None:
    assert changes_by_others(None, "a") == 0
