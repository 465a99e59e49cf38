"""All followers by name; each is imported when it runs."""

from importlib import import_module

from coord.core.errors import NotFound
from coord.core.ids import short_repr
from coord.followers.follower import Follower

FOLLOWERS: dict[str, str] = {
    "metrics": "coord.followers.metrics.follower:MetricsFollower",
    "mirror-contract": "coord.followers.mirrors.mirror:ContractMirror",
    "mirror-claude-coord": "coord.followers.mirrors.mirror:ClaudeCoordMirror",
    "mirror-agent-claims": "coord.followers.mirrors.mirror:AgentClaimsMirror",
    "alerts": "coord.followers.alerts:AlertsFollower",
    "reactions": "coord.followers.reactions.follower:Reactions",
    "page": "coord.followers.past_states:PastStatesFollower",
    "traces": "coord.followers.traces.follower:Traces",
}
"""The class of each follower, as `module:class`."""


def all_followers() -> list[type[Follower]]:
    """Return every follower."""
    return [follower_class(name) for name in FOLLOWERS]


def follower_class(name: str) -> type[Follower]:
    """Return a follower by its name."""
    target = FOLLOWERS.get(name)
    if target is None:
        known = ", ".join(FOLLOWERS)
        raise NotFound(f"there is no follower {short_repr(name)}", hint=f"use one of {known}")
    module, _, kind = target.partition(":")
    found: type[Follower] = getattr(import_module(module), kind)
    return found
