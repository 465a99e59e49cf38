"""Settings of a store: their values, their sources, and what is refused."""

import pytest

from coord.core import keys
from coord.core.errors import Invalid
from coord.core.settings import (
    SETTINGS,
    ChangeSettings,
    GetSettings,
    ProjectAgents,
    SettingInfo,
    Settings,
    Value,
)
from tests.support.rule_harness import RuleHarness

DOCUMENTED: dict[str, Value] = {
    "max_agents": "unlimited",
    "project_lock_nesting": "off",
    "steal_policy": "strict",
    "suspect_seconds": 120,
    "stale_seconds": 300,
    "hung_seconds": 600,
    "progress_timeout_seconds": 0,
    "log_retention_days": 90,
    "log_retention_entries": 1_000_000,
    "alert_stuck_seconds": 600,
    "alert_prompting_seconds": 1800,
    "alert_context_percent": 85,
    "alert_context_critical_percent": 95,
    "alert_duplicate_seconds": 60,
    "alert_idle_seconds": 120,
    "alert_decision_seconds": 600,
}


def shown(harness: RuleHarness, project: str = "p", max_agents: int = 0) -> dict[str, SettingInfo]:
    return {each.name: each for each in harness.run(GetSettings(project, max_agents)).reply}


@pytest.mark.parametrize("tenant", ["local", "acme"])
def test_defaults_are_the_documented_ones(tenant: str) -> None:
    """Every tenant has settings, tenant local too; each says why it exists and where its value is from."""
    found = shown(RuleHarness(tenant))
    assert {name: each.value for name, each in found.items()} == DOCUMENTED
    assert {each.source for each in found.values()} == {"default"}
    assert found.keys() == SETTINGS.keys()
    assert all(each.because and each.value == each.default for each in found.values())


def test_a_setting_says_what_values_it_may_have() -> None:
    """Whoever draws a form needs no list of its own: every choice is taken, and nothing beyond a range."""
    for each in shown(RuleHarness()).values():
        harness = RuleHarness()
        if each.choices:
            for choice in each.choices:
                assert harness.run(ChangeSettings({each.name: choice}, "p")).reply
            continue
        assert each.low < each.high
        for value in (each.low - 1, each.high + 1):
            with pytest.raises(Invalid, match="use a whole number from"):
                harness.run(ChangeSettings({each.name: value}, "p"))


def test_a_change_is_one_record_and_one_event() -> None:
    """What is named changes, the rest stays; who did it is recorded; the same again writes nothing."""
    harness = RuleHarness()
    done = harness.run(ChangeSettings({"stale_seconds": 500, "steal_policy": "dead_or_expired"}, "p", "ada"))
    assert list(done.writes) == [keys.SETTINGS]
    (event,) = done.events
    assert (event["event"], event["by"]) == ("settings.changed", "ada")
    assert event["settings"] == {"stale_seconds": 500, "steal_policy": "dead_or_expired"}
    found = shown(harness)
    assert (found["stale_seconds"].value, found["stale_seconds"].source) == (500, "store")
    assert (found["hung_seconds"].value, found["hung_seconds"].source) == (600, "default")
    assert harness.run(ChangeSettings({"stale_seconds": 500}, "p")).writes == {}
    harness.run(ChangeSettings({"stale_seconds": "default", "steal_policy": "default"}, "p"))
    assert harness.read(keys.SETTINGS, Settings) == Settings()


def test_max_agents_belongs_to_a_project() -> None:
    """CFL-36: the store's number wins over the environment's, and another project has neither."""
    harness = RuleHarness()
    harness.run(ChangeSettings({"max_agents": 8}, "p"))
    assert (shown(harness, "p", 3)["max_agents"].value, shown(harness, "p")["max_agents"].source) == (
        8,
        "store",
    )
    other = shown(harness, "other", 3)["max_agents"]
    assert (other.value, other.source, other.project) == (3, "environment", "other")
    harness.run(ChangeSettings({"max_agents": "default"}, "p"))
    assert shown(harness, "p")["max_agents"].value == "unlimited"
    assert harness.read(keys.count_agents("p"), ProjectAgents).max_agents == 0
    with pytest.raises(Invalid, match="belongs to a project"):
        harness.run(ChangeSettings({"max_agents": 8}))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_agents": 0}, "max_agents is 0"),
        ({"max_agents": 21}, "max_agents is 21"),
        ({"max_agents": "many"}, "max_agents is 'many'"),
        ({"max_agents": True}, "max_agents is True"),
        ({"project_lock_nesting": "yes"}, "project_lock_nesting is 'yes'"),
        ({"project_lock_nesting": 1}, "project_lock_nesting is 1"),
        ({"steal_policy": ""}, "steal_policy is ''"),
        ({"stale_seconds": 29}, "stale_seconds is 29"),
        ({"log_retention_days": -1}, "log_retention_days is -1"),
        ({"max_widgets": 1}, "unknown setting 'max_widgets'"),
        ({"unknown": 1}, "unknown setting 'unknown'"),
        ({"stale_seconds": 100}, "a session would be hung after 600 s, stale after 100 s"),
        ({"hung_seconds": 200}, "a session would be hung after 200 s"),
    ],
)
def test_what_is_refused(settings: dict[str, Value], message: str) -> None:
    """A value that a setting cannot have changes nothing, also not the others of the same call."""
    harness = RuleHarness()
    with pytest.raises(Invalid) as refused:
        harness.run(ChangeSettings({"log_retention_entries": 5, **settings}, "p"))
    assert refused.value.message.startswith(message)
    assert refused.value.hint
    assert harness.keys() == []


def test_thresholds_change_together() -> None:
    """An order that holds only for all three is accepted in one call."""
    harness = RuleHarness()
    harness.run(ChangeSettings({"suspect_seconds": 700, "stale_seconds": 800, "hung_seconds": 900}, "p"))
    assert shown(harness)["suspect_seconds"].value == 700
