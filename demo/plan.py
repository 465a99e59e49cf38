"""The cast: the agents, and for some tasks of `plan.yaml` the accident of the first worker on it."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

TENANT = "local"
PROJECT = "shop"
PLAN_FILE = Path(__file__).with_name("plan.yaml")
HOT_FILE = "file:src/app.py"

KINDS = {
    "coder": ("code_gen", "testing", "review", "api"),
    "reviewer": ("review", "doc", "script", "code_gen"),
    "integrator": ("api", "testing", "doc", "script"),
}
"""By kind of agent: the types of task it takes. Two kinds take each type, so every agent is replaceable."""
AGENTS = {
    "ada": "coder",
    "bela": "coder",
    "cleo": "reviewer",
    "dov": "reviewer",
    "ezra": "integrator",
    "fay": "integrator",
}


class Pace(NamedTuple):
    """How fast the agents work."""

    factor: float
    lease_s: float
    half_s: tuple[float, float]
    """Half of the work on a task takes about this long; the lease is renewed between the halves."""


def pace_of(factor: float) -> Pace:
    """Return a pace; with 1 a run takes a quarter of a minute, with 5 a minute."""
    return Pace(factor, 2.0 * factor, (0.2 * factor, 0.5 * factor))


class Fate(StrEnum):
    """The accident of the first worker that is half-way through a task."""

    KILLED_WORKING = "killed while working"
    KILLED_SUBMITTING = "killed while submitting"
    FROZEN_UNTIL_TAKEN = "frozen until another holds its task"
    FROZEN_UNTIL_DONE = "frozen until another has finished its task"
    HOLDS_HOT_FILE = "waits until somebody waits for its file"
    MEETS = "waits for the one it will block"

    @property
    def freezes(self) -> bool:
        return self in (Fate.FROZEN_UNTIL_TAKEN, Fate.FROZEN_UNTIL_DONE)

    @property
    def kills(self) -> bool:
        return self in (Fate.KILLED_WORKING, Fate.KILLED_SUBMITTING)


# Some agent must stay awake to take over the tasks of the frozen ones. So two of the four freezes come only
# after the other two have ended, because their tasks depend on those; and MEETS keeps one agent waiting until
# the other one arrives.
FATES = {
    "A-002-settings": Fate.KILLED_WORKING,
    "B-004-migrations": Fate.KILLED_SUBMITTING,
    "B-005-load-test": Fate.KILLED_WORKING,
    "C-004-api-tests": Fate.KILLED_WORKING,
    "A-003-sessions": Fate.FROZEN_UNTIL_TAKEN,
    "B-001-schema": Fate.FROZEN_UNTIL_DONE,
    "C-002-payment": Fate.FROZEN_UNTIL_TAKEN,
    "D-003-basket": Fate.FROZEN_UNTIL_DONE,
    "C-001-endpoints": Fate.HOLDS_HOT_FILE,
    "A-004-plugins": Fate.MEETS,
    "B-003-prices": Fate.MEETS,
}


def sessions(name: str) -> Iterator[str]:
    """Yield the session ids of an agent and of its replacements: ada-1, ada-2, …"""
    number = 0
    while True:
        number += 1
        yield f"{name}-{number}"
