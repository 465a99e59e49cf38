"""Mutants of the brief: what it says, what it hides, and when it is told."""

from tests.mutation.mutant import Mutant

TEXT = "tests/unit/sdk/brief/test_plain_text.py"
BLOCK = "tests/unit/sdk/brief/test_crew_update.py"
BRIEF = "tests/unit/core/brief/test_brief.py"
CREW = "tests/unit/core/brief/test_crew.py"

MUTANTS = [
    Mutant(
        "a text closes the block that it stands in",
        "coord.sdk.brief.plain_text:one_line",
        "text.translate(_REPLACED)",
        "text",
        (f"{TEXT}::test_a_field_is_one_harmless_line",),
    ),
    Mutant(
        "a text imitates the fields around it",
        "coord.sdk.brief.plain_text:field",
        "quote(shown)",
        "shown",
        (f"{TEXT}::test_text_that_could_imitate_a_field_is_quoted",),
    ),
    Mutant(
        "secrets are told to every agent",
        "coord.sdk.brief.plain_text:field",
        "without_secrets(one_line(text[: 4 * limit]))",
        "one_line(text[: 4 * limit])",
        (f"{TEXT}::test_secrets_are_removed",),
    ),
    Mutant(
        "a block is longer than it may be",
        "coord.sdk.brief.crew_update:_fitting",
        "over > 0 and len(section.lines) > minimum",
        "False",
        (f"{BLOCK}::test_a_block_is_short_and_whole_whatever_there_is_to_say",),
    ),
    Mutant(
        "holders of locks are cut before idle agents",
        "coord.sdk.brief.crew_update:_interest",
        "return not member.locked_files,",
        "return False,",
        (f"{BLOCK}::test_idle_agents_are_cut_first_and_holders_last",),
    ),
    Mutant(
        "agents of other projects are shown",
        "coord.core.brief.crew:_works_here",
        "return session.project == project or",
        "return True or",
        (f"{CREW}::test_other_projects_of_the_store_are_left_out",),
    ),
    Mutant(
        "locks that have expired are shown",
        "coord.core.brief.crew:_locks",
        "and ended_by_time(lock, now) is None",
        "",
        (f"{CREW}::test_an_expired_lock_is_not_shown",),
    ),
    Mutant(
        "very many locks of one agent hide those of others",
        "coord.core.brief.crew:_locks",
        "if len(found) < READ_MAX:",
        "if True:",
        (f"{CREW}::test_many_locks_are_read_agent_by_agent",),
    ),
    Mutant(
        "a change that nobody has to know counts as news",
        "coord.core.brief.brief:_digest",
        'member.state if member.state == "blocked" or is_terminal(member.state) else ""',
        "member.session.beat_ms",
        (f"{BRIEF}::test_the_digest_changes_with_facts_and_not_with_time",),
    ),
]
