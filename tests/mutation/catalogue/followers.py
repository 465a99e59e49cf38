"""Mutants of followers: each entry counts once, and one process has effects."""

from tests.mutation.mutant import SOON, Mutant

CORE = "tests/unit/core/test_followers.py"
FOLLOW = "tests/unit/transports/cli/handlers/awareness/test_follow.py"
CATCH_UP = "tests/unit/followers/test_catch_up.py"
HUB = "tests/unit/transports/hub/followers/test_run.py"
RUNNER = "tests/unit/followers/test_runner.py"

MUTANTS = [
    Mutant(
        "a follower goes back",
        "coord.core.followers:save_follower",
        "same or command.offset < before.offset",
        "False",
        (f"{CORE}::test_state_and_offset_are_one_record_that_only_moves_forwards",),
    ),
    Mutant(
        "two processes run one follower",
        "coord.core.followers:lead_follower",
        'before.runner not in ("", command.runner) and now < before.until_ms and not _has_died(tx, before)',
        "False",
        (f"{CORE}::test_one_process_runs_a_follower_until_its_lease_ends",),
    ),
    Mutant(
        "a process that lost its lease saves",
        "coord.core.followers:save_follower",
        "_check_runner(command.name, before, command.runner, now)",
        "pass",
        (f"{CORE}::test_one_process_runs_a_follower_until_its_lease_ends",),
    ),
    Mutant(
        "an entry counts again",
        "coord.followers.runner:FollowerRun.feed",
        "entry.offset <= self.offset",
        "False",
        (f"{RUNNER}::test_a_follower_that_fails_is_alone",),
    ),
    Mutant(
        "a follower that failed keeps what it half counted",
        "coord.followers.runner:FollowerRun.fail",
        "self.ready, self.failure = False, error",
        "self.failure = error",
        (f"{RUNNER}::test_a_follower_that_fails_is_alone",),
    ),
    Mutant(
        "every commit of a follower causes another one",
        "coord.followers.runner:FollowerRun.feed",
        "self._unsaved += len(events)",
        "self._unsaved += 1",
        (f"{RUNNER}::test_a_state_is_saved_after_many_events_or_some_time",),
    ),
    Mutant(
        "a hub shows the saved offset of a follower for what it has read",
        "coord.transports.hub.followers.run:LogFollowers.positions",
        "offset=offset, missed",
        "missed",
        (
            "tests/unit/transports/hub/followers/test_run.py::test_the_hub_says_what_its_followers_have_read",
            SOON,
        ),
    ),
    Mutant(
        "followers read while whoever committed waits for the answer",
        "coord.transports.hub.followers.run:HubFollowers._run",
        "asyncio.timeout(PAUSE_S)",
        "asyncio.timeout(0)",
        (f"{HUB}::test_whoever_commits_is_answered_before_the_followers_read",),
    ),
    Mutant(
        "a busy log is saved with each page",
        "coord.followers.runner:FollowerRun.act",
        "now >= self._pause_until_ms",
        "True",
        (f"{RUNNER}::test_a_busy_log_is_saved_at_most_once_a_second",),
    ),
    Mutant(
        "trimmed entries are not counted as missed",
        "coord.followers.runner:FollowerRun.skip_to",
        "self.missed += first - 1 - self.offset",
        "pass",
        (f"{RUNNER}::test_entries_trimmed_unread_are_counted_as_missed",),
    ),
    Mutant(
        "a follower far behind does not know it",
        "coord.followers.runner:Runner.step",
        "self.behind = len(page) == PAGE_ENTRIES",
        "pass",
        (f"{CATCH_UP}::test_one_that_is_killed_on_its_way_goes_on_from_the_last_save",),
    ),
    Mutant(
        "a follower keeps all pages that it has read",
        "coord.followers.runner:Runner._feed",
        "for entry in page:",
        "self.__dict__.setdefault('read', []).append(page)\n        for entry in page:",
        (f"{CATCH_UP}::test_a_follower_far_behind_catches_up_while_agents_commit",),
    ),
    Mutant(
        "a follower is computed again from a state with a gap behind it",
        "coord.core.followers:_begins",
        "state.offset >= first - 1",
        "True",
        (f"{CORE}::test_a_trimmed_log_is_read_again_from_the_oldest_state_without_a_gap",),
    ),
    Mutant(
        "a state of another version is computed further",
        "coord.core.followers:_begins",
        "state.version == version",
        "True",
        (f"{CORE}::test_a_state_of_another_version_is_no_beginning",),
    ),
    Mutant(
        "counters fall when they are computed again after a trim",
        "coord.transports.cli.handlers.awareness.follow:_rebuild",
        "first = first_offset(client.log)",
        "first = 0",
        (f"{FOLLOW}::test_rebuilding_gives_the_same_bytes_also_after_a_trim",),
    ),
    Mutant(
        "no older state is kept",
        "coord.followers.runner:FollowerRun.save",
        "0 if follower.starts_at_present else first_offset(self._source.log)",
        "0",
        ("tests/contract/test_followers.py", "-k", "trimmed and memory"),
    ),
    Mutant(
        "rebuilding forgets which reactions were performed",
        "coord.transports.cli.handlers.awareness.follow:_rebuild",
        "if kind.starts_at_present:",
        "if False:",
        (f"{FOLLOW}::test_a_state_that_says_what_was_done_is_kept",),
    ),
]
