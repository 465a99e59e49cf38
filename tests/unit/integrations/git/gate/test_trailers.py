"""Trailers: written and read again, and what is no trailer of ours."""

from hypothesis import given
from hypothesis import strategies as st

from coord.integrations.git.gate.trailers import (
    FenceTrailer,
    TaskTrailer,
    Trailers,
    read_message,
    read_trailers,
    without_trailers,
)

ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.@:+-]{0,20}", fullmatch=True)
numbers = st.integers(1, 10**15 - 1)
names = st.lists(st.sampled_from(["a b", "é.py", "[x]", "-y", "src"]), min_size=1, max_size=3)
fences = st.builds(FenceTrailer, numbers, names.map(lambda parts: "file:" + "/".join(parts)))
trailers = st.builds(
    Trailers,
    ids,
    st.lists(st.builds(TaskTrailer, ids, ids, numbers), max_size=3).map(tuple),
    st.lists(fences, max_size=3).map(tuple),
)


@given(trailers, st.sampled_from(["", "\n", "\nReviewed-by: Pat\n"]))
def test_round_trip(made: Trailers, between: str) -> None:
    """What a session signs is read again, and taken out without a trace."""
    lines = "".join(f"{line}\n" for line in made.lines())
    assert read_trailers(made.lines()) == made
    assert read_message(f"subject\n{between}{lines}") == made
    assert without_trailers(f"subject\n{between}{lines}") == f"subject\n{between}"


def test_what_makes_no_sense_is_left_away() -> None:
    """A line that cannot be understood is nobody's proof, and stops nothing."""
    lines = ["Coord-Session: a/b", "Coord-Task: x", "Coord-Task: a/b generation -1", "Coord-Fence: 0 file:a"]
    lines += [
        "Coord-Fence: 1 name:a",
        "Coord-Fence: 1 file:../a",
        "Coord-Fence: 1 file:{a,b}",
        "Signed-off-by: x",
    ]
    assert read_trailers(lines) == Trailers()


def test_what_is_held_now_takes_the_place_of_what_was() -> None:
    """A claim or lock taken anew counts with its new number; one that is not held keeps its old one."""
    former = Trailers(
        "ann", (TaskTrailer("p", "t", 1), TaskTrailer("p", "u", 1)), (FenceTrailer(5, "file:a"),)
    )
    now = Trailers("bob", (TaskTrailer("p", "t", 2),), (FenceTrailer(9, "file:b"),))
    assert now.replacing(former) == Trailers(
        "bob",
        (TaskTrailer("p", "t", 2), TaskTrailer("p", "u", 1)),
        (FenceTrailer(5, "file:a"), FenceTrailer(9, "file:b")),
    )
