"""Sessions that are registered count against max_active_sessions (TEN-13); limits and what is used."""

import pytest

from coord.core.errors import LimitReached
from coord.core.identity import Caller, Process
from coord.core.lifecycle.commands import Deregister, Register
from coord.core.limits import DAY_MS, GetLimits
from coord.core.sessions.commands import Heartbeat
from coord.core.sessions.liveness import STALE_MS, SUSPECT_MS
from coord.core.sweep import Sweep
from tests.support.rule_harness import LEASE, T0, Outcome, RuleHarness


class Reception(RuleHarness):
    """A tenant in which sessions come and go."""

    def __init__(self, most: int, tenant: str = "acme") -> None:
        super().__init__(tenant)
        if tenant == "acme":
            self.set_limits(max_active_sessions=most)

    def caller(self, name: str) -> Caller:
        return Caller(name, tenant="" if self.tenant == "local" else self.tenant)

    def come(self, name: str, *, replaces: str = "", now: int = T0) -> Outcome:
        return self.run(Register(caller=self.caller(name), replaces=replaces), now)

    def beat(self, name: str, *, now: int = T0) -> Outcome:
        return self.run(Heartbeat(self.caller(name)), now)

    def go(self, name: str, *, now: int = T0) -> Outcome:
        return self.run(Deregister(self.caller(name)), now)

    def pass_all(self, now: int) -> None:
        while self.run(Sweep(self.tenant, 100), now).reply.passed:
            pass

    @property
    def active(self) -> int:
        used: int = self.run(GetLimits(self.tenant)).reply.used["max_active_sessions"]
        return used


def test_registered_sessions_count() -> None:
    """DESIGN §3: the last within the limit comes in, the next is refused with what helps.

    TEN-13, CFL-36.
    """
    harness = Reception(2)
    harness.come("s1")
    harness.beat("s2")
    for ask in (harness.come, harness.beat):
        with pytest.raises(LimitReached, match="2 sessions are active") as refusal:
            ask("s3")
        assert "coord limits set max_active_sessions" in refusal.value.hint
    assert harness.claim("s3").reply.reason == "DENIED_LIMIT_ACTIVE_SESSIONS"
    harness.come("s1")
    harness.go("s1")
    assert harness.active == 1
    harness.come("s3")
    assert harness.active == 2


def test_a_session_counts_once_whatever_it_does() -> None:
    """TEN-13: registered and with claims it counts once, and until both have ended."""
    harness = Reception(1)
    harness.claim("s1", "a")
    harness.come("s1")
    harness.claim("s1", "b")
    assert harness.active == 1
    harness.submit("s1", 1, "a")
    harness.submit("s1", 1, "b")
    assert harness.active == 1, "it is still here"
    harness.claim("s1", "c")
    harness.go("s1")
    assert harness.active == 0, "its claim ended with it"


def test_a_silent_session_counts_no_more() -> None:
    """DESIGN §3: once the sweep finds it stale; its claims go on counting. Coming back it counts."""
    harness = Reception(2)
    harness.come("silent")
    harness.come("busy")
    harness.claim("busy", lease_ms=2 * STALE_MS)
    harness.pass_all(T0 + SUSPECT_MS)
    assert harness.active == 2, "suspect is not stale"
    harness.pass_all(T0 + STALE_MS)
    assert harness.active == 1
    harness.come("other", now=T0 + STALE_MS)
    harness.beat("silent", now=T0 + STALE_MS + 1)
    assert harness.active == 3, "who was here before is not sent away for having been silent"
    harness.go("silent", now=T0 + STALE_MS + 2)
    assert harness.active == 2


def test_one_that_takes_anothers_place_needs_no_room() -> None:
    """DESIGN §5: after `/clear` the new id counts instead of the old one, with the claims of both."""
    harness = Reception(1)
    process = Process(7, 1)
    old, new = (Caller(name, tenant="acme", process=process) for name in ("old", "new"))
    harness.run(Register(caller=old))
    harness.claim("old")
    reply = harness.run(Register(caller=new, replaces="old")).reply
    assert (reply.moved_claims, harness.active) == (1, 1)
    harness.submit("new")
    harness.run(Deregister(new))
    assert (harness.active, harness.keys("count/session/")) == (0, [])


def test_the_unlimited_tenant_keeps_no_counts() -> None:
    """AMB-19: tenant local takes any number of sessions, and writes nothing for it."""
    harness = Reception(1, "local")
    for number in range(60):
        harness.come(f"s{number}")
    assert harness.keys("count/") == []
    shown = harness.run(GetLimits("local")).reply
    assert (shown.limited, shown.limits) == (False, {})


def test_limits_are_shown_beside_what_is_used() -> None:
    """TEN-14: profile, numbers and use; a limit that was set singly is of no profile."""
    harness = RuleHarness("acme")
    harness.claim("s1", "a")
    shown = harness.run(GetLimits("acme")).reply
    assert (shown.profile, shown.limits["max_concurrent_claims"]) == ("default", 100)
    assert shown.used == {"max_concurrent_claims": 1, "max_active_sessions": 1}
    harness.set_limits(max_concurrent_claims=7)
    assert harness.run(GetLimits("acme")).reply.profile == ""


@pytest.mark.parametrize("finished", [True, False])
def test_retention_never_breaks_the_lineage_of_a_live_task(finished: bool) -> None:
    """TEN-11: past its days an earlier generation is forgotten, but not while its task goes on."""
    harness = RuleHarness("acme")
    harness.set_limits(claim_history_retention_days=1)
    harness.claim("s1")
    harness.release("s1")
    harness.claim("s2", lease_ms=LEASE)
    if finished:
        harness.submit("s2", 2)
    done = harness.sweep(now=T0 + DAY_MS)
    assert ("task.history_forgotten" in done.event_tags) is finished
    assert len(harness.history(now=T0 + DAY_MS)) == (1 if finished else 2)
