"""Command lines: what is understood, and that everything else is an error with a next step."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.transports.cli.commands.flags import GLOBAL_FLAGS
from coord.transports.cli.commands.registry import all_commands, find
from coord.transports.cli.parser import parse


def refused(*argv: str) -> Invalid:
    with pytest.raises(Invalid) as caught:
        parse(argv)
    return caught.value


def test_words_and_flags_come_in_any_order() -> None:
    """LCK-47: `lock RES... [--ttl 1h] [--reason ...]`, with the flags where one likes, `=` or not."""
    first = parse(["lock", "a.py", "--ttl", "1h", "b.py", "--reason=two words"])
    other = parse(["lock", "--reason", "two words", "--ttl=1h", "a.py", "b.py"])
    assert first.values == other.values
    assert first.values["resources"] == ["a.py", "b.py"]
    assert first.values["ttl_s"] == 3600
    assert first.values["reason"] == "two words"
    assert first.values["wait_s"] is None


def test_the_flags_of_every_command_stand_anywhere() -> None:
    """Issue 3, part 4: the caller can be named before or after the command."""
    for argv in (["--session", "s1", "--json", "locks"], ["locks", "--json", "--session", "s1"]):
        options = parse(argv).options
        assert options["session"] == "s1"
        assert options["json"] is True
        assert options["agent"] == ""


def test_a_command_may_redefine_a_flag_of_every_command() -> None:
    """Before `token create`, --role, --project and --session describe the caller; after it, the token."""
    words = ["--session", "s1", "token", "create", "--session", "s2", "--role", "view", "--tenant", "acme"]
    request = parse(words)
    assert (request.options["session"], request.values["session"]) == ("s1", "s2")
    assert (request.options["role"], request.values["role"]) == ("", "view")
    assert (request.options["tenant"], request.values["project"]) == ("acme", "")
    assert parse(["--role", "lead", "token", "create", "--role", "view"]).options["role"] == "lead"
    assert refused("token", "create", "--role", "lead").message == "--role: unknown value 'lead'"


def test_an_alias_is_the_same_command() -> None:
    """SES-16: `deregister` is `dereg`."""
    assert parse(["deregister"]).command == parse(["dereg"]).command


def test_what_follows_two_dashes_is_no_flag() -> None:
    """`--` ends the flags, so that a file may be called as it likes."""
    assert parse(["lock", "--", "--ttl"]).values["resources"] == ["--ttl"]


def test_guard_keeps_its_command_as_it_is() -> None:
    """The words after `--` belong to the command: flags, our flags, bytes that are no text, another `--`."""
    request = parse(["guard", "main-push", "--no-wait", "--", "git", "push", "--json", "--", "\udcff"])
    assert request.values["command"] == ["git", "push", "--json", "--", "\udcff"]
    assert request.values["resources"] == ["main-push"]
    assert request.options["json"] is False
    assert "COMMAND is missing" in refused("guard", "x").message
    assert "COMMAND is missing" in refused("guard", "x", "--").message


@pytest.mark.parametrize(
    ("argv", "message", "hint"),
    [
        (["lokc", "x"], "unknown command 'lokc'", "did you mean lock?"),
        (["qqqq"], "unknown command 'qqqq'", "see coord --help"),
        (["lock", "x", "--tll", "5"], "unknown flag '--tll'", "did you mean --ttl?"),
        (["lock", "x", "--all"], "unknown flag '--all'", "see coord lock --help"),
        (["lock", "x", "-t"], "unknown flag '-t'", "coord lock --help"),
        (["lock", "x", "--tt", "5m"], "unknown flag '--tt'", "did you mean --ttl?"),
        (["--ttl", "5m", "lock"], "--ttl belongs to a command", "after the command"),
        (["lock", "x", "--ttl"], "--ttl needs a value", "--ttl DURATION"),
        (["lock", "x", "--reason", "--no-wait"], "--reason needs a value", "--reason=TEXT"),
        (["peers", "--live=yes"], "--live takes no value", "omit the value"),
        (["lock", "x", "--ttl", "1", "--ttl", "2"], "--ttl is given twice", "once"),
        (["lock", "x", "--wait", "5", "--no-wait"], "--no-wait and --wait cannot be combined", "one of them"),
        (["lock", "x", "--mode", "rw"], "--mode: unknown value 'rw'", "read, write, exclusive"),
        (["lock", "x", "--priority", "high"], "--priority: 'high' is not a whole number", "5"),
        (["lock", "x", "--session", ""], "--session: the value is empty", "unset"),
        (["update", "--blob", "{"], "--blob: invalid JSON", "notes"),
        (["lock"], "RESOURCE... is missing", "usage: coord lock"),
        (["send", "otto"], "KIND is missing", "usage: coord send"),
        (["steal", "x", "y"], "unexpected argument 'y'", "usage: coord steal"),
        (["completion", "tcsh"], "shell: unknown value 'tcsh'", "bash, zsh, fish"),
        (["lock", "\udcff"], "is not valid UTF-8", "rename"),
        ([], "no command given", "coord --help"),
    ],
)
def test_what_is_not_known_is_an_error_with_a_next_step(argv: list[str], message: str, hint: str) -> None:
    """DESIGN §8: unknown flags are errors; no abbreviations, no guesses, a hint each time."""
    error = refused(*argv)
    assert message in error.message
    assert hint in error.hint


def test_help_wins_over_mistakes_that_follow() -> None:
    """`--help` is asked for by those who do not know yet."""
    assert parse(["--help"]).wants == "help"
    assert parse(["--help"]).command is None
    assert parse(["lock", "-h", "--bogus"]).command == find("lock")
    assert parse(["--help", "lock"]).command == find("lock")
    assert parse(["--version"]).wants == "version"


def test_a_value_may_begin_with_one_dash() -> None:
    """A negative priority is a value, not a flag."""
    assert parse(["lock", "x", "--priority", "-5"]).values["priority"] == -5


def test_a_dash_reads_standard_input(monkeypatch) -> None:
    """MSG-6: a long body comes through a pipe; what is no text is refused."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("zwölf\n".encode())))
    assert parse(["send", "otto", "warn", "s", "--body", "-"]).values["body"] == "zwölf\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert "not valid UTF-8" in refused("send", "otto", "warn", "s", "--body", "-").message


def test_few_commands_redefine_flags_of_every_command() -> None:
    """One word, one meaning: a flag before the command is the flag after it; only tokens and the
    filters of the ledger have their own.
    """
    taken = {flag.name for flag in GLOBAL_FLAGS} | {"help", "version"}
    assert [
        (each.name, flag.name) for each in all_commands() for flag in each.flags if flag.name in taken
    ] == [
        ("log", "agent"),
        *(("token create", name) for name in ("role", "project", "session")),
        ("open", "role"),
    ]


KNOWN = st.sampled_from(
    [
        *(name for c in all_commands() for name in (c.name, c.alias) if name),
        *(f.spelled for c in all_commands() for f in c.flags),
        *(f.spelled for f in GLOBAL_FLAGS),
        "--",
        "=",
        "5m",
    ]
)


@given(st.lists(KNOWN | st.text(max_size=8).filter(lambda word: word != "-"), max_size=8))
def test_any_command_line_is_understood_or_invalid(argv: list[str]) -> None:
    """Whatever is typed names one known command or something wanted, or is `Invalid` with a hint."""
    error, request = None, None
    try:
        request = parse(argv)
    except Invalid as refusal:
        error = refusal
    if request is None:
        assert error is not None
        assert error.hint
    else:
        assert request.wants or request.command in all_commands()
