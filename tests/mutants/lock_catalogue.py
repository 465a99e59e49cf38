"""The mutants of sessions, locks and messages; what notices them is mostly one unit test."""

from tests.mutants.mutant import Mutant

LOCK, LINE, ACQUIRE, DEADLOCK = (
    "core/locks/locks.py",
    "core/locks/wait_queue.py",
    "core/locks/acquire.py",
    "core/locks/deadlock.py",
)
HOLDING, REVOKE, RESOURCE, REPLACE = (
    "core/locks/release.py",
    "core/locks/revoke.py",
    "core/locks/resources.py",
    "core/lifecycle/takeover.py",
)
SESSION, MESSAGE, KEYS, LOCK_SWEEP = (
    "core/sessions/session.py",
    "core/messages/message.py",
    "core/keys.py",
    "core/lifecycle/deadlines.py",
)
PROCESS, PLACE, PATH = "host/processes.py", "host/store_location.py", "host/paths.py"
HELD, LOCKS, MIGRATE, GUARD = (
    "sdk/client/blocks.py",
    "sdk/client/locks.py",
    "sdk/admin/migrate.py",
    "transports/cli/handlers/guard.py",
)


def rule(name: str) -> tuple[str, ...]:
    """A test of the rules of locks."""
    return (f"tests/unit/core/locks/test_acquire.py::test_{name}",)


def single(name: str) -> tuple[str, ...]:
    """A test of single files beside globs."""
    return (f"tests/unit/core/locks/test_resources.py::test_{name}",)


def circle(name: str) -> tuple[str, ...]:
    """A test of deadlocks."""
    return (f"tests/unit/core/locks/test_deadlock.py::test_{name}",)


def session(name: str) -> tuple[str, ...]:
    """A test of the rules of sessions."""
    return (f"tests/unit/core/sessions/test_identify.py::test_{name}",)


def message(name: str) -> tuple[str, ...]:
    """A test of the rules of messages."""
    return (f"tests/unit/core/messages/test_send.py::test_{name}",)


def found(name: str) -> tuple[str, ...]:
    """A test of what the simulation has found."""
    return (f"tests/simulation/test_lock_found.py::test_{name}",)


def on_memory(file: str, name: str) -> tuple[str, ...]:
    """A test that runs on every store, on the fastest of them."""
    return (f"tests/{file}.py", "-k", f"{name} and memory")


EXCLUSION = [
    Mutant(
        "a reader lets everybody in",
        LOCK,
        "return one is Mode.READ and other is Mode.READ\n",
        "return one is Mode.READ or other is Mode.READ\n",
        rule("modes"),
    ),
    Mutant(
        "overlap is decided by the text",
        RESOURCE,
        "        return overlaps(self.pattern, other.pattern)\n",
        "        return self.place == other.place\n",
        on_memory("scenarios/test_scn_file_locks", "scn_46"),
    ),
    Mutant(
        "a glob refuses files that it does not match",
        RESOURCE,
        "        if self.alone and not other.pattern.literal:\n",
        "        if False:\n",
        single("glob_and_file"),
    ),
    Mutant(
        "a widened lock is not judged",
        LINE,
        "or widens(own, resource)\n",
        "or False\n",
        single("widening_is_judged_anew"),
    ),
    Mutant(
        "a holder that widens goes ahead of those in line",
        ACQUIRE,
        " or widens(hold, resource):\n            return False\n    return True",
        ":\n            return False\n    return True",
        single("holder_that_widens_waits_its_turn"),
    ),
    Mutant(
        "a widened lock is judged by what is asked for, not by what it becomes",
        LINE,
        "    return both, mode if own.mode is Mode.READ else own.mode\n",
        "    return both, mode\n",
        single("widening_is_judged_by_what_it_becomes"),
    ),
    Mutant(
        "a fence proves nothing after its lock was widened",
        LINE,
        "        tell_end(view, key, Grant(hold=before, until_ms=now, ending=Ending.RELEASED), now)\n",
        "        pass\n",
        single("fence_of_before_a_widening_stays_proven"),
    ),
    Mutant(
        "a folder is taken for a file",
        "sdk/client/connection.py",
        "alone = os.path.isfile(",
        "alone = os.path.exists(",
        ("tests/unit/sdk/client/test_locks.py", "-k", "beside_a_glob"),
    ),
    Mutant(
        "names are compared as they are spelled",
        RESOURCE,
        "escaped = fold(normal).replace",
        "escaped = normal.casefold().replace",
        rule("names_are_one_in_all_spellings"),
    ),
    Mutant(
        "a parent's lock stands in its child's way",
        LOCK,
        "        and standing.hold.owner not in asker.above\n",
        "",
        rule("sub_agent_under_its_parents_lock"),
    ),
    Mutant(
        "siblings do not exclude each other",
        LOCK,
        "        and standing.hold.owner not in asker.above\n",
        "        and not {standing.hold.owner, standing.hold.under} & {*asker.above}\n",
        rule("sub_agent_under_its_parents_lock"),
    ),
    Mutant(
        "a child's lock outlives its parent's",
        LOCK,
        "    if owner is None or owner.children:\n",
        "    if False:\n",
        rule("sub_agent_under_its_parents_lock"),
    ),
    Mutant(
        "a session is above its own parent",
        SESSION,
        "    if name in above:\n",
        "    if False:\n",
        session("nobody_is_above_its_own_parent"),
    ),
    Mutant(
        "the guard is not put",
        LOCK,
        "    view.put_late(resource.guard, ",
        "    dict().setdefault(resource.guard, ",
        rule("records_per_operation"),
    ),
    Mutant(
        "a free way does not rest on the guard",
        HOLDING,
        "        view.get(asked.guard, Guard)  # a free way rests on absence\n",
        "",
        rule("answers_rest_on_the_guard"),
    ),
    Mutant(
        "a refused release does not rest on the guard",
        HOLDING,
        "        view.get(resource.guard, Guard)  # the refusal rests on absence\n",
        "",
        rule("answers_rest_on_the_guard"),
    ),
    Mutant(
        "only the first resource has to be free",
        LINE,
        "    for resource, mode in would_hold(view, request, now):\n        for standing in in_the_way(",
        "    for resource, mode in would_hold(view, request, now)[:1]:\n        for standing in in_the_way(",
        rule("all_or_nothing"),
    ),
]

PROOF = [
    Mutant(
        "an earlier fence renews and releases",
        HOLDING,
        "    if fence and fence != hold.fence:\n",
        "    if False:\n",
        rule("earlier_fence_proves_nothing"),
    ),
    Mutant(
        "an earlier fence passes a check",
        HOLDING,
        "own is not None and own.fence == command.fence and",
        "own is not None and",
        rule("earlier_fence_proves_nothing"),
    ),
    Mutant(
        "a lease that ran out is renewed",
        HOLDING,
        "    if ended_by_time(hold, now) is not None:\n        raise LockLost(",
        "    if False:\n        raise LockLost(",
        found("a_lease_that_ran_out_proves_nothing_although_nobody_wrote_it_down"),
    ),
    Mutant(
        "who was asked to give way renews",
        HOLDING,
        "        if hold.preempted_by:\n",
        "        if False:\n",
        rule("preempted_lock_is_revoked_after_the_grace"),
    ),
    Mutant(
        "a successor's locks have another fence",
        REPLACE,
        '    hold = read_hold(view, standing.key)\n    assert hold is not None, f"{standing.key} was just',
        '    hold = standing.hold\n    assert hold is not None, f"{standing.key} was just',
        session("clear_keeps_the_fence"),
    ),
    Mutant(
        "a block does not raise what it lost",
        HELD,
        "        if not failed:\n            self.check()\n",
        "",
        on_memory("scenarios/test_case_held_block", "raises_what_it_lost"),
    ),
    Mutant(
        "guard does not give back",
        GUARD,
        "            held.end(failed=True)\n",
        "            pass\n",
        ("tests/unit/transports/cli/handlers/test_guard.py", "-k", "held_while_the_command_runs"),
    ),
]

WAITING = [
    Mutant(
        "a hand-off never lapses",
        LOCK,
        "    if hold.provisional:\n        return Ending.LAPSED\n",
        "    if hold.provisional:\n        return None\n",
        rule("hand_off_lapses_unless_confirmed"),
    ),
    Mutant(
        "a hand-off passes over what has expired",
        LINE,
        "expired += end_expired(view, (one for one, _ in would_hold(view, request, now)), now)\n",
        "pass\n",
        found("a_hand_off_ends_the_expired_hold_that_it_passes_over"),
    ),
    Mutant(
        "what was handed over goes to the dead",
        LINE,
        "        elif not alive(view, request, now):\n",
        "        elif False:\n",
        found("nothing_is_handed_to_a_session_that_is_proven_dead"),
    ),
    Mutant(
        "priority counts for nothing in line",
        LINE,
        "return max(0, request.since_ms - AGING_MS * request.priority)\n",
        "return max(0, request.since_ms)\n",
        rule("line_goes_by_priority_then_age"),
    ),
    Mutant(
        "who waits does not age",
        LINE,
        "return max(0, request.since_ms - AGING_MS * request.priority)\n",
        "return max(0, request.since_ms - AGING_MS * 1000 * request.priority)\n",
        rule("line_goes_by_priority_then_age"),
    ),
    Mutant(
        "whoever can goes past those ahead",
        LINE,
        "elif any(competes(request, other) for other in ahead) or blockers(",
        "elif blockers(",
        rule("nobody_overtakes_who_is_ahead"),
    ),
    Mutant(
        "who does not wait goes past those who do",
        ACQUIRE,
        "ahead = [] if _extends(view, request, now) else _ahead(view, key, request)\n",
        "ahead = [] if request.bid or _extends(view, request, now) else _ahead(view, key, request)\n",
        rule("nobody_overtakes_who_is_ahead"),
    ),
    Mutant(
        "bids are without number",
        ACQUIRE,
        "    if before is None and waits is not None and len(waits.keys) >= WAITS_MAX:\n",
        "    if False:\n",
        rule("bids_are_bounded"),
    ),
    Mutant(
        "whom a commit had no room for waits for ever",
        ACQUIRE,
        "            serve(view, resources_of(request), now)  # it was passed over",
        "            pass  # it was passed over",
        rule("giving_back_never_fails_for_those_in_line"),
    ),
    Mutant(
        "a release grants more than a commit can hold",
        LINE,
        "        if view.size > room:\n            break\n",
        "",
        rule("giving_back_never_fails_for_those_in_line"),
    ),
    Mutant(
        "in a busy store nobody looks at the deadline",
        LOCKS,
        "if due or not changed or",
        "if not changed or",
        ("tests/scenarios/test_case_held_block.py", "-k", "however_busy"),
    ),
]

DEADLOCKS = [
    Mutant(
        "no circle is looked for",
        ACQUIRE,
        "    _break_deadlocks(view, Waiting(key, request), now)\n    return _state(",
        "    return _state(",
        circle("ring_of_waits"),
    ),
    Mutant(
        "the costliest gives way",
        DEADLOCK,
        "    return min(range(len(circle)), key=cost)\n",
        "    return max(range(len(circle)), key=cost)\n",
        circle("lowest_priority_gives_way"),
    ),
    Mutant(
        "a circle with bids is broken at once",
        DEADLOCK,
        "    if bids and not (told",
        "    if False and not (told",
        circle("bids_are_told_at_once_and_revoked_late"),
    ),
    Mutant(
        "a bid that was given up costs the victim its lock",
        DEADLOCK,
        "    return all(bid.renewed_ms > since_ms for bid in bids)\n",
        "    return True\n",
        circle("bid_that_was_not_renewed_saves_the_victim"),
    ),
    Mutant(
        "bids are not followed",
        DEADLOCK,
        "        if not circle and passed_over:\n",
        "        if False:\n",
        circle("bids_are_told_at_once_and_revoked_late"),
    ),
    Mutant(
        "a place in line is not waited for",
        DEADLOCK,
        "        found += [other.session for _, other in ahead if competes(request, other)]\n",
        "",
        circle("place_in_line_closes_a_circle"),
    ),
    Mutant(
        "the victim keeps what the others need",
        DEADLOCK,
        "    for standing in needed.values():\n        freed +=",
        "    for standing in ():\n        freed +=",
        circle("ring_of_waits"),
    ),
]

LIFE = [
    Mutant(
        "unknown is dead",
        LOCK,
        "    if evidence is not None and evidence.life is Life.DEAD:\n",
        "    if evidence is not None and evidence.life is not Life.ALIVE:\n",
        session("unknown_is_not_dead"),
    ),
    Mutant(
        "a pid that was given away again is the old process",
        PROCESS,
        "    if stat.start != process.start:\n",
        "    if False:\n",
        ("tests/unit/host/test_processes.py", "-k", "given_away_again"),
    ),
    Mutant(
        "a pid of another boot proves something",
        PROCESS,
        "(process.machine, process.boot, process.namespace)",
        "(process.machine, here.boot, process.namespace)",
        ("tests/unit/host/test_processes.py", "-k", "from_elsewhere"),
    ),
    Mutant(
        "impostors are believed",
        SESSION,
        "    if process is not None and not _related(view, nearest, caller):\n",
        "    if False:\n",
        session("impostor"),
    ),
    Mutant(
        "two processes share a session",
        SESSION,
        "    return _twin(view, caller, now)\n",
        "    return caller.session\n",
        session("twin"),
    ),
    Mutant(
        "the dead go on",
        SESSION,
        '    if session is not None and session.ending == "dead":\n',
        "    if False:\n",
        session("dead_session_must_register"),
    ),
    Mutant(
        "every heartbeat is written",
        SESSION,
        "    if now - session.beat_ms < BEAT_QUIET_MS and process == session.process:\n",
        "    if False:\n",
        session("heartbeats_are_coalesced"),
    ),
]

TAKING = [
    Mutant(
        "a lock is stolen from one who was just heard of",
        REVOKE,
        "    if not (gone or dead or silent_ms >= STALE_MS):\n",
        "    if False:\n",
        rule("strict_steal"),
    ),
    Mutant(
        "a lock is stolen before its lease is over",
        REVOKE,
        "    if now < hold.expires_ms:\n",
        "    if False:\n",
        rule("strict_steal"),
    ),
    Mutant(
        "a young lock is stolen",
        REVOKE,
        "    if now < hold.acquired_ms + STEAL_AGE_MS:\n",
        "    if False:\n",
        rule("strict_steal"),
    ),
    Mutant(
        "a death that is not proven suffices for a theft",
        REVOKE,
        "        if gone or dead:\n",
        "        if True:\n",
        rule("steal_from_a_dead_owner"),
    ),
    Mutant(
        "force needs no reason",
        REVOKE,
        "    if command.force and not command.reason:\n",
        "    if False:\n",
        rule("steal_by_force_is_audited"),
    ),
    Mutant(
        "equal priority preempts",
        REVOKE,
        "            if hold.priority >= command.priority:\n",
        "            if hold.priority > command.priority:\n",
        rule("preempt_needs_a_higher_priority"),
    ),
]

MESSAGES = [
    Mutant(
        "the tenth message comes before the second",
        KEYS,
        'return f"inbox/{session_id}/{number:012d}"\n',
        'return f"inbox/{session_id}/{number}"\n',
        message("order"),
    ),
    Mutant(
        "an acknowledged message comes again",
        MESSAGE,
        "            _deliver(view, *by_id.pop(name), session)\n",
        "            by_id.pop(name)\n",
        message("ack_ends_a_message"),
    ),
    Mutant(
        "an offered message is lost",
        MESSAGE,
        "now >= message.offered_ms + OFFER_MS",
        "not message.offered_ms",
        message("ack_ends_a_message"),
    ),
    Mutant(
        "an unread message vanishes",
        LOCK_SWEEP,
        '    return_message(view, key, "nobody read it in time", now)\n',
        "    view.delete(key)\n",
        message("unread_message_comes_back"),
    ),
    Mutant(
        "whoever likes floods the others",
        MESSAGE,
        "    if sent > RATE_MAX or broadcasts > RATE_BROADCASTS_MAX:\n",
        "    if False:\n",
        message("rate"),
    ),
    Mutant(
        "answers to answers never end",
        MESSAGE,
        "    if hops > HOPS_MAX:\n",
        "    if False:\n",
        message("hops"),
    ),
    Mutant(
        "a broadcast that found no room is lost",
        MESSAGE,
        "            seen = number - 1\n",
        "",
        message("heavy_inbox_is_read_in_portions"),
    ),
]

WHERE = [
    Mutant(
        "two stores for one repository",
        PLACE,
        "        if not _same_store(first_url, url):\n",
        "        if False:\n",
        ("tests/unit/host/test_store_location.py", "-k", "later_disagreement"),
    ),
    Mutant(
        "a vanished store is made anew",
        PLACE,
        "    if place.pinned and not store_present(place):\n",
        "    if False:\n",
        ("tests/unit/host/test_store_location.py", "-k", "vanished_store"),
    ),
    Mutant(
        "a symlink may lead out and back",
        PATH,
        "        _check_link(repository, link, text)\n    if links:\n",
        "        pass\n    if links:\n",
        ("tests/unit/host/test_paths.py", "-k", "coming_back"),
    ),
    Mutant(
        "the old store takes commits while it is copied",
        MIGRATE,
        "            self._from.shut(_writable(self._target.url), self._target.store_id)\n",
        "",
        ("tests/unit/sdk/admin/test_migrate.py", "-k", "all_of_it_is_there and sqlite and not postgres"),
    ),
    Mutant(
        "a copy is not compared",
        MIGRATE,
        "            if _summed(self._target, tenant).value != whole.value:\n",
        "            if False:\n",
        ("tests/unit/sdk/admin/test_migrate.py", "-k", "copy_that_differs"),
    ),
]

LOCK_MUTANTS = [*EXCLUSION, *PROOF, *WAITING, *DEADLOCKS, *LIFE, *TAKING, *MESSAGES, *WHERE]
