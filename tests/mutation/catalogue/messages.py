"""Mutants of messages: order, delivery, limits."""

from tests.mutation.mutant import Mutant

MUTANTS = [
    Mutant(
        "the tenth message comes before the second",
        "coord.core.keys:inbox",
        "{number:012d}",
        "{number}",
        ("tests/unit/core/messages/test_receive.py::test_order",),
    ),
    Mutant(
        "an acknowledged message is delivered again",
        "coord.core.messages.receive:ack_messages",
        "_deliver(tx, *by_id.pop(name), session)",
        "by_id.pop(name)",
        ("tests/unit/core/messages/test_receive.py::test_ack_ends_a_message",),
    ),
    Mutant(
        "an offered message is lost",
        "coord.core.messages.receive:receive_messages",
        "now >= message.offered_ms + OFFER_MS",
        "not message.offered_ms",
        ("tests/unit/core/messages/test_receive.py::test_ack_ends_a_message",),
    ),
    Mutant(
        "an unread message is deleted without notice",
        "coord.core.messages.undelivered:message_deadline",
        'return_message(tx, key, "nobody read it in time", now)',
        "tx.delete(key)",
        ("tests/unit/core/messages/test_undelivered.py::test_unread_message_comes_back",),
    ),
    Mutant(
        "a session may flood the others",
        "coord.core.messages.send:_count_sending",
        "sent > RATE_MAX or broadcasts > RATE_BROADCASTS_MAX",
        "False",
        ("tests/unit/core/messages/test_send.py::test_rate",),
    ),
    Mutant(
        "answers to answers never end",
        "coord.core.messages.send:_hops",
        "hops > HOPS_MAX",
        "False",
        ("tests/unit/core/messages/test_send.py::test_hops",),
    ),
    Mutant(
        "a broadcast that did not fit is lost",
        "coord.core.messages.receive:collect_broadcasts",
        "seen = number - 1",
        "pass",
        ("tests/unit/core/messages/test_inbox.py::test_heavy_inbox_is_read_in_portions",),
    ),
]
