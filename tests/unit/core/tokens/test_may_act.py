"""Over the network nobody acts for a session that came with another token, unless it is an admin's."""

from collections.abc import Iterator
from typing import Any

import pytest

from coord.core.errors import CoordError, Impostor
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, Outcome, ReleaseLocks
from coord.core.messages.commands import PeekMessages
from coord.core.sessions.commands import Heartbeat
from coord.core.tokens.commands import CreateToken, RevokeToken, RotateToken
from coord.core.tokens.schema import Role
from tests.support.store_harness import StoreHarness, open_store_harness

PERSON = Caller("ida", person=True)


@pytest.fixture
def harness() -> Iterator[StoreHarness]:
    with open_store_harness("memory:") as opened:
        yield opened


def token(harness: StoreHarness, number: int, role: Role = Role.OPERATE, **scope: Any) -> str:
    made = harness.call(CreateToken(caller=PERSON, hash=f"{number:064x}"[::-1], role=role, **scope))
    return str(made.id)


def lock(harness: StoreHarness, session: str, with_token: str = "", resource: str = "file:a") -> Outcome:
    command = AcquireLocks(Caller(session, token=with_token), "r", (resource,), wait_id=harness.number())
    return harness.call(command).outcome


def refused(harness: StoreHarness, session: str, with_token: str) -> bool:
    """Whether a token may neither lock, release, read messages nor beat for a session."""
    caller = Caller(session, token=with_token)
    commands = (
        AcquireLocks(caller, "r", ("file:b",), wait_id="w"),
        ReleaseLocks(caller, "r", ("file:a",)),
        PeekMessages(caller),
        Heartbeat(caller),
    )
    verdicts = []
    for command in commands:
        try:
            harness.call(command)
        except Impostor:
            verdicts.append(True)
        except CoordError:
            verdicts.append(False)
        else:
            verdicts.append(False)
    assert len(set(verdicts)) == 1, verdicts
    return verdicts[0]


def test_a_session_belongs_to_the_token_that_it_came_with(harness: StoreHarness) -> None:
    """DESIGN §10: nobody acts for another's session without admin."""
    first, second = token(harness, 1), token(harness, 2)
    assert lock(harness, "bob", first) is Outcome.GRANTED
    assert lock(harness, "bob", first, "file:b") is Outcome.GRANTED
    assert refused(harness, "bob", second)
    assert not refused(harness, "bob", first)


def test_a_session_of_the_machine_is_not_for_the_network(harness: StoreHarness) -> None:
    """A token that is not made for a session cannot take over one that works beside the store."""
    assert lock(harness, "ada") is Outcome.GRANTED
    assert refused(harness, "ada", token(harness, 1))
    assert not refused(harness, "ada", token(harness, 2, session="ada"))
    assert not refused(harness, "ada", "")


def test_an_admin_acts_for_everybody_and_keeps_nothing(harness: StoreHarness) -> None:
    first, admin = token(harness, 1), token(harness, 2, Role.ADMIN)
    lock(harness, "bob", first)
    harness.pass_seconds(60)
    assert not refused(harness, "bob", admin)
    assert lock(harness, "bob", first) is Outcome.GRANTED, "the session still belongs to its token"


def test_a_rotated_token_keeps_its_sessions(harness: StoreHarness) -> None:
    """The successor acts for them, also after the record of the first token is gone."""
    first = token(harness, 1)
    lock(harness, "bob", first)
    second = harness.call(RotateToken(caller=PERSON, id=first, hash="b" * 64, grace_ms=60_000)).id
    assert not refused(harness, "bob", second)
    harness.pass_seconds(30)
    harness.call(Heartbeat(Caller("bob", token=second)))
    harness.call(RevokeToken(caller=PERSON, id=first))
    assert not refused(harness, "bob", second)
    assert refused(harness, "bob", token(harness, 3))


def test_a_session_that_ended_is_free(harness: StoreHarness) -> None:
    first, second = token(harness, 1), token(harness, 2)
    actor = harness.actor("bob", token=first)
    actor.register()
    actor.leave()
    assert lock(harness, "bob", second) is Outcome.GRANTED
    assert refused(harness, "bob", first)
