"""Mutants of why something waits and of the layout of a plan: no reason is missing, no task drawn twice."""

from tests.mutation.mutant import Mutant

_WHY = "tests/unit/core/why"
_LAYOUT = "tests/unit/core/page/test_layout.py"
_TASKS = "coord.core.why.tasks"

MUTANTS = [
    Mutant(
        "who waits for a task names it to readers of other projects",
        "coord.core.locks.cycles:_known_blockers",
        "waiting.request.project != project",
        "False",
        ("tests/unit/core/plans/test_waits.py::test_a_reader_of_another_project_learns_no_task",),
    ),
    Mutant(
        "locks that have ended hide a live one",
        "coord.core.why.locks:_live",
        "if ended_by_time(lock_at.lock, now) is None",
        "",
        (f"{_WHY}/test_locks.py::test_locks_that_have_ended_hide_no_live_one",),
    ),
    Mutant(
        "who waits for another file seems to wait for this one",
        "coord.core.why.locks:why_lock",
        "if any(each.overlaps(other) for each in resources for other in resources_of(request))",
        "",
        (f"{_WHY}/test_locks.py::test_who_waits_for_a_part_of_it_or_for_more_is_named",),
    ),
    Mutant(
        "a chain of waits ends at the first holder",
        "coord.core.why.chain:Chain._explain_blocker",
        "if not self.explain_session(name, depth + 1) and",
        "if",
        (f"{_WHY}/test_chain.py::test_a_chain_of_waits_ends_at_the_question_that_a_person_has_to_answer",),
    ),
    Mutant(
        "a lock is taken although an answer would free it",
        "coord.core.why.chain:Chain.reply",
        "min(self._offers, default=None)",
        "max(self._offers, default=None)",
        (f"{_WHY}/test_chain.py::test_an_answer_comes_before_all_others_and_the_nearest_among_equals",),
    ),
    Mutant(
        "what two tasks wait for is explained twice",
        "coord.core.why.chain:Chain.follow",
        "not known and ",
        "",
        (f"{_WHY}/test_tasks.py::test_what_two_tasks_wait_for_is_explained_once",),
    ),
    Mutant(
        "a question of another project is quoted",
        "coord.core.why.chain:Chain._explain_question",
        'self._project in ("", question.project)',
        "True",
        (f"{_WHY}/test_chain.py::test_a_question_of_another_project_is_named_and_not_quoted",),
    ),
    Mutant(
        "a full track is no reason",
        f"{_TASKS}:_explain_ready",
        "if held or full:",
        "if held:",
        (f"{_WHY}/test_tasks.py::test_a_full_track_names_its_agents_and_can_be_widened",),
    ),
    Mutant(
        "a disabled agent seems to be free",
        f"{_TASKS}:_refusal",
        "if agent.blocked_reason:",
        "if False:",
        (f"{_WHY}/test_tasks.py::test_each_agent_is_asked_why_it_does_not_take_a_task",),
    ),
    Mutant(
        "an agent of another role seems to be free",
        f"{_TASKS}:_refusal",
        "and spec.role != agent.role",
        "and False",
        (f"{_WHY}/test_tasks.py::test_roles_and_other_work_keep_agents_from_a_task",),
    ),
    Mutant(
        "the limit of agents is no reason",
        f"{_TASKS}:_offer_more",
        "if record.max_agents and",
        "if False and",
        (f"{_WHY}/test_tasks.py::test_a_project_that_has_all_its_agents_may_get_one_more",),
    ),
    Mutant(
        "two tasks are drawn in one place",
        "coord.core.page.layout:_put_into_rows",
        "max(free + 1, wanted[name])",
        "wanted[name]",
        (f"{_LAYOUT}::test_each_task_has_a_place_of_its_own_and_edges_point_forwards",),
    ),
    Mutant(
        "a dependency points to the left",
        "coord.core.page.layout:_layers",
        "column[each] + 1 for",
        "column[each] for",
        (f"{_LAYOUT}::test_each_task_has_a_place_of_its_own_and_edges_point_forwards",),
    ),
]
