"""The mutants of plans, queue, tracks and tries; what notices them is mostly one unit test."""

from tests.mutants.mutant import Mutant

GRAPH, QUEUE, PLAN, WORK = (
    "core/tasks/dependencies.py",
    "core/plans/queue.py",
    "core/plans/plan.py",
    "core/tasks/planned.py",
)
NOTHING = "core/plans/idle.py"
SPEC, TASK, SWEEP, DRAFT = "core/tasks/spec.py", "core/tasks/claims.py", "core/sweep.py", "engine/batch.py"


def rule(name: str) -> tuple[str, ...]:
    """A test of the rules of work."""
    return (f"tests/unit/core/tasks/test_planned.py::test_{name}",)


def several(name: str) -> tuple[str, ...]:
    """A test of taking several tasks in one step."""
    return (f"tests/unit/core/plans/test_queue_several.py::test_{name}",)


def lock(name: str) -> tuple[str, ...]:
    """A test of the locks that come with a claim."""
    return (f"tests/unit/core/plans/test_queue_locks.py::test_{name}",)


DEPENDENCIES = [
    Mutant(
        "a task is not told that it is followed",
        GRAPH,
        "msgspec.structs.replace(spec, followed=True)",
        "spec",
        rule("what_depends_on_something_waits_for_all_of_it"),
    ),
    Mutant(
        "only the first follower of a task is told by its record",
        GRAPH,
        "if not spec.followed or spec_key not in view.writes:",
        "if not spec.followed:",
        (
            "tests/unit/core/tasks/test_dependencies.py::test_a_follower_that_is_added_meanwhile_is_not_forgotten",
        ),
    ),
    Mutant(
        "a task that is changed forgets that it is followed",
        PLAN,
        '"parts", "followed", "unknown")',
        '"parts", "unknown")',
        rule("a_task_that_is_changed_still_knows_that_it_is_followed"),
    ),
    Mutant(
        "one dependency is enough",
        GRAPH,
        "all(state in FINISHED for state in states)",
        "any(state in FINISHED for state in states)",
        rule("what_depends_on_something_waits_for_all_of_it"),
    ),
    Mutant(
        "what was skipped is waited for",
        GRAPH,
        "FINISHED = (TaskStatus.DONE, TaskStatus.SKIPPED)",
        "FINISHED = (TaskStatus.DONE,)",
        rule("what_depends_on_something_waits_for_all_of_it"),
    ),
    Mutant(
        "a task added late waits for ever",
        PLAN,
        "replace(task, state=state_by_dependencies(view, project, new.task_id, spec))",
        "replace(task, state=TaskStatus.PENDING)",
        rule("a_task_added_after_its_dependencies_is_ready"),
    ),
    Mutant(
        "a failure blocks nobody",
        GRAPH,
        "    if any(state in STUCK for state in states):\n        return TaskStatus.BLOCKED\n",
        "",
        rule("what_failed_blocks_all_below_it_until_it_is_retried"),
    ),
    Mutant(
        "a failure blocks only the next",
        GRAPH,
        "STUCK = (TaskStatus.FAILED, TaskStatus.ERRORED, TaskStatus.BLOCKED)",
        "STUCK = (TaskStatus.FAILED, TaskStatus.ERRORED)",
        rule("what_failed_blocks_all_below_it_until_it_is_retried"),
    ),
    Mutant(
        "what runs is pushed back",
        GRAPH,
        "task.state not in WAITING or task.retry_ms",
        "task.state in FINISHED or task.retry_ms",
        rule("work_that_runs_is_not_pushed_back"),
    ),
    Mutant(
        "what is given back is ready whatever it waits for",
        WORK,
        "    state = state_by_dependencies(view, project, task_id, spec)\n"
        "    put_free(view, project, task_id, msgspec.structs.replace(task, state=state))\n",
        "    state = READY\n"
        "    put_free(view, project, task_id, msgspec.structs.replace(task, state=state))\n",
        rule("work_that_runs_is_not_pushed_back"),
    ),
    Mutant(
        "what comes back blocked blocks nobody",
        WORK,
        "    if state is TaskStatus.BLOCKED:  # while",
        "    if False:  # while",
        rule("what_is_given_back_behind_a_failure_blocks_what_waits_for_it"),
    ),
    Mutant(
        "a reset withdraws only what one step can",
        GRAPH,
        "if _states(view, project, (task_id,))[0] not in (*FINISHED, *STUCK):",
        "if False:",
        rule("a_reset_withdraws_everything_that_waits_for_it_at_once"),
    ),
    Mutant(
        "a reset withdraws nothing",
        WORK,
        "    settle(view, project, task_id, now)\n    settle_followers(view, project, task_id, now)\n",
        "    settle(view, project, task_id, now)\n",
        rule("a_reset_withdraws_everything_that_waits_for_it_at_once"),
    ),
    Mutant(
        "the rest of the followers is forgotten",
        GRAPH,
        "        view.put(key, msgspec.structs.replace(before, tasks=tasks), keys.due(0))\n",
        "        assert key and tasks\n",
        rule("many_followers_are_settled_in_steps"),
    ),
    Mutant(
        "the sweep does not go on",
        SWEEP,
        '    "unsettled": "tasks.dependencies.settle_rest",\n',
        "",
        rule("a_long_chain_is_settled_in_steps"),
    ),
    Mutant(
        "the step goes on after the first page of followers",
        GRAPH,
        '    return Range(prefix, "key", PAGE, ("", prefix + after) if after else ("", ""))\n',
        '    return Range(prefix, "key", PAGE, ("", ""))\n',
        rule("many_followers_are_settled_in_steps"),
    ),
    Mutant(
        "what is finished between two looks is taken for a deadlock",
        NOTHING,
        'was finished just now", True',
        'was finished just now", False',
        ("tests/unit/core/plans/test_idle.py",),
    ),
    Mutant(
        "half-settled work looks like the end",
        NOTHING,
        'is looked at now")\n        look_ms = now\n',
        'is looked at now")\n        look_ms, told = now, []\n',
        rule("many_followers_are_settled_in_steps"),
    ),
    Mutant(
        "a circle of old tasks is not seen",
        PLAN,
        "    if before is None and task.task_id not in fresh:\n        return\n",
        "    if task.task_id not in fresh:\n        return\n",
        rule("a_circle_is_named_by_its_path"),
    ),
    Mutant(
        "a dropped dependency stays in the index",
        GRAPH,
        "    if state is task.state and parts_done == task.parts_done:\n        return False\n",
        "    if state is TaskStatus.READY and task.state is TaskStatus.READY:\n"
        "        state = TaskStatus.BLOCKED\n",
        rule("a_dependency_that_is_dropped_is_waited_for_no_more"),
        also=(
            PLAN,
            "            view.delete(keys.dependent(project, name, task_id))\n",
            "            pass\n",
        ),
    ),
]

TURNS = [
    Mutant(
        "priority counts for nothing",
        SPEC,
        "spec.created_ms - PRIORITY_STEP_MS * spec.priority",
        "spec.created_ms",
        rule("turns_are_by_priority_that_ages_then_by_age"),
    ),
    Mutant(
        "priority does not age",
        SPEC,
        "max(0, spec.created_ms - PRIORITY_STEP_MS * spec.priority)",
        "max(0, 10**12 - PRIORITY_STEP_MS * spec.priority)",
        (
            "tests/unit/core/plans/test_queue_fairness.py::test_a_stream_of_urgent_work_does_not_starve_the_rest",
        ),
    ),
    Mutant(
        "each of many who ask for work reads the store",
        QUEUE,
        "    ahead = min(view.crowd, FURTHER) // share\n",
        "    ahead = 0\n",
        ("tests/contract/test_costs.py::test_many_next_tasks_in_one_batch",),
    ),
    Mutant(
        "tasks whose files meet are taken in one step",
        QUEUE,
        "        locked += [request] if request is not None else []\n",
        "",
        several("each_claim_of_a_step_has_locks_of_its_own"),
    ),
    Mutant(
        "a step gives more than was asked for",
        QUEUE,
        "        if len(taken) == command.most:\n            break\n",
        "",
        several("several_at_once_are_recorded_as_one_by_one"),
    ),
    Mutant(
        "a limit takes back what a step has claimed",
        QUEUE,
        "            return taken or [reply]\n",
        "            return [reply]\n",
        several("a_limit_ends_a_step"),
    ),
    Mutant(
        "who takes several does not spread",
        QUEUE,
        "for candidate in heads) // most\n",
        "for candidate in heads) * (most == 1)\n",
        ("tests/unit/core/plans/test_queue_spread.py",),
    ),
    Mutant(
        "the locks of a later claim have no fence",
        "core/replies.py",
        "        more = [each.settled(offset) for each in self.more]\n",
        "        more = self.more\n",
        several("each_claim_of_a_step_has_locks_of_its_own"),
    ),
    Mutant(
        "a class goes before another",
        QUEUE,
        "    merged = merge(*(",
        "    merged = chain(*(",
        rule("classes_share_one_order"),
        also=(QUEUE, "from heapq import merge\n", "from itertools import chain\n"),
    ),
    Mutant(
        "what an agent lacks does not matter",
        QUEUE,
        "    return set(kind.needs) <= has and kind.type not in unable\n",
        "    return kind.type not in unable\n",
        rule("an_agent_gets_what_it_is_able_to_do"),
    ),
    Mutant(
        "an agent is given every type",
        QUEUE,
        "((command.types, kind.type), ",
        "(",
        rule("an_agent_gets_what_it_is_able_to_do"),
    ),
    Mutant(
        "only the head of a line is looked at",
        QUEUE,
        "LOOKED_AT = 1000\n",
        "LOOKED_AT = 1\n",
        rule("a_task_far_behind_a_hot_file_is_found"),
    ),
    Mutant(
        "files that others hold are no reason to wait",
        QUEUE,
        "                held[files] = _held_by(view, request, now)[1]\n",
        '                held[files] = ""\n',
        rule("a_task_far_behind_a_hot_file_is_found"),
    ),
    Mutant(
        "files of one name are one file, whatever repository they are in",
        QUEUE,
        "files = request.resources, request.repository, request.alone",
        "files = (request.resources,)",
        several("files_of_one_name_in_two_repositories_are_two_files"),
    ),
    Mutant(
        "what is worked on is not seen to move",
        WORK,
        "    view.put_marker(keys.working(project, task_id))\n",
        "",
        rule("which_nothing_there_is"),
        also=(
            NOTHING,
            '        return f"{task_id} is worked on by {task.agent or task.session}", True\n',
            '        return "", False\n',
        ),
    ),
    Mutant(
        "nobody says when to look again",
        NOTHING,
        "        look_ms = max(now, min(look_ms, due_ms or look_ms))\n",
        "",
        rule("which_nothing_there_is"),
    ),
    Mutant(
        "stuck is taken for done",
        NOTHING,
        "    if not names:\n        return NextTask(Runnable.DONE)\n",
        "    if names:\n        return NextTask(Runnable.DONE)\n",
        rule("which_nothing_there_is"),
    ),
]

TRACKS = [
    Mutant(
        "a track is never full",
        WORK,
        "len(agents) < record.agents_max",
        "record.agents_max",
        rule("a_track_has_one_agent_unless_said"),
    ),
    Mutant(
        "an agent leaves a track with its first task",
        WORK,
        "name: record.agents.get(name, 0) + by}",
        "name: by}",
        rule("a_track_has_one_agent_unless_said"),
    ),
    Mutant(
        "a task changes its track alone",
        PLAN,
        "            move_work(view, project, new.task_id, stored, task)\n",
        "            pass\n",
        rule("a_task_that_changes_its_track_takes_its_agent_along"),
    ),
    Mutant(
        "an agent is counted on the new track and the old",
        WORK,
        "    if before.planned and before.track:\n",
        "    if not before.planned:\n",
        rule("a_task_that_changes_its_track_takes_its_agent_along"),
    ),
]

TRIES = [
    Mutant(
        "tried for ever",
        WORK,
        "if retries > spec.retries_max:",
        "if retries > 100:",
        rule("a_failure_pauses_longer_each_time_and_then_needs_a_person"),
    ),
    Mutant(
        "every pause is as long as the first",
        WORK,
        "RETRY_MS * 4 ** (retries - 1)",
        "RETRY_MS",
        rule("a_failure_pauses_longer_each_time_and_then_needs_a_person"),
    ),
    Mutant(
        "a retry keeps the count of tries",
        PLAN,
        "replace(task, state=state, retries=0, retry_ms=0)",
        "replace(task, state=state, retry_ms=0)",
        rule("a_failure_pauses_longer_each_time_and_then_needs_a_person"),
    ),
    Mutant(
        "a pause ends for nobody",
        TASK,
        "        work.end_pause(view, which.project, which.task, stored, now)\n",
        "        pass\n",
        rule("which_nothing_there_is"),
    ),
    Mutant(
        "a lost worker's task is tried for ever",
        WORK,
        "    retries = task.retries + 1\n",
        "    retries = task.retries + pause\n",
        rule("a_lease_that_ran_out_counts_as_a_try"),
    ),
    Mutant(
        "a lease that ran out is a way around the dependencies",
        TASK,
        "        expire(view, TaskCommand(command.tenant, project, task_id), now)\n"
        "        stored = view.get(task_key, Task) or UNCLAIMED  # its dependencies may have changed\n",
        "        stored = as_of(stored, now)\n",
        rule("a_claim_by_name_respects_what_became_of_the_dependencies"),
    ),
    Mutant(
        "a skip leaves the claim standing",
        PLAN,
        "        expire(view, msgspec.structs.replace(command, task=name), now)\n"
        "        worked_on = planned(view, command.project, name)[1]\n",
        "        worked_on = as_of(planned(view, command.project, name)[1], now)\n",
        rule("a_skip_ends_a_claim_that_ran_out_unnoticed"),
    ),
    Mutant(
        "the locks of a claim outlive it",
        WORK,
        "        freed += end_hold(view, Standing(key, hold, resource_of(hold)), ending, now)\n",
        "        freed += []\n",
        lock("a_claim_locks_its_files_until_it_ends"),
    ),
    Mutant(
        "a batch hands out one task twice",
        DRAFT,
        "            if key not in written and key not in own:\n",
        "            if key not in own:\n",
        rule("a_batch_gives_each_task_once"),
        also=(DRAFT, "records[place].key in written:\n", "records[place].key in own:\n"),
    ),
    Mutant(
        "a batch forgets what it made ready",
        DRAFT,
        "        places += self._places.within(range_, start, self._written, own)\n",
        "",
        rule("a_batch_gives_each_task_once"),
    ),
]

PLAN_MUTANTS = [*DEPENDENCIES, *TURNS, *TRACKS, *TRIES]
