"""Command lines: what they run, whether they only read, and hostile ones."""

import time

import pytest

from coord.integrations.shell_commands.line import CommandLine


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("cat a | grep b", True),
        ("git status && git log -3", True),
        ("git -C x diff", True),
        ("coord doctor", True),
        ("coord lock a", True),
        ("coord guard name:x -- rm a", False),
        ("coord salvage restore 17/1", False),
        ("coord doctor --fix", False),
        ("cat a > b", False),
        ("git commit -m x", False),
        ("cat $(rm x)", False),
        ("python3 -c 'print(1)'", False),
        ("", False),
        ("sudo cat a", True),
        ("uniq a b", False),
        ("git diff --output=a.patch", False),
    ],
)
def test_what_is_known_for_only_reading(line: str, reads: bool) -> None:
    """Where no store answers, what only reads may go on; what cannot be told may not."""
    assert CommandLine(line).only_reads() is reads
    assert CommandLine(line).only_reads(store=False) is (reads and line != "coord lock a")


def test_words_and_folders() -> None:
    """A line comes apart into its commands; where it goes to is known."""
    assert CommandLine("A=1 time -p make -j2 | tee 'a b'").words() == [["make", "-j2"], ["tee", "a b"]]
    line = CommandLine("cd 'a b' && apply_patch; pushd c; make -C d; git -C e add .", "/r")
    assert set(line.folders) >= {"/r", "/r/a b", "/r/a b/c", "/r/a b/c/d", "/r/c/e"}


def test_a_long_or_deep_line_is_no_trouble() -> None:
    """Hostile lines take bounded work."""
    began = time.process_time()
    for hostile in (
        "$(" * 50_000,
        "`" * 50_000,
        "(" * 50_000,
        "'" * 50_001,
        "sh -c " * 20_000,
        "x;" * 50_000,
    ):
        line = CommandLine(hostile + "; git push origin main")
        assert ["git", "push", "origin", "main"] in line.words()
        assert not line.only_reads()
    assert time.process_time() - began < 20
    padded = f"cat <<'EOF'\n{'text ' * 100_000}\nEOF\ngit push origin main"
    assert ["git", "push", "origin", "main"] in CommandLine(padded).words()


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("coord ack 1", True),
        ("coord locks && coord peers", True),
        ("coord locks; cat a", False),
        ("cat a; coord locks", False),
        ("coord guard x -- coord locks", False),
        ("coord commit -m x", False),
        ("coord doctor", False),
        ("coord locks > a", False),
        ("coord locks; make", False),
        ("", False),
    ],
)
def test_what_only_asks_coord(line: str, asks: bool) -> None:
    """Beside an emergency a line passes only if every command of it asks coord."""
    assert CommandLine(line).only_coord() is asks
