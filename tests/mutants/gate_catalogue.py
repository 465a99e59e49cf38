"""The mutants of what the gates of git rest on."""

from tests.mutants.mutant import Mutant

FENCE = "core/locks/queries.py"


def rule(name: str) -> tuple[str, ...]:
    """A test of the rule about fences."""
    return (f"tests/unit/core/locks/test_queries.py::test_{name}",)


GATE_MUTANTS = [
    Mutant(
        "a lock that ran out counts for ever",
        FENCE,
        "IN_ORDER = (Ending.RELEASED, Ending.SESSION_ENDED)\n",
        "IN_ORDER = tuple(Ending)\n",
        rule("lost_lock_that_another_had_since_is_superseded"),
    ),
    Mutant(
        "whoever came and went is forgotten",
        FENCE,
        "if grant is not None and resource.meets(resource_of(grant.hold)):\n",
        "if False:\n",
        rule("lost_lock_that_another_had_since_is_superseded"),
    ),
    Mutant(
        "a holder that died is taken for one that holds",
        FENCE,
        "ended_by_time(hold, now) or (death[0] if death else None)\n",
        "ended_by_time(hold, now)\n",
        rule("dead_and_stolen"),
    ),
    Mutant(
        "what cannot be looked through is fine",
        FENCE,
        '            yield Hold(owner="somebody", fence=fence + 1)\n',
        "",
        rule("work_is_bounded"),
    ),
]
