"""Mutants of the activity ledger: what is an action, whose, and how far back."""

from tests.mutation.mutant import Mutant

ACTIONS = "tests/unit/core/activity/test_actions.py"
LEDGER = "tests/unit/sdk/reports/test_ledger.py"
HTTP = "tests/unit/transports/hub/api/test_activity.py"

MUTANTS = [
    Mutant(
        "every session that begins counts as a sub-agent",
        "coord.core.activity.actions:Action.matches",
        "bool(value)",
        "True",
        (f"{ACTIONS}::test_an_event_becomes_an_action",),
    ),
    Mutant(
        "a session that deregisters counts as terminated",
        "coord.core.activity.actions:Action.matches",
        "value in self.values if self.values else bool(value)",
        "bool(value)",
        (f"{ACTIONS}::test_an_event_becomes_an_action",),
    ),
    Mutant(
        "a message to several names the first as its recipient",
        "coord.core.activity.actions:_recipient",
        "len(value) == 1",
        "len(value)",
        (f"{ACTIONS}::test_an_action_names_the_one_that_it_concerns",),
    ),
    Mutant(
        "the ledger has no end",
        "coord.sdk.reports.ledger:Ledger._backwards",
        "left -= 1",
        "pass",
        (f"{LEDGER}::test_the_ledger_ends_after_its_entries",),
    ),
    Mutant(
        "a question about the last hour reads the whole log",
        "coord.sdk.reports.ledger:Ledger._backwards",
        "entry.at < since_ms",
        "False",
        (f"{LEDGER}::test_only_the_end_of_a_long_log_is_read",),
    ),
    Mutant(
        "a token of a project sees the actions of others",
        "coord.sdk.reports.ledger:Ledger._backwards",
        "self._is_visible(logged.details)",
        "True",
        (f"{HTTP}::test_a_token_of_a_project_sees_only_its_events",),
    ),
]
