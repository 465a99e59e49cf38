"""Many senders, one inbox, two processes that empty it: nothing is lost, doubled, or out of order."""

from collections import Counter

from tests.conftest import SOAK
from tests.support.process_group import ProcessGroup, finish, release

SENDERS = 8 if SOAK else 4
EACH = 100 if SOAK else 8
"""Below what one session may send in a minute."""
OFFERED_AGAIN_MS = 60_000


def test_two_readers_drain_what_many_send(group: ProcessGroup) -> None:
    """MSG: every message comes once under drain, to one of the readers, in the order of its sender."""
    group.scripted_sessions("inbox", own_pid=False)[0].ask("register")
    all_sent = group.folder / "all-sent"
    more = {"to": "inbox", "all_sent": str(all_sent)}
    readers = [group.options("inbox", {**more, "sends": 0}, own_pid=False) for _ in range(2)]
    senders = [group.options(f"sender-{number}", {**more, "sends": EACH}) for number in range(SENDERS)]
    started = group.start("sender", readers + senders)
    release(started)
    for sender in started[2:]:
        finish(sender)
    all_sent.touch()
    drained = [reader.receive() for reader in started[:2]]
    for reader in started[:2]:
        finish(reader)
    seen = Counter((sender, number) for found in drained for sender, number in found)
    assert seen == Counter(
        (f"sender-{sender}", number) for sender in range(SENDERS) for number in range(EACH)
    )
    for found in drained:
        for number in range(SENDERS):
            mine = [each for sender, each in found if sender == f"sender-{number}"]
            assert mine == sorted(mine)
    check_delivered_in_order(group)


def check_delivered_in_order(group: ProcessGroup) -> None:
    """In the log, whoever the reader was, each sender's messages are delivered as they were sent."""
    sent = {event["id"]: event for event in group.log.events_of("message.sent")}
    order: dict[str, list[int]] = {}
    for event in group.log.events_of("message.delivered"):
        message = sent[event["id"]]
        order.setdefault(message["session"], []).append(int(message["subject"]))
    assert order == {f"sender-{number}": list(range(EACH)) for number in range(SENDERS)}


def test_what_a_killed_reader_was_offered_is_offered_again(group: ProcessGroup) -> None:
    """MSG: shown at least once; who dies before it acknowledges leaves the message, under the same id."""
    group.stop_time()
    (sender,) = group.scripted_sessions("sender")
    first, second = group.scripted_sessions("inbox", "inbox", own_pid=False)
    second.ask("register")
    message = sender.ask("send", "inbox", "status", "hello")["id"]
    assert [each["id"] for each in first.ask("recv")["messages"]] == [message]
    first.kill()
    group.clock.move(OFFERED_AGAIN_MS - 1)
    assert second.ask("recv")["messages"] == []
    group.clock.move(1)
    assert [each["id"] for each in second.ask("recv")["messages"]] == [message]
    assert second.ask("ack", message)["acked"] == [message]
    group.clock.move(OFFERED_AGAIN_MS)
    assert second.ask("recv")["messages"] == []
