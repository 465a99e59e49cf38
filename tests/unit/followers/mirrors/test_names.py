"""File names from names of others."""

from hypothesis import given
from hypothesis import strategies as st

from coord.followers.mirrors.names import safe_name, short_names

HOSTILE = (
    "..",
    ".",
    "",
    "/",
    "a/b",
    "../../etc/passwd",
    "a\0b",
    "a\nb",
    "\x1b[2J",
    "CON:",
    "%2F",
    "x" * 300,
    "ü",
    "%",
    "%~",
)


def test_a_hostile_name_is_one_plain_file_name() -> None:
    """No name leaves its folder, hides, controls a terminal, or is too long."""
    for name in (*HOSTILE, *(f"{'x' * 299}{end}" for end in "ab")):
        found = safe_name(name)
        assert found not in ("", ".", "..")
        assert not set(found) & set("/\0\n\x1b"), found
        assert found.isascii()
        assert found.isprintable()
        assert not found.startswith(".")
        assert len(found) <= 100


@given(
    st.text(st.sampled_from("a./%~\0\u202eü:2F"), max_size=6),
    st.text(st.sampled_from("a./%~\0\u202eü:2F"), max_size=6),
)
def test_two_names_never_share_a_file(one: str, other: str) -> None:
    """Names become file names injectively, with further characters escaped as well."""
    for escape in ("", ".", ":"):
        assert (safe_name(one, escape=escape) == safe_name(other, escape=escape)) == (one == other)


def test_long_names_differ_by_their_digest() -> None:
    assert safe_name("x" * 300) != safe_name("x" * 301)
    assert safe_name("%" * 300) != safe_name("%" * 301)


@given(st.lists(st.sampled_from(["1", "task-1", "task-task-1", "task-2", "2x", "task-2x"]), unique=True))
def test_short_forms_give_way_where_they_would_collide(names: list[str]) -> None:
    found = short_names(names, lambda name: name.removeprefix("task-"))
    assert len(set(found.values())) == len(names)
    if "task-2" in names:
        assert found["task-2"] == "2"
