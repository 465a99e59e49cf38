"""Mutants of the brief: what it says, what it hides, and when it is told."""

from tests.mutation.mutant import Mutant

TEXT = "tests/unit/sdk/brief/test_plain_text.py"
BLOCK = "tests/unit/sdk/brief/test_crew_update.py"
BRIEF = "tests/unit/core/brief/test_brief.py"
CREW = "tests/unit/core/brief/test_crew.py"
NEWS = "tests/unit/core/locks/test_tool_calls_news.py"
HOOK = "tests/unit/integrations/hooks/awareness/test_briefing.py"

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
    Mutant(
        "own changes count as news",
        "coord.core.sessions.changes:changes_by_others",
        "record.others if record.by == session else record.changes",
        "record.changes",
        (f"{NEWS}::test_one_agent_alone_never_has_news",),
    ),
    Mutant(
        "own changes hide those of others",
        "coord.core.sessions.changes:next_change",
        "before.others if before.by == session else before.changes",
        "before.others",
        (f"{NEWS}::test_own_changes_between_those_of_others_hide_nothing",),
    ),
    Mutant(
        "an agent is briefed with every call",
        "coord.core.locks.tool_calls:_look_for_news",
        "now - max(session.briefed_ms, session.seen_ms) < every_ms",
        "False",
        (f"{NEWS}::test_rapid_changes_are_gathered",),
    ),
    Mutant(
        "several calls get the same news",
        "coord.core.locks.tool_calls:_look_for_news",
        "if (locks, crew) == session.seen:",
        "if False:",
        (f"{NEWS}::test_who_comes_and_goes_is_news",),
    ),
    Mutant(
        "news of a killed hook is lost",
        "coord.core.locks.tool_calls:_look_for_news",
        "if delivered or now < session.seen_ms + OFFER_MS:",
        "if True:",
        (f"{NEWS}::test_news_that_was_not_delivered_is_given_again",),
    ),
    Mutant(
        "the end of a call conflicts with every lock of others",
        "coord.core.locks.tool_calls:_look_for_news",
        "tx.peek(counted[0], Guard)",
        "tx.get(counted[0], Guard)",
        (f"{NEWS}::test_a_call_without_news_writes_and_reads_as_little_as_before",),
    ),
    Mutant(
        "a brief from before the compaction counts after it",
        "coord.core.brief.delivery:record_brief",
        "if session.epoch != command.epoch:",
        "if False:",
        ("tests/unit/core/brief/test_delivery.py::test_a_brief_of_an_earlier_epoch_does_not_count",),
    ),
    Mutant(
        "one compaction counts several times",
        "coord.core.brief.delivery:begin_epoch",
        "if command.mark and mark == session.epoch_mark:",
        "if False:",
        (f"{HOOK}::test_gemini_reads_everything_again_after_its_transcript_shows_a_compaction",),
    ),
    Mutant(
        "unchanged facts are told again",
        "coord.integrations.hooks.awareness.briefing:brief_of_news",
        "if brief.digest == ended.briefed:",
        "if False:",
        (f"{HOOK}::test_what_comes_and_goes_unseen_is_not_told",),
    ),
    Mutant(
        "an agent and its sub-agents are told of each other",
        "coord.integrations.hooks.awareness.briefing:brief_of_news",
        "if not brief.company and not ended.briefed:",
        "if False:",
        (f"{HOOK}::test_one_agent_alone_reads_nothing",),
    ),
    Mutant(
        "a brief that fails stops the call",
        "coord.integrations.hooks.awareness.briefing:brief_at_start",
        "except CoordError:",
        "except ZeroDivisionError:",
        (f"{HOOK}::test_a_brief_that_cannot_be_read_stops_no_call",),
    ),
    Mutant(
        "a crashed agent is shown at work",
        "coord.core.brief.crew:read_crew",
        "evidence.get(name)",
        "None",
        (f"{CREW}::test_a_silent_agent_whose_process_is_gone_has_crashed",),
    ),
    Mutant(
        "any file gets before an agent",
        "coord.integrations.hooks.awareness.briefing:worker_context",
        'text.strip() if text.startswith(CONTEXT_BEGINS) else ""',
        "text.strip()",
        (f"{HOOK}::test_a_worker_of_coord_reads_its_context_at_its_start",),
    ),
]
