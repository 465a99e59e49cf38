"""When a tool call has to brief its session: others changed a lock, or somebody came or went."""

from typing import Any

import pytest

from coord.core.locks.commands import BeginToolCall, EndToolCall
from coord.core.locks.tool_calls import OFFER_MS
from tests.support.brief_harness import BriefHarness
from tests.support.lock_harness import REPOSITORY

EVERY_MS = 2_000


class NewsHarness(BriefHarness):
    """Agents that call tools; each call ends at once."""

    def call(self, name: str, *files: str, every_ms: int = EVERY_MS) -> Any:
        begin = BeginToolCall(self.who(name), REPOSITORY, files, call="c", lease_ms=60_000, worktree="/tree")
        self.engine.call(begin)
        return self.engine.call(EndToolCall(self.who(name), "c", REPOSITORY, every_ms))

    def news(self, name: str, *files: str) -> bool:
        return bool(self.call(name, *files).news)


@pytest.fixture
def crew() -> NewsHarness:
    """Two agents that know of each other."""
    harness = NewsHarness()
    harness.join("ann")
    harness.join("bob")
    harness.news("ann")
    harness.news("bob")
    harness.pass_time(EVERY_MS)
    return harness


def test_one_agent_alone_never_has_news() -> None:
    harness = NewsHarness()
    harness.join("ann")
    found = []
    for number in range(3):
        found.append(harness.news("ann", f"file:{number}.py"))
        harness.pass_time(EVERY_MS)
    assert found == [False, False, False]


def test_a_lock_of_another_agent_is_news_once(crew: NewsHarness) -> None:
    """CTX-14: acquired, and released."""
    assert [crew.news("ann"), crew.news("ann", "file:own.py")] == [False, False]
    crew.lock("bob", "file:a.py")
    crew.pass_time(EVERY_MS)
    assert [crew.news("ann"), crew.news("ann")] == [True, False]
    crew.release("bob", "file:a.py")
    crew.pass_time(EVERY_MS)
    assert [crew.news("ann"), crew.news("ann"), crew.news("bob")] == [True, False, True]


def test_who_comes_and_goes_is_news(crew: NewsHarness) -> None:
    """CTX-14: an agent that begins, one that ends; a person in a terminal is not."""
    crew.join("cem")
    crew.pass_time(EVERY_MS)
    assert [crew.news("ann"), crew.news("ann")] == [True, False]
    crew.leave("cem")
    crew.pass_time(EVERY_MS)
    assert [crew.news("ann"), crew.news("ann")] == [True, False]
    crew.people.add("pat")
    crew.beat("pat")
    crew.pass_time(EVERY_MS)
    assert not crew.news("ann")


def test_rapid_changes_are_gathered(crew: NewsHarness) -> None:
    """CTX-16: within two seconds of the last look there is no other, and nothing is lost."""
    crew.lock("bob", "file:a.py")
    assert crew.news("ann")
    crew.lock("bob", "file:b.py")
    crew.pass_time(EVERY_MS - 1)
    assert not crew.news("ann")
    crew.pass_time(1)
    assert [crew.news("ann"), crew.news("ann")] == [True, False]


def test_own_changes_between_those_of_others_hide_nothing(crew: NewsHarness) -> None:
    crew.lock("bob", "file:a.py")
    crew.lock("ann", "file:b.py")
    crew.pass_time(EVERY_MS)
    assert crew.news("ann", "file:c.py")


def test_news_that_was_not_delivered_is_given_again(crew: NewsHarness) -> None:
    """A hook that is killed before it prints loses nothing for ever."""
    crew.lock("bob", "file:a.py")
    assert crew.news("ann")
    crew.pass_time(OFFER_MS - 1)
    assert not crew.news("ann")
    crew.pass_time(1)
    assert crew.news("ann")


def test_without_a_period_nobody_looks(crew: NewsHarness) -> None:
    """[brief] inject = false: nothing is read and nothing is offered."""
    crew.lock("bob", "file:a.py")
    assert not crew.call("ann", every_ms=0).news
    assert crew.news("ann")


def test_a_call_without_news_writes_and_reads_as_little_as_before(crew: NewsHarness) -> None:
    """The two counts are loaded with the rest, and the commit does not depend on them."""
    crew.engine.call(BeginToolCall(crew.who("ann"), REPOSITORY, (), call="c", lease_ms=60_000))
    crew.store.questions = 0
    assert crew.written_by(
        lambda: crew.engine.call(EndToolCall(crew.who("ann"), "c", REPOSITORY, EVERY_MS))
    ) == ["session"]
    assert crew.store.questions == 2, "one load, one commit"
    assert not [key for key in crew.store.expected if key.startswith(("guard/", "crew/"))]
