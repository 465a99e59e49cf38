"""Looking at messages delivers none of them."""

from itertools import count
from typing import Any

import pytest

from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.messages.commands import AckMessages, PeekMessages, ReceiveMessages, SendMessage
from coord.engine.engine import Engine
from coord.sdk.page import messages
from coord.sdk.page.messages import page_messages
from coord.stores.contract import Store
from coord.stores.memory import MemoryDatabase

ADA, BOB, CYD = Caller("s-ada", agent="ada"), Caller("s-bob", agent="bob"), Caller("s-cyd", agent="cyd")


def crew() -> tuple[Engine, Store]:
    database = MemoryDatabase("memory:")
    times = count(1_700_000_000_000, 1_000)
    engine = Engine(database, "local", clock=lambda: next(times))
    for caller in (ADA, BOB, CYD):
        engine.call(Register(caller))
    return engine, database.log("local")


def test_messages_are_shown_until_they_are_acknowledged_and_nothing_is_consumed() -> None:
    engine, log = crew()
    sent = engine.call(SendMessage(ADA, to="s-bob", kind="request", subject="review", body="x" * 5000)).id
    everybody = engine.call(SendMessage(ADA, kind="status", subject="done", body="all")).id
    (wide, one) = sorted(page_messages(log), key=lambda each: len(each.body))
    assert (wide.id, {*wide.to}, wide.body) == (everybody, {"s-bob", "s-cyd"}, "all")
    assert (one.id, one.sender, one.to, one.waiting) == (sent, "s-ada", ["s-bob"], True)
    assert (len(one.body), one.cut) == (messages.BODY_CHARS_MAX, True)
    (whole,) = page_messages(log, message_id=sent)
    assert (len(whole.body), whole.cut) == (5000, False)
    assert {each.id for each in engine.call(PeekMessages(BOB)).messages} == {sent, everybody}
    engine.call(ReceiveMessages(BOB))
    engine.call(AckMessages(BOB, ids=(sent,)))
    assert [each.id for each in page_messages(log, session="s-cyd")] == [everybody]
    assert sent not in {each.id for each in page_messages(log)}


def test_copies_of_one_message_are_one() -> None:
    engine, log = crew()
    sent = engine.call(SendMessage(ADA, kind="emergency", subject="stop")).id
    (found,) = page_messages(log)
    assert (found.id, sorted(found.to)) == (sent, ["s-bob", "s-cyd"])


def test_the_newest_are_shown_wherever_they_lie_and_few_are_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The inboxes come in the order of their sessions, and the newest message may be in the last one."""
    monkeypatch.setattr(messages, "PAGE", 2)
    monkeypatch.setattr(messages, "SHOWN_MAX", 2)
    engine, log = crew()
    old = [engine.call(SendMessage(ADA, to="s-bob", kind="status", subject=str(n))).id for n in range(5)]
    new = [engine.call(SendMessage(ADA, to="s-cyd", kind="status", subject=str(n))).id for n in range(2)]
    limits: set[int] = set()
    scan = log.scan

    def counted(prefix: str, *, limit: int, **how: Any) -> Any:
        limits.add(limit)
        return scan(prefix, limit=limit, **how)

    monkeypatch.setattr(log, "scan", counted)
    assert [each.id for each in page_messages(log)] == new[::-1]
    assert [each.id for each in page_messages(log, session="s-bob")] == old[:2:-1]
    assert [each.id for each in page_messages(log, message_id=old[0])] == old[:1]
    assert limits == {2}


def test_copies_of_one_message_are_one_across_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "PAGE", 1)
    monkeypatch.setattr(messages, "SHOWN_MAX", 1)
    engine, log = crew()
    sent = engine.call(SendMessage(ADA, kind="emergency", subject="stop")).id
    (found,) = page_messages(log)
    assert (found.id, sorted(found.to)) == (sent, ["s-bob", "s-cyd"])
