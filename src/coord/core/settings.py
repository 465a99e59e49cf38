"""The settings of a store: values that every process of a tenant agrees on.

Two records hold them. `settings` belongs to the tenant, also to tenant `local`. `count/agents/<project>`
holds `max_agents` of a project, beside the sessions that it counts. A rule reads a record only where its
value can matter, so a plain lock or claim reads neither.
"""

from typing import NamedTuple

import msgspec

from coord.core import keys
from coord.core.commands import Command, Reply
from coord.core.errors import Invalid
from coord.core.events import Event
from coord.core.ids import short_repr
from coord.core.records import Stored
from coord.core.transaction import Transaction

AGENTS_MAX = 20
"""The largest `max_agents`: more agents in one repository wait for each other most of the time."""
DEFAULT = "default"
"""The value that takes a setting back to its default."""
UNLIMITED = "unlimited"
YEAR_S = 366 * 24 * 3600

Value = int | str


class Settings(Stored, frozen=True, tag=1):
    """What a tenant has set; a value that is 0 or empty is switched off."""

    project_lock_nesting: str = "off"
    steal_policy: str = "strict"
    suspect_seconds: int = 120
    stale_seconds: int = 300
    hung_seconds: int = 600
    progress_timeout_seconds: int = 0
    log_retention_days: int = 90
    log_retention_entries: int = 1_000_000
    alert_stuck_seconds: int = 600
    alert_prompting_seconds: int = 1800
    alert_context_percent: int = 85
    alert_context_critical_percent: int = 95
    alert_duplicate_seconds: int = 60
    alert_idle_seconds: int = 120
    alert_decision_seconds: int = 600


class ProjectAgents(Stored, frozen=True, tag=1):
    """How many agents a project may have, and the sessions that are counted (None: not counted yet)."""

    max_agents: int = 0
    sessions: tuple[str, ...] | None = None


STOPPED = "stopped"
"""The mode in which agents get no lock either."""


class HeldWork(Stored, frozen=True, tag=1):
    """Who pauses, drains or stops all agents (`work_mode.py`); there is no record while they go on."""

    mode: str
    reason: str = ""
    by: str = ""
    since_ms: int = 0


class Setting(NamedTuple):
    """The values that a setting may have, and its reason."""

    because: str
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0


SETTINGS = {
    "max_agents": Setting("agents of a project do not overwhelm its machine", (), 1, AGENTS_MAX),
    "project_lock_nesting": Setting("whether a project's lock covers its areas", ("off", "on")),
    "steal_policy": Setting("when a lock may be stolen", ("strict", "dead_or_expired")),
    "suspect_seconds": Setting("a session silent for this time is suspect", (), 30, YEAR_S),
    "stale_seconds": Setting("a session silent for this time is stale", (), 30, YEAR_S),
    "hung_seconds": Setting("a session silent for this time is hung", (), 30, YEAR_S),
    "progress_timeout_seconds": Setting(
        "a lock that blocks others ends after this time without progress (0: never)", (), 0, YEAR_S
    ),
    "log_retention_days": Setting("older log entries are trimmed (0: never)", (), 0, 36_600),
    "log_retention_entries": Setting("more log entries are trimmed (0: never)", (), 0, 2**53 - 1),
    "alert_stuck_seconds": Setting("an agent without activity is stuck (0: no alert)", (), 0, YEAR_S),
    "alert_prompting_seconds": Setting("a model call or a tool call may take this long", (), 60, YEAR_S),
    "alert_context_percent": Setting("a context this full is a warning (0: no alert)", (), 0, 100),
    "alert_context_critical_percent": Setting("a context this full is critical", (), 1, 100),
    "alert_duplicate_seconds": Setting("agents want one file for this time (0: no alert)", (), 0, YEAR_S),
    "alert_idle_seconds": Setting("an agent is idle beside ready tasks (0: no alert)", (), 0, YEAR_S),
    "alert_decision_seconds": Setting("a question waits for a person (0: no alert)", (), 0, YEAR_S),
}
"""Every setting by name; `max_agents` belongs to a project, the others to the tenant."""


class SettingInfo(Reply, frozen=True):
    """A setting; `source` is `store`, `environment` or `default`.

    Its value is one of `choices`, or a whole number from `low` to `high`.
    """

    name: str
    value: Value
    default: Value
    source: str
    because: str
    project: str = ""
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0


class GetSettings(Command, frozen=True):
    """Return the settings; `max_agents` is what the environment of the caller says, or 0."""

    rule = "coord.core.settings:get_settings"
    reply = list[SettingInfo]
    reads_only = True
    project: str
    max_agents: int = 0


class ChangeSettings(Command, frozen=True):
    """Change the named settings; the value `default` resets one."""

    rule = "coord.core.settings:change_settings"
    reply = list[SettingInfo]
    settings: dict[str, Value]
    project: str = ""
    by: str = ""


class SettingsChanged(Event, frozen=True, tag="settings.changed"):
    """Settings of the tenant or of a project were changed; these are the new values."""

    settings: dict[str, Value]
    project: str = ""
    by: str = ""


_DEFAULTS = Settings()


def settings_of(tx: Transaction) -> Settings:
    """Return the settings of the tenant."""
    return tx.get(keys.SETTINGS, Settings) or _DEFAULTS


def held_work(tx: Transaction, *, person: bool = False) -> HeldWork | None:
    """Return what holds up a session that asks for something new; a person is never held up."""
    return None if person else tx.get(keys.HELD_WORK, HeldWork)


def check_setting(name: str, value: Value) -> Value:
    """Return the value of a setting; refuse an unknown name and a value that it cannot have."""
    if name not in SETTINGS:
        raise Invalid(f"unknown setting {short_repr(name)}", hint=f"the settings are {', '.join(SETTINGS)}")
    known = SETTINGS[name]
    if value == DEFAULT:
        return DEFAULT
    if known.choices:
        if value not in known.choices:
            raise Invalid(
                f"{name} is {short_repr(value)}", hint=f"use {' or '.join(known.choices)}, or {DEFAULT}"
            )
        return value
    if type(value) is not int or not known.low <= value <= known.high:
        raise Invalid(
            f"{name} is {short_repr(value)}",
            hint=f"use a whole number from {known.low} to {known.high}, or {DEFAULT}",
        )
    return value


def change_settings(tx: Transaction, command: ChangeSettings, _now: int) -> list[SettingInfo]:
    """Change the named settings; the event says who did it."""
    wanted = {name: check_setting(name, value) for name, value in command.settings.items()}
    agents = wanted.pop("max_agents", None)
    if agents is not None:
        _set_max_agents(tx, command.project, agents, command.by)
    current = settings_of(tx)
    named = {name: getattr(_DEFAULTS, name) if value == DEFAULT else value for name, value in wanted.items()}
    changed = msgspec.structs.replace(current, **named)
    if not changed.suspect_seconds <= changed.stale_seconds <= changed.hung_seconds:
        raise Invalid(
            f"a session would be hung after {changed.hung_seconds} s, stale after {changed.stale_seconds} s "
            f"and suspect after {changed.suspect_seconds} s",
            hint="suspect comes first and hung last; set them in one call",
        )
    if changed != current:
        tx.put(keys.SETTINGS, changed)
        tx.emit(SettingsChanged(named, "", command.by))
    return get_settings(tx, GetSettings(command.project), _now)


def _set_max_agents(tx: Transaction, project: str, value: Value, by: str) -> None:
    if not project:
        raise Invalid("max_agents belongs to a project", hint="name it with --project")
    key, number = keys.count_agents(project), value if isinstance(value, int) else 0
    current = tx.get(key, ProjectAgents) or ProjectAgents()
    if number == current.max_agents:
        return
    tx.put(key, msgspec.structs.replace(current, max_agents=number))
    tx.emit(SettingsChanged({"max_agents": number or UNLIMITED}, project, by))


def get_settings(tx: Transaction, command: GetSettings, _now: int) -> list[SettingInfo]:
    """Return every setting with its value, its default, its source and its reason."""
    tx.prefetch(keys.SETTINGS, keys.count_agents(command.project))
    settings = settings_of(tx)
    agents = (tx.get(keys.count_agents(command.project), ProjectAgents) or ProjectAgents()).max_agents
    source = "store" if agents else "environment" if command.max_agents else "default"
    value = agents or command.max_agents or UNLIMITED
    shown = [_info("max_agents", value, UNLIMITED, source, command.project)]
    for name in Settings.__struct_fields__:
        if name in SETTINGS:
            own, default = getattr(settings, name), getattr(_DEFAULTS, name)
            shown.append(_info(name, own, default, "default" if own == default else "store"))
    return shown


def _info(name: str, value: Value, default: Value, source: str, project: str = "") -> SettingInfo:
    because, choices, low, high = SETTINGS[name]
    return SettingInfo(name, value, default, source, because, project, choices, low, high)
