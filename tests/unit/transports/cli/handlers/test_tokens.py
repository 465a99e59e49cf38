"""Tokens from end to end: shown once, listed without secrets, and refused with a next step."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import coord as package
from coord.core.tokens.text import parse_token
from coord.transports.cli.main import main
from tests.support.cli import PROGRAM, Coord, Said
from tests.support.terminals import Terminal

Person = Callable[..., Said]


@pytest.fixture
def person(repository: Path, capfd: pytest.CaptureFixture[str]) -> Person:
    """Return a function that runs one command line of a person in a terminal."""

    def run(call: str, *more: str) -> Said:
        code = main([*call.split(), *more])
        out, err = capfd.readouterr()
        return Said(code, json.loads(out), err.rstrip("\n"))

    return run


def test_a_token_is_created_used_and_revoked(person: Person) -> None:
    """The answer has the token itself this once; what a listing shows is enough to revoke it."""
    said = person("token create --role operate --project shop --session bob --expires 1d --label", "the hall")
    text, token_id = said.answer["token"], said.answer["id"]
    assert (said.code, said.answer["role"], said.answer["project"]) == (0, "operate", "shop")
    assert (said.answer["session"], said.answer["label"]) == ("bob", "the hall")
    assert said.line.startswith(f"Created {token_id} (role operate, project shop, session bob, until 20")
    assert said.line.endswith("The token is shown only now: store it")
    assert text not in said.line
    listed = person("token list")
    assert listed.line == "1 token"
    assert {**said.answer, "ok": None, "token": None} == {"ok": None, "token": None} | listed.answer[
        "tokens"
    ][0]
    with package.connect() as client:
        assert client.database.store_id == parse_token(text).store_id
        found = client.find_token(text)
        assert found is not None
        assert found.id == token_id
    assert person(f"token revoke {token_id}").line.startswith(f"Revoked {token_id} (role operate")
    with package.connect() as client:
        assert client.find_token(text) is None
    assert person("token list").answer["tokens"] == []
    assert person(f"token revoke {token_id}").code == 4
    log = person("log tail --op token").answer
    assert [event["event"] for event in log["events"]] == ["token.created", "token.revoked"]
    assert text[-49:] not in json.dumps([log, listed.answer])


def test_rotation_shows_the_new_token_once(person: Person) -> None:
    """Both count during the grace period; without one, the old token ends at once."""
    first = person("token create --role view").answer
    second = person(f"token rotate {first['id']} --grace 1h")
    assert second.line.startswith(f"Replaced {first['id']} by {second.answer['id']} (role view, without end)")
    third = person(f"token rotate {second.answer['id']} --grace 0 --expires 2d").answer
    with package.connect() as client:
        known = [client.find_token(each["token"]) for each in (first, second.answer, third)]
    assert [found and found.id for found in known] == [first["id"], None, third["id"]]
    assert third["expires_at"] is not None
    refused = person(f"token rotate {first['id']}")
    assert (refused.code, refused.answer["error"]["hint"]) == (1, f"coord token rotate {second.answer['id']}")


def test_tenants_have_separate_tokens(person: Person) -> None:
    """TEN-1: a token names its tenant, and no other tenant of the store knows it."""
    text = person("token create --role admin --tenant acme@eu").answer["token"]
    assert parse_token(text).tenant == "acme@eu"
    assert person("token list").answer["tokens"] == []
    assert len(person("token list --tenant acme@eu").answer["tokens"]) == 1
    for tenant, known in (("acme@eu", True), ("local", False), ("acme", False)):
        with package.connect(tenant=tenant) as client:
            assert (client.find_token(text) is not None) is known


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        ("create", "no role given", "--role with one of report, view, operate, admin"),
        ("create --role god", "unknown value 'god'", "one of report, view, operate, admin"),
        ("create --role view --expires soon", "'soon' is not a duration", "use seconds"),
        ("create --role view --expires 0", "longer than zero", "use seconds"),
        ("create --role view --expires 0.5", "0.5 is not a lifetime in seconds", "1 second to 366 days"),
        ("create --role view --project a/b", "'a/b' is not a project", "letters, digits"),
        ("create --role view --session a/b", "'a/b' is not a session id", "letters, digits"),
        ("create --role view --session=", "--session: the value is empty", "is a shell variable unset"),
        ("create --role view --role admin", "--role is given twice", "once"),
        ("create --role view --label a\tb", "the label is not one line", "at most 200"),
        ("revoke", "ID is missing", "usage: coord token revoke ID"),
        ("revoke a/b", "'a/b' is not a token id", "letters, digits"),
        ("rotate t-1 --grace 400d", "longer than a year", "use seconds"),
    ],
)
def test_bad_input(coord: Coord, person: Person, words: str, problem: str, hint: str) -> None:
    """Each error names the value, the problem and the next step, and exits with 2."""
    said = person("token", *words.split(" "))
    assert said.code == 2
    assert problem in said.answer["error"]["message"]
    assert hint in said.answer["error"]["hint"]


@pytest.mark.parametrize("verb", ["revoke", "rotate"])
def test_a_token_is_not_its_id(person: Person, verb: str) -> None:
    """Somebody who pastes the secret in place of the id reads so, and the answer does not repeat it."""
    text = person("token create --role view").answer["token"]
    said = person(f"token {verb} {text}")
    assert (said.code, "not its id" in said.line) == (2, True)
    assert text[-49:] not in said.line + json.dumps(said.answer)


def test_an_agent_creates_tokens_for_itself_only(coord: Coord) -> None:
    """The refusal names the flag that would do, and nothing is created."""
    for words, problem in (
        ("--role admin --session s-bob", "s-bob is an agent; only people"),
        ("--role view", "all sessions is not its own"),
        ("--role view --session s-ann", "session s-ann is not its own"),
    ):
        said = coord(f"bob token create {words}")
        assert (said.code, said.answer["error"]["code"]) == (1, "refused")
        assert problem in said.line
    assert coord("bob token list").answer["tokens"] == []
    created = coord("bob token create --role operate --session s-bob").answer
    assert (created["session"], created["created_by"]) == ("s-bob", "s-bob")
    assert coord(f"ann token revoke {created['id']}").code == 1


def test_a_terminal_shows_the_token_alone(repository: Path) -> None:
    """On a terminal, stdout is the token and nothing else, and it is not cut."""
    words = [*PROGRAM[1:], "token", "create", "--role", "view"]
    terminal = Terminal(*words, columns=40, show_stderr=False)
    assert terminal.exit_code() == 0
    assert parse_token(terminal.shown.replace("\r\n", "\n").rstrip("\n")).tenant == "local"
    terminal = Terminal(*words, columns=200)
    terminal.wait_for("The token is shown only now: store it")
    assert terminal.exit_code() == 0
