"""REC-20: opening a store retries while its server is unreachable, and only then, inside the deadline."""

import pytest

from coord.core.errors import (
    Busy,
    CoordError,
    Corrupt,
    Invalid,
    NotFound,
    Refused,
    Unavailable,
    Unknown,
    Unreachable,
    Unsupported,
)
from coord.sdk.client.open import open_timeout_s
from coord.stores.local.backoff import back_off
from coord.stores.open import BACKOFF_S_MAX, FIRST_BACKOFF_S, OPEN_TIMEOUT_S, open_store, retry_unreachable


class Server:
    """A server that is away for a number of attempts; time passes only while somebody pauses or tries."""

    def __init__(self, failures: int, *, attempt_s: float = 0.0) -> None:
        self._failures = failures
        self._attempt_s = attempt_s
        self.now = 1000.0
        self.began: list[float] = []
        self.pauses: list[float] = []

    def attempt(self) -> str:
        self.began.append(self.now - 1000.0)
        self.now += self._attempt_s
        if len(self.began) <= self._failures:
            raise Unreachable(f"attempt {len(self.began)} is refused")
        return "opened"

    def backoff(self, longest: float) -> None:
        self.pauses.append(longest)
        self.now += longest

    def open(self, timeout: float) -> str:
        return retry_unreachable(self.attempt, timeout, clock=lambda: self.now, backoff=self.backoff)


def test_a_server_that_answers_is_asked_once() -> None:
    """Nobody waits for a server that is there."""
    server = Server(0)
    assert server.open(5) == "opened"
    assert (server.began, server.pauses) == ([0.0], [])


def test_a_server_that_comes_back_is_found() -> None:
    """The pauses double up to a limit, so that many who wait do not keep a server from starting."""
    server = Server(8)
    assert server.open(60) == "opened"
    assert server.pauses == [min(FIRST_BACKOFF_S * 2**number, BACKOFF_S_MAX) for number in range(8)]
    assert server.pauses[-1] == BACKOFF_S_MAX


@pytest.mark.parametrize("timeout", [0.01, 0.3, 5.0])
@pytest.mark.parametrize("attempt_s", [0.0, 0.2, 30.0])
def test_no_attempt_begins_after_the_deadline(timeout: float, attempt_s: float) -> None:
    """A server that stays away is given up in time, even where each attempt takes long to fail."""
    server = Server(10_000, attempt_s=attempt_s)
    with pytest.raises(Unreachable):
        server.open(timeout)
    assert max(server.began) < timeout
    assert server.now - 1000.0 < timeout + attempt_s + 1e-6, "it does not pause beyond the deadline"


def test_without_time_there_is_one_attempt() -> None:
    """A timeout of 0 is for those who only look."""
    server = Server(1)
    with pytest.raises(Unreachable) as raised:
        server.open(0)
    assert (server.began, server.pauses) == ([0.0], [])
    assert "is the server running" in raised.value.hint


def test_the_last_error_says_what_failed_and_what_to_do() -> None:
    """The message is that of the last attempt; the hint names the next step and the setting."""
    server = Server(10_000)
    with pytest.raises(Unreachable) as raised:
        server.open(2.5)
    assert raised.value.message == f"attempt {len(server.began)} is refused"
    assert "is the server running" in raised.value.hint
    assert "2.5 s" in raised.value.hint
    assert "COORD_CONNECT_TIMEOUT" in raised.value.hint


def test_the_hint_of_the_driver_is_kept() -> None:
    """Where a store knows a better next step, that one is told."""

    def attempt() -> None:
        raise Unreachable("away", hint="wake the server up.")

    with pytest.raises(Unreachable) as raised:
        retry_unreachable(attempt, 0)
    assert raised.value.hint == "wake the server up."


@pytest.mark.parametrize(
    "kind", [Unavailable, Invalid, NotFound, Refused, Corrupt, Unsupported, Unknown, Busy]
)
def test_what_waiting_does_not_mend_fails_at_once(kind: type[CoordError]) -> None:
    """A wrong url or password, missing rights, damaged or newer data: no second attempt, no pause."""
    tried: list[str] = []

    def attempt() -> None:
        tried.append("once")
        raise kind("no")

    def never(_longest: float) -> None:
        raise AssertionError("nobody has to pause for that")

    with pytest.raises(kind):
        retry_unreachable(attempt, 60, backoff=never)
    assert tried == ["once"]


def test_the_usual_pause_is_random_and_no_longer_than_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who were cut off together do not come back in step."""
    slept: list[float] = []
    monkeypatch.setattr("coord.stores.local.backoff.time.sleep", slept.append)
    for _ in range(50):
        back_off(0.5)
    assert len(set(slept)) > 1
    assert 0 <= min(slept) <= max(slept) <= 0.5


@pytest.mark.parametrize(("given", "seconds"), [("", OPEN_TIMEOUT_S), ("0", 0.0), ("0.5", 0.5), ("60", 60.0)])
def test_the_environment_says_how_long(given: str, seconds: float) -> None:
    """COORD_CONNECT_TIMEOUT is in seconds; 0 means one attempt."""
    assert open_timeout_s({"COORD_CONNECT_TIMEOUT": given}) == seconds


@pytest.mark.parametrize("given", ["soon", "-1", "nan", "inf", "1e9"])
def test_a_time_that_is_none_is_invalid(given: str) -> None:
    """A typing error is told, not replaced by a guess."""
    with pytest.raises(Invalid, match="COORD_CONNECT_TIMEOUT"):
        open_timeout_s({"COORD_CONNECT_TIMEOUT": given})


def test_a_store_on_this_machine_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be made is no server that may come back."""
    monkeypatch.setattr("coord.stores.local.backoff.time.sleep", None)
    with pytest.raises(Unavailable):
        open_store("sqlite:///dev/null/store.db", timeout=60)
