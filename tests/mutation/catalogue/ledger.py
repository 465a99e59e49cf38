"""Mutants of the activity ledger: what is an action, whose, and how far back."""

from tests.mutation.mutant import Mutant

ACTIONS = "tests/unit/core/activity/test_actions.py"
LEDGER = "tests/unit/sdk/reports/test_ledger.py"
EDITS = "tests/unit/core/locks/test_tool_calls_edits.py"
HOOKS = "tests/unit/integrations/hooks/awareness/test_edits.py"
VIEW = "tests/contract/test_activity_view.py"
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
    Mutant(
        "each edit of a file is logged",
        "coord.core.locks.tool_calls:_log_edits",
        " and file not in logged",
        "",
        (f"{EDITS}::test_a_busy_session_does_not_flood_the_log",),
    ),
    Mutant(
        "an edited file is logged once and never again",
        "coord.core.locks.tool_calls:_log_edits",
        "if 0 <= now - at < EDIT_QUIET_MS",
        "",
        (f"{EDITS}::test_a_busy_session_does_not_flood_the_log",),
    ),
    Mutant(
        "a call that changed a thousand files logs a thousand events",
        "coord.core.locks.tool_calls:_log_edits",
        "new[:EDITS_MAX]",
        "new",
        (f"{EDITS}::test_a_call_that_changed_everything_is_one_number",),
    ),
    Mutant(
        "a session remembers all files that it edited",
        "coord.core.locks.tool_calls:_log_edits",
        "[-EDITS_KEPT:]",
        "",
        (f"{EDITS}::test_what_a_session_remembers_is_bounded_and_short",),
    ),
    Mutant(
        "an edit that failed is in the ledger",
        "coord.integrations.hooks.handler:HookHandler._observe_after",
        "not shell and not self.event.failed",
        "not shell",
        (f"{HOOKS}::test_a_refused_or_failed_edit_is_not_in_the_ledger",),
    ),
    Mutant(
        "what a program changed is not in the ledger",
        "coord.integrations.shell_effects.compare:ShellCall._report_changes",
        "self.edited = [names[path] for path in locked]",
        "pass",
        (f"{HOOKS}::test_what_a_shell_changed_is_in_the_ledger",),
    ),
    Mutant(
        "the view of somebody else is replaced",
        "coord.stores.mysql.views:renew_views",
        'not (taken and each.startswith(f"{CREATE} {name} "))',
        "True",
        (f"{VIEW}::test_a_table_of_somebody_else_stays",),
    ),
    Mutant(
        "SQL shows every event of a kind as the action",
        "coord.stores.sql_views:ActivityDialect.matches",
        "THEN {value} <> ''",
        "THEN 1 = 1",
        (f"{VIEW}::test_sql_shows_what_the_ledger_shows", "-k", "sqlite"),
    ),
    Mutant(
        "a SQLite file never gets the view",
        "coord.sdk.admin.install:prepare",
        "database.install_views()",
        "pass",
        (f"{VIEW}::test_a_file_gets_the_view_when_somebody_asks_for_it",),
    ),
]
