"""Reactions count after a person's consent; one bad table harms no other."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from coord.followers.reactions.settings import Command, MessageTable, Settings, main_worktree, read_settings
from coord.followers.reactions.webhook import Webhook
from coord.host.repository import find_repository
from coord.host.store_location import StoreLocation
from tests.support.consent import write_configuration
from tests.support.git_folders import made_repository

GOOD = '[[on]]\nname = "tests"\nevent = "commit"\nrun = ["npm", "test"]\n'
Environ = Mapping[str, str]


@pytest.fixture
def environ(tmp_path: Path) -> Environ:
    (tmp_path / "config/coord").mkdir(parents=True)
    return {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


def settings(shop: Path | None, environ: Environ) -> Settings:
    repository = None if shop is None else find_repository(str(shop))
    return read_settings(StoreLocation("memory:", "r", repository, "s", 0, "/nowhere"), environ)


def of_user(environ: Environ, text: str) -> Path:
    file = Path(environ["XDG_CONFIG_HOME"], "coord/coord.toml")
    file.write_text(text)
    return file


def test_nothing_counts_before_a_person_confirms_it(shop: Path, environ: Environ) -> None:
    """A clone brings its file along; a changed file needs a new consent."""
    (shop / "coord.toml").write_text(GOOD)
    found = settings(shop, environ)
    assert found.reactions == ()
    assert "not confirmed" in found.problems[0]
    write_configuration(shop, GOOD, environ)
    (reaction,) = settings(shop, environ).reactions
    assert reaction.name == "tests"
    assert reaction.action == Command(("npm", "test"), f"{shop}/")
    (shop / "coord.toml").write_text(GOOD.replace("npm", "evil"))
    assert settings(shop, environ).reactions == ()


def test_the_file_of_the_main_worktree_counts_wherever_somebody_works(shop: Path, environ: Environ) -> None:
    """Otherwise the first worktree that a hub opens would decide."""
    write_configuration(shop, GOOD, environ)
    os.system(f"git -C {shop} worktree add -q {shop}-two >/dev/null 2>&1")
    repository = find_repository(f"{shop}-two")
    assert repository is not None
    assert repository.root == f"{shop}-two"
    main = main_worktree(repository)
    assert main is not None
    assert main.root == str(shop)
    assert [each.name for each in settings(Path(f"{shop}-two"), environ).reactions] == ["tests"]


def test_one_bad_table_harms_no_other(environ: Environ) -> None:
    bad = [
        'event = "no.such"\nrun = ["x"]',
        'event = "commit"',
        'event = "commit"\nrun = ["x"]\nmessage = { to = "a", subject = "b" }',
        'event = "commit"\nrun = "npm test"',
        'event = "commit"\nrun = []',
        'event = "commit"\nrun = ["x", "a{commit}"]',
        'event = "commit"\nrun = ["x"]\ntypo = 1',
        'event = "commit"\nrun = ["x"]\nenv = ["A=B"]',
        'event = "commit"\nrun = ["x"]\nattempts = 99',
        'event = "commit"\nrun = ["x"]\ntimeout_s = 1e9',
        'event = "commit"\nrun = ["x"]\nname = "a b"',
        'event = "commit"\nwebhook = "ftp://example.com"',
        'event = "commit"\nwebhook = "https://user:pass@example.com/"',
        'event = "commit"\nwebhook = "https://example.com"\nsecret = "in the file"',
        'event = "commit"\nwebhook = "https://example.com"\nsecret = { env = "A", file = "b" }',
        'event = "commit"\nwebhook = {}',
        'event = "commit"\nwebhook = "https://example.com"\nformat = "irc"',
        'name = "tests"\nevent = "commit"\nrun = ["x"]',
        'event = 3\nrun = ["x"]',
    ]
    of_user(environ, GOOD + "".join(f"[[on]]\n{each}\n" for each in bad) + "[reactions]\nsummary = true\n")
    found = settings(None, environ)
    assert [each.name for each in found.reactions] == ["tests", "summary"]
    assert len(found.problems) == len(bad)
    for number, problem in enumerate(found.problems, 2):
        assert problem.startswith(f"[[on]] {number} in ")
        assert "in the file" not in problem, "no secret is repeated"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[on]\nevent = 'commit'\n", "not a list of tables"),
        ("[reactions]\nwhat = 1\n", "only test and summary"),
        ("reactions = 3\n", "only test and summary"),
        ("[[on]\n", "cannot be read"),
        ('[reactions]\ntest = "npm test"\n', "[reactions] test"),
    ],
)
def test_a_file_that_makes_no_sense_is_reported(environ: Environ, text: str, problem: str) -> None:
    of_user(environ, text)
    found = settings(None, environ)
    assert found.reactions == ()
    assert problem in found.problems[0]


def test_what_is_built_in_is_off_until_a_person_switches_it_on(environ: Environ) -> None:
    """EVT-5, EVT-6: a command of their choice after each commit, and a message for the lead."""
    assert settings(None, environ) == Settings()
    of_user(environ, '[reactions]\ntest = ["npm", "test"]\nsummary = true\n')
    test, summary = settings(None, environ).reactions
    assert (test.pattern.names, test.action) == (("git.committed",), Command(("npm", "test"), "{worktree}"))
    assert summary.pattern.names == ("task.completed",)
    assert isinstance(summary.action, MessageTable)
    assert summary.action.to == "role:lead"
    of_user(environ, '[reactions]\nsummary = "kim"\n')
    (summary,) = settings(None, environ).reactions
    assert isinstance(summary.action, MessageTable)
    assert summary.action.to == "kim"
    of_user(environ, "[reactions]\nsummary = false\n")
    assert settings(None, environ) == Settings()


def test_others_cannot_change_what_runs(environ: Environ) -> None:
    file = of_user(environ, GOOD)
    file.chmod(0o666)
    found = settings(None, environ)
    assert found.reactions == ()
    assert "can be changed by others" in found.problems[0]


def test_a_repository_takes_no_name_from_the_user(shop: Path, environ: Environ) -> None:
    """Else it would go on with deliveries that were meant for the user's own reaction."""
    of_user(environ, GOOD)
    write_configuration(shop, GOOD.replace("npm", "evil"), environ)
    found = settings(shop, environ)
    assert [each.action for each in found.reactions] == [Command(("npm", "test"), f"{shop}/")]
    assert "another reaction is called tests" in found.problems[0]


def test_a_table_without_a_name_keeps_its_made_name(environ: Environ) -> None:
    table = '[[on]]\nevent = "task.*"\nwebhook = { env = "CHAT_URL" }\nformat = "slack"\n'
    of_user(environ, table)
    (first,) = settings(None, environ).reactions
    assert first.action == Webhook("", "CHAT_URL", format="slack")
    of_user(environ, GOOD + table)
    assert settings(None, environ).reactions[1].name == first.name
    assert first.name.startswith("task-")
