"""What sessions got, and how their context begins again."""

import pytest

from coord.core import keys
from coord.core.brief.commands import BeginEpoch, RecordBrief
from coord.core.brief.delivery import estimated_tokens
from coord.core.locks.commands import EndToolCall
from tests.support.brief_harness import BriefHarness
from tests.support.lock_harness import REPOSITORY


@pytest.fixture
def crew() -> BriefHarness:
    harness = BriefHarness()
    harness.join("ann")
    harness.join("bob")
    return harness


def end_call(crew: BriefHarness, name: str) -> tuple[bool, str, int, int]:
    reply = crew.engine.call(EndToolCall(crew.who(name), "c", REPOSITORY, 2_000))
    return reply.news, reply.briefed, reply.briefed_offset, reply.epoch


def test_a_receipt_is_kept_in_the_log(crew: BriefHarness) -> None:
    """DED-4: what was given to whom, up to which offset, and what it cost."""
    assert crew.engine.call(RecordBrief(crew.who("ann"), "d1", 7, 401))
    (receipt,) = crew.events("brief.delivered")
    del receipt["event"]
    assert receipt == {"session": "ann", "agent": "agent-ann", "offset": 7, "chars": 401, "tokens": 101}
    crew.pass_time(2_000)
    assert end_call(crew, "ann")[1:] == ("d1", 7, 0)


def test_a_delivered_brief_ends_the_offer(crew: BriefHarness) -> None:
    assert end_call(crew, "ann")[0]
    crew.engine.call(RecordBrief(crew.who("ann"), "d1", 7, 400))
    crew.pass_time(600_000)
    assert not end_call(crew, "ann")[0]


def test_after_compaction_everything_is_news_at_once(crew: BriefHarness) -> None:
    """CTX-15: the next hook briefs the session again, although it did so a moment ago."""
    end_call(crew, "ann")
    crew.engine.call(RecordBrief(crew.who("ann"), "d1", 7, 400))
    assert crew.engine.call(BeginEpoch(crew.who("ann"), "compact")) == 1
    assert end_call(crew, "ann") == (True, "", 0, 1)
    assert [event["epoch"] for event in crew.events("session.compacted")] == [1]


def test_resume_and_clear_are_no_compaction(crew: BriefHarness) -> None:
    crew.engine.call(BeginEpoch(crew.who("ann"), "resume"))
    assert crew.events("session.compacted") == []
    assert crew.brief("ann").epoch == 1


def test_a_brief_of_an_earlier_epoch_does_not_count(crew: BriefHarness) -> None:
    """It was made before the compaction, and is gone with the context."""
    crew.engine.call(BeginEpoch(crew.who("ann"), "compact"))
    assert not crew.engine.call(RecordBrief(crew.who("ann"), "d1", 7, 400, 0))
    assert crew.events("brief.delivered") == []
    assert crew.store.load([keys.session("ann")])
    assert end_call(crew, "ann")[:2] == (True, "")


def test_tokens_are_estimated_from_characters() -> None:
    assert [estimated_tokens(chars) for chars in (0, 1, 4, 5, 1500)] == [0, 1, 1, 2, 375]
