"""The agents of a project: their sessions counted together, and enabled again."""

from coord.core import keys
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.routing.commands import EnableAgent, GetAgents
from coord.core.tasks.agent_record import (
    FORGIVE_MS,
)
from tests.support.agent_harness import AgentHarness
from tests.support.rule_harness import T0


def test_sessions_of_one_agent_are_counted_together() -> None:
    """What an agent has in hand and how it did is the sum over its sessions.

    RTE-14, RTE-18, CFL-9, SES-42, STA-7.
    """
    harness = AgentHarness(*"abcd", type="doc")
    twin = Caller("ann-2", agent="ann", project="p")
    harness.run(Register(caller=Caller("ann-1", agent="ann", project="p"), capabilities={"doc": 2.0}))
    harness.do(*harness.taken())
    harness.do(*harness.taken(twin), session="ann-2")
    harness.taken()
    harness.taken(twin)
    (ann,) = harness.run(GetAgents("p", "ann")).reply
    assert (ann.sessions, ann.claims, ann.track_record["doc"].done, ann.liveness) == (2, 2, 2, "live")
    assert ann.capabilities == {"doc": 2.0}
    assert harness.run(GetAgents("p"), T0 + 10 * FORGIVE_MS).reply[0].liveness == "hung"
    assert harness.run(GetAgents("elsewhere")).reply == []


def test_enabled_again_an_agent_begins_afresh() -> None:
    """RTE-22: disabled it is kept on record for good; enabled, its limits are forgotten; again is no news."""
    harness = AgentHarness("t")
    harness.give_back(*harness.taken(), limited_ms=60_000)
    off, on = (EnableAgent("p", "ann", enabled) for enabled in (False, True))
    assert harness.run(off).event_tags == ["agent.enabled"]
    assert harness.run(off).event_tags == []
    assert harness.records[keys.agent("p", "ann")].index_key == ""
    assert harness.next(now=T0 + 60_000).outcome.value == "denied"
    assert harness.run(on).reply.blocked_reason == ""
    assert harness.taken() == ("t", 2)
