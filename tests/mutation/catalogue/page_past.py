"""Mutants of the page's past: what is kept, what an address means, and what had happened by then."""

from tests.mutation.mutant import SOON, Mutant, PageMutant

PAST = "tests/unit/sdk/page/test_past.py"
FOLLOWER = "tests/unit/followers/test_past_states.py"
REPORT = "tests/unit/transports/hub/page/test_report.py"
STATES = "tests/unit/sdk/page/test_kept_states.py"
KEPT = "coord.sdk.page.kept_states"
FOLDER = "coord.stores.local.safe_folder"
LEAPS = f"{PAST}::test_states_are_kept_and_found_where_offsets_leap"

MUTANTS = [
    Mutant(
        "a state after a leap is looked for without an end",
        "coord.sdk.page.past:PastStates.at",
        "state.offset in (before, offset)",
        "False",
        (LEAPS, SOON),
    ),
    Mutant(
        "no state is kept after a leap",
        "coord.sdk.page.past:PastStates.keep_next",
        "newest, EVERY",
        "last + EVERY",
        (LEAPS, SOON),
    ),
    Mutant(
        "a report counts offsets without an entry",
        "coord.transports.hub.page.report:read_run",
        "len(entries) > ENTRIES_MAX",
        "newest - base.offset > ENTRIES_MAX",
        (f"{REPORT}::test_a_report_counts_entries_where_offsets_leap",),
    ),
    Mutant(
        "a state of another log counts",
        "coord.sdk.page.past:PastStates._is_ours",
        "entry is None or (entry.offset, entry.at) != kept_at",
        "False",
        (f"{PAST}::test_a_damaged_and_a_foreign_state_do_not_count",),
    ),
    Mutant(
        "a damaged state is an empty one",
        "coord.sdk.page.past:PastStates._before",
        "None if oldest else PageState()",
        "PageState()",
        (f"{PAST}::test_a_damaged_and_a_foreign_state_do_not_count",),
    ),
    Mutant(
        "a state counts although entries after it are gone",
        "coord.sdk.page.past:PastStates._known",
        "each.offset >= first - 1 and ",
        "",
        (f"{PAST}::test_the_next_process_knows_what_was_kept_in_the_folder",),
    ),
    Mutant(
        "the newest states push out all early ones",
        f"{KEPT}:KeptStates.keep",
        "known[each + 1].offset - known[each - 1].offset",
        "each",
        (f"{PAST}::test_kept_states_stay_evenly_apart",),
    ),
    Mutant(
        "everybody may read what is kept",
        f"{FOLDER}:Folder._parent",
        "os.mkdir(part, FOLDER_MODE, dir_fd=opened)",
        "os.mkdir(part, dir_fd=opened)",
        (f"{PAST}::test_the_next_process_knows_what_was_kept_in_the_folder",),
    ),
    Mutant(
        "a store without a pin writes into a folder",
        f"{KEPT}:kept_states",
        " or not location.folder",
        "",
        (f"{PAST}::test_without_a_folder_states_stay_in_memory",),
    ),
    Mutant(
        "states are kept behind a link",
        f"{FOLDER}:_OPEN_FOLDER",
        "os.O_NOFOLLOW | ",
        "",
        (f"{STATES}::test_a_link_leads_nowhere",),
    ),
    Mutant(
        "states are kept where others may write",
        f"{FOLDER}:Folder._parent",
        "if private and ",
        "if False and ",
        (f"{STATES}::test_a_folder_that_is_open_to_others_is_not_used",),
    ),
    Mutant(
        "a folder of somebody else counts as private",
        f"{FOLDER}:_problem_of",
        "found.st_uid != os.geteuid()",
        "False",
        (f"{STATES}::test_a_folder_of_another_user_is_not_used",),
    ),
    Mutant(
        "a FIFO is a state",
        f"{FOLDER}:Folder.names",
        "(each.is_dir if folders else each.is_file)(follow_symlinks=False)",
        "True",
        (f"{STATES}::test_only_regular_files_are_states",),
    ),
    Mutant(
        "a file is unpacked whatever is in it",
        f"{KEPT}:StateFolder._get",
        'b"", STATE_BYTES_MAX)\n        if',
        'b"")\n        if',
        (f"{STATES}::test_a_small_file_with_much_in_it_is_not_unpacked",),
    ),
    Mutant(
        "files of others are removed",
        f"{KEPT}:_is_old",
        "bool(_DRAFT.fullmatch(name)) and ",
        "True or ",
        (f"{STATES}::test_names_that_are_not_of_states_are_left_alone",),
    ),
    Mutant(
        "a file that is being written is removed",
        f"{KEPT}:_is_old",
        " and _age_s(folder, name) > DRAFT_S",
        "",
        (f"{STATES}::test_what_killed_processes_left_is_removed",),
    ),
    Mutant(
        "a file that cannot be removed is read for ever",
        f"{KEPT}:StateFolder.known",
        " - self._stuck",
        "",
        (f"{STATES}::test_a_file_that_cannot_be_removed_is_not_offered_again",),
    ),
    Mutant(
        "a process that still has an earlier store removes the states of the present one",
        f"{KEPT}:StateFolder._clean",
        ' and _digest(f"{pin.store_id}\\n{pin.epoch}") == self._store',
        "",
        (f"{STATES}::test_states_of_a_store_that_the_pin_does_not_name_any_more_are_removed",),
    ),
    Mutant(
        "what is missing is made in one go",
        "coord.followers.past_states:PastStatesFollower.act",
        "now + PAUSE_MS if self.offset >= self._next else 0",
        "0",
        (f"{FOLLOWER}::test_what_is_missing_is_made_one_after_the_other",),
    ),
    Mutant(
        "every entry makes a state",
        "coord.sdk.page.past:PastStates.keep_next",
        "newest - last < EVERY",
        "newest == last",
        (f"{FOLLOWER}::test_a_state_is_kept_for_every_so_many_entries",),
    ),
    Mutant(
        "an earlier time counts its minute to the end",
        "coord.sdk.page.numbers:Counter.series",
        "if each < whole}",
        "if each <= whole}",
        ("tests/unit/sdk/page/test_numbers.py",),
    ),
    Mutant(
        "a trimmed log is reported as whole",
        "coord.transports.hub.page.report:read_run",
        "whole = past.knows(oldest)",
        "whole = True",
        (f"{REPORT}::test_a_report_of_a_trimmed_log_begins_where_the_log_begins",),
    ),
]
OF_PAGE = [
    PageMutant("garbage is an offset", "core/travel.js", "(\\d{1,15})$", "(.*)$", "travel"),
    PageMutant(
        "the nearest state passes for the one that was meant",
        "core/travel.js",
        "if (Number(offset) < first || ",
        "if (",
        "travel",
    ),
    PageMutant(
        "a hub that stops ends the play without a word",
        "core/travel.js",
        "if (run === this.run) this.fail(problem);",
        "",
        "travel",
    ),
    PageMutant(
        "a trimmed log is played no further",
        "core/travel.js",
        'if (problem.code === "trimmed") ',
        "if (false) ",
        "travel",
    ),
    PageMutant(
        "a step waits for what was asked before a jump",
        "core/travel.js",
        "    this.loading = null;\n    this.end",
        "    this.end",
        "travel",
    ),
    PageMutant(
        "a step applies entries of another moment",
        "core/travel.js",
        "if (this.found?.loading) return;",
        "",
        "travel",
    ),
    PageMutant(
        "a play goes on at another moment", "core/travel.js", "if (this.found.loading) return;", "", "travel"
    ),
    PageMutant(
        "another view asks for the moment once more",
        "core/store.js",
        "const text = at.value;",
        "const text = address.value.searchParams.get('at') ?? '';",
        "store",
    ),
    PageMutant(
        "a step back while it plays leads nowhere",
        "core/travel.js",
        "    this.halt();\n    this.ahead",
        "    this.pause();\n    this.ahead",
        "store",
    ),
    PageMutant(
        "a link from a play leads to an earlier moment",
        "core/store.js",
        "setQuery({at: found.at}, {soon});",
        "if (!soon) setQuery({at: found.at});",
        "store",
    ),
    PageMutant(
        "a report keeps the time of the past",
        "core/store.js",
        "if (isReport()) now.value = live.at;",
        "if (isReport()) return;",
        "store",
    ),
    PageMutant(
        "an empty moment stays in the address",
        "core/router.js",
        '  if (!url.searchParams.get("at")) url.searchParams.delete("at");\n',
        "",
        "store",
    ),
    PageMutant(
        "two pages answer each other without end",
        "core/store.js",
        "if (found.value === stored) return;",
        "if (stored === undefined) return;",
        "store",
    ),
    PageMutant("a jump keeps what was played", "core/travel.js", "passed: [], loading", "loading", "travel"),
    PageMutant(
        "activity shows what came later",
        "core/activity.js",
        "this.items.filter((item) => item.offset <= offset)",
        "this.items",
        "feeds",
    ),
    PageMutant(
        "a time before what is loaded shows what is loaded",
        "core/activity.js",
        " || offset < this.low",
        "",
        "feeds",
    ),
    PageMutant(
        "a text is shown before it was sent",
        "core/conversations.js",
        "    if (!found.has(message.id) && message.sent_ms >= before) continue;\n",
        "",
        "feeds",
    ),
    PageMutant(
        "the present outcome of an alert is that of then",
        "core/derive.js",
        "    if (!found.has(id)) found.set",
        "    found.set",
        "derive",
    ),
    PageMutant(
        "a claim has ended before its end",
        "core/plan.js",
        ' || (each.generation === task.generation && task.state !== "in_progress")',
        " || each.generation === task.generation",
        "plan",
    ),
    PageMutant(
        "a result is there before it came", "core/plan.js", "result?.submitted_ms <= at", "true", "plan"
    ),
    PageMutant(
        "a dependency of today is drawn into the past",
        "core/plan.js",
        " && found[other].depends_on?.includes(layout.task[one])",
        "",
        "plan",
    ),
    PageMutant(
        "the lane of a later track is drawn",
        "core/plan.js",
        "used = [...new Set(lane)].sort((one, other) => one - other)",
        "used = layout.lanes.map((_, at) => at)",
        "plan",
    ),
    PageMutant(
        "a cycle of waits has no end", "core/why.js", "!seen.has(key) && seen.add(key)", "true", "why"
    ),
    PageMutant(
        "a report counts the minute that goes on",
        "../static_report/answers.js",
        "if (entry.at >= ended) break;",
        "",
        "report",
    ),
    PageMutant(
        "the head of a report counts twice on the way back",
        "../static_report/count.js",
        "[next, totals, agents] = [0, {}, new Map()]",
        "[next, agents] = [0, new Map()]",
        "report",
    ),
]
