"""Mutants of sessions: identity, parents, takeover."""

from tests.mutation.mutant import Mutant

MUTANTS = [
    Mutant(
        "a session is an ancestor of its parent",
        "coord.core.sessions.identify:_check_parent",
        "name in above",
        "False",
        ("tests/unit/core/sessions/test_identify.py::test_nobody_is_above_its_own_parent",),
    ),
    Mutant(
        "a successor's locks have another fence",
        "coord.core.lifecycle.takeover:_move_lock",
        "read_lock(tx, lock_at.key)",
        "lock_at.lock",
        ("tests/unit/core/lifecycle/test_takeover.py::test_clear_keeps_the_fence",),
    ),
    Mutant(
        "an unrelated process may use a session",
        "coord.core.sessions.identify:find_session",
        "process is not None and not _may_act_for(tx, nearest, caller)",
        "False",
        ("tests/unit/core/sessions/test_identify.py::test_impostor",),
    ),
    Mutant(
        "two processes share a session",
        "coord.core.sessions.identify:find_session",
        "_own_or_duplicate_id(tx, caller, now)",
        "caller.session",
        ("tests/unit/core/sessions/test_identify.py::test_twin",),
    ),
    Mutant(
        "a dead session continues",
        "coord.core.sessions.identify:ensure_session",
        'session is not None and session.end_reason == "dead"',
        "False",
        ("tests/unit/core/lifecycle/test_register.py::test_dead_session_must_register",),
    ),
    Mutant(
        "every heartbeat is written",
        "coord.core.sessions.identify:ensure_session",
        "now - session.beat_ms < HEARTBEAT_QUIET_MS and process == session.process",
        "False",
        ("tests/unit/core/sessions/test_update.py::test_heartbeats_are_coalesced",),
    ),
    Mutant(
        "the last place for an agent is given twice",
        "coord.core.sessions.agent_limit:count_agent",
        "len(others) >= limit",
        "len(others) > limit",
        ("tests/unit/core/sessions/test_agent_limit.py::test_one_above_the_limit_is_refused",),
    ),
    Mutant(
        "agents that begin at once do not see each other",
        "coord.core.sessions.agent_limit:count_agent",
        "tx.put(key, msgspec.structs.replace(record, sessions=counted))",
        "pass",
        ("tests/unit/core/sessions/test_agent_limit.py::test_two_that_begin_at_once_conflict",),
    ),
    Mutant(
        "a hung session that coord did not start may be ended",
        "coord.core.lifecycle.register:register",
        "if command.runner:",
        "if True:",
        ("tests/unit/core/lifecycle/test_hung.py",),
    ),
    Mutant(
        "a hang is reported with every sweep",
        "coord.core.lifecycle.hung:report_hang",
        "hung_beat_ms=session.beat_ms",
        "hung_beat_ms=0",
        ("tests/unit/core/lifecycle/test_hung.py",),
    ),
]
