"""Mutants: one thing broken in the source each, and the tests that have to notice.

A mutant that no test notices means that the tests do not test it.
"""

from tests.mutants.effect_catalogue import EFFECT_MUTANTS
from tests.mutants.gate_catalogue import GATE_MUTANTS
from tests.mutants.git_catalogue import GIT_MUTANTS
from tests.mutants.hook_catalogue import HOOK_MUTANTS
from tests.mutants.lock_catalogue import LOCK_MUTANTS
from tests.mutants.merge_catalogue import MERGE_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.nats_catalogue import NATS_MUTANTS
from tests.mutants.plan_catalogue import PLAN_MUTANTS
from tests.mutants.redis_catalogue import REDIS_MUTANTS
from tests.mutants.result_catalogue import RESULT_MUTANTS
from tests.mutants.tenant_catalogue import TENANT_MUTANTS
from tests.mutants.work_catalogue import WORK_MUTANTS


def seeds(*numbers: int) -> tuple[str, ...]:
    """Some seeds of the simulation."""
    return tuple(f"tests/simulation/test_simulation.py::test_seed[{number}]" for number in numbers)


STORM = seeds(*range(1, 13))
FOUND, OUTCOMES = "tests/simulation/test_found.py", "tests/unit/engine/test_commit.py"

TASK, RESULT, LIMITS = "core/tasks/claims.py", "core/tasks/results.py", "core/limits.py"
HISTORY, SWEEP, RESET = "core/tasks/queries.py", "core/sweep.py", "core/tasks/reset.py"
ENGINE, DRAFT, SETTLE, DONE = (
    "engine/engine.py",
    "engine/batch.py",
    "engine/commit.py",
    "engine/idempotency.py",
)
FOLD, LOG_STORE, SQLITE, STORE = (
    "stores/log/state.py",
    "stores/log/store.py",
    "stores/sqlite/store.py",
    "stores/contract.py",
)
FILE_LAYER, FILE_LOG, POSTGRES = (
    "stores/files/io.py",
    "stores/files/log.py",
    "stores/postgres/table_statements.py",
)
POSTGRES_LOG, POSTGRES_LOG_SQL = "stores/postgres/log_store.py", "stores/postgres/log_statements.py"
MYSQL = "stores/mysql/statements.py"
CLOCK = "engine/clock.py"

COUNTED_SYNCS = ("tests/contract/test_costs.py", "-k", "syncs_of_stores and files")

RULES = [
    Mutant(
        "a stale result is judged like a current one",
        RESULT,
        "if command.generation < task.generation:\n",
        "if False:\n",
        STORM,
    ),
    Mutant(
        "anybody hands in a result under the current generation",
        RESULT,
        "if command.session != task.session:\n",
        "if False:\n",
        STORM,
    ),
    Mutant(
        "a finished task takes a second result",
        RESULT,
        "    if done:\n        return SubmissionReason.TASK_ALREADY_COMPLETED\n",
        "",
        STORM,
    ),
    Mutant(
        "an earlier generation renews and releases",
        TASK,
        "if command.generation != task.generation:\n",
        "if False:\n",
        STORM,
    ),
    Mutant(
        "anybody renews and releases",
        TASK,
        "if command.session != task.session:\n",
        "if False:\n",
        STORM,
    ),
    Mutant(
        "a lease never runs out",
        "core/tasks/schema.py",
        "if task.claim is not ACTIVE or now < task.expires_ms:\n        return task\n",
        "if True:\n        return task\n",
        STORM,
    ),
    Mutant(
        "an active claim does not stand in the way",
        TASK,
        "if stored.claim is ACTIVE and now < stored.expires_ms and not command.force:\n",
        "if False:\n",
        STORM,
    ),
    Mutant(
        "a claim that ran out stands in the way for ever",
        TASK,
        "if stored.claim is ACTIVE and now < stored.expires_ms and not command.force:\n",
        "if stored.claim is ACTIVE and not command.force:\n",
        STORM,
    ),
    Mutant(
        "a finished task is claimed again",
        TASK,
        "if stored.state is DONE:\n",
        "if False:\n",
        STORM,
    ),
    Mutant(
        "a renewal does not begin the lease anew",
        TASK,
        "task = msgspec.structs.replace(stored, expires_ms=now + stored.lease_ms)\n",
        "task = stored\n",
        STORM,
    ),
    Mutant(
        "the old generation is not archived",
        TASK,
        "    view.put(keys.history(which.project, which.task, previous.generation), previous, line)\n",
        "",
        STORM,
    ),
    Mutant(
        "a claim that ended stays in the index of its session",
        TASK,
        "        view.delete(keys.by_session(stored.session, which.project, which.task))\n",
        "",
        STORM,
    ),
    Mutant(
        "a reset forgets the generation",
        RESET,
        "opened = Task(generation=task.generation, reset_generation=task.generation,",
        "opened = Task(generation=0, reset_generation=task.generation,",
        STORM,
    ),
    Mutant(
        "a rejected result leaves no trace",
        RESULT,
        "        _record_rejection(view, command, reason, agent, lost, now, task.generation)\n",
        "        pass\n",
        STORM,
    ),
    Mutant(
        "nobody is told that work is lost",
        RESULT,
        "    lost = held is not None and not own_again\n",
        "    lost = False\n",
        STORM,
    ),
    Mutant(
        "claims are counted up but not down",
        LIMITS,
        "view.put_late(keys.COUNT_CLAIMS, Count(claims - 1))\n",
        "view.put_late(keys.COUNT_CLAIMS, Count(claims))\n",
        STORM,
    ),
    Mutant(
        "a claim stays although a file of its task is held",
        "core/plans/queue.py",
        "        view.withdraw()\n",
        "",
        ("tests/unit/core/tasks/test_as_session.py",),
    ),
    Mutant(
        "any number of sessions may register",
        LIMITS,
        "    if refuse and sessions >= limits.max_active_sessions:\n",
        "    if False:\n",
        ("tests/unit/core/sessions/test_identify_limits.py",),
    ),
    Mutant(
        "the limit on claims lets one more in",
        LIMITS,
        "if claims >= limits.max_concurrent_claims:\n",
        "if claims > limits.max_concurrent_claims:\n",
        seeds(*range(1, 25)),
    ),
    Mutant(
        "a session's claims are listed from two moments",
        HISTORY,
        "        view.get(index.key, Marker)",
        "        Marker()",
        (FOUND,),
    ),
]

ENGINE_MUTANTS = [
    Mutant(
        "only what is written is expected",
        DRAFT,
        "expects = {key: loaded[key].version for key in reads}\n",
        "expects = {key: loaded[key].version for key in reads if key in self._written}\n",
        (FOUND, *STORM),
    ),
    Mutant(
        "one kind of read is not expected",
        DRAFT,
        "expects = {key: loaded[key].version for key in reads}\n",
        'expects = {k: loaded[k].version for k in reads if k in self._written or k[:11] != "by-session/"}\n',
        (FOUND, *STORM),
    ),
    Mutant(
        "the last load tells the moment of all",
        DRAFT,
        "        if not self.reads_of_store:\n            self._as_of",
        "        if True:\n            self._as_of",
        (OUTCOMES,),
    ),
    Mutant(
        "a range of SQLite is read at another moment than the keys",
        SQLITE,
        "reading(in_one_statement=not ranges)",
        "reading(in_one_statement=True)",
        ("tests/contract/test_reads.py", "-k", "as_of_one_offset and sqlite"),
    ),
    Mutant(
        "what a lock looks at is not foreseen",
        "core/locks/locks.py",
        "for resource in resources for prefix in resource.ranges]",
        "for resource in () for prefix in resource.ranges]",
        ("tests/unit/core/locks/test_acquire.py", "-k", "questions"),
    ),
    Mutant(
        "a range that was cut off is taken for the whole",
        DRAFT,
        "whole=len(records) < range_.limit)",
        "whole=True)",
        ("tests/contract/test_costs.py", "-k", "many_next_tasks and memory"),
    ),
    Mutant(
        "what an interrupted commit has changed passes for unchanged",
        FOLD,
        "        self._begun += 1\n",
        "",
        ("tests/unit/stores/log/test_state.py",),
    ),
    Mutant(
        "SQLite: a load sees a transaction that was left open",
        SQLITE,
        "            self.roll_back()\n            try:\n                if not in_one_statement:\n",
        "            try:\n                if not in_one_statement:\n",
        ("tests/unit/stores/sqlite/test_store.py", "-k", "left_open"),
    ),
    Mutant(
        "Postgres: a moment counts over another connection",
        "stores/postgres/table_store.py",
        "            on=None if as_of is NO_MOMENT else as_of.through,\n",
        "",
        ("tests/unit/stores/postgres/test_table_store.py", "-k", "moment"),
    ),
    Mutant(
        "MySQL: a moment counts over another connection",
        "stores/mysql/store.py",
        "on=known.through)",
        "on=None)",
        ("tests/unit/stores/mysql/test_store.py", "-k", "moment"),
    ),
    Mutant(
        "a refusal does not rest on what its batch wrote",
        DRAFT,
        "        view.withdraw()\n",
        "        view.withdraw()\n        view.reads = [key for key in view.reads if key in self._loaded]\n",
        (OUTCOMES,),
    ),
    Mutant(
        "a moment is not looked at",
        FOLD,
        "        if commit.as_of == self.as_of:\n",
        "        if commit.as_of.offset >= 0:\n",
        (OUTCOMES,),
    ),
    Mutant(
        "a refusal is not verified",
        ENGINE,
        "one_snapshot = not commit.writes and draft.reads_of_store <= 1 and",
        "one_snapshot = not commit.writes and",
        (FOUND, *STORM),
    ),
    Mutant(
        "a refusal that was found in haste is not verified",
        ENGINE,
        " and not draft.doubtful\n",
        "\n",
        STORM,
    ),
    Mutant(
        "whoever wrote once takes what it knows for the newest",
        "stores/log/sole_writer.py",
        "ours = self._alone and offset == self._newest and",
        "ours = self._newest > 0 and",
        ("tests/unit/stores/postgres/test_log_store.py", "-k", "one_round_trip"),
    ),
    Mutant(
        "a load in haste is older than what was shown",
        LOG_STORE,
        "self._burst.goes_on(self.seen.offset)",
        "self._burst.goes_on(self._fold.offset)",
        ("tests/contract/test_reads.py", "-k", "what_was_shown and postgres-log"),
    ),
    Mutant(
        "what was decided in haste is written in the past",
        LOG_STORE,
        "range(1 if commit.hasty else TRIES)",
        "range(TRIES)",
        ("tests/unit/engine/test_clock.py", "-k", "haste and nats"),
    ),
    Mutant(
        "what changes nothing is answered in the past",
        LOG_STORE,
        "if changed or (commit.hasty and commit.as_of.offset != self._fold.offset):",
        "if changed:",
        ("tests/unit/engine/test_clock.py", "-k", "haste and nats"),
    ),
    Mutant(
        "who is always overtaken tries for ever",
        LOG_STORE,
        "range(1 if commit.hasty else TRIES)",
        "range(1 if commit.hasty else 10**9)",
        (OUTCOMES, "-k", "overtaken and nats"),
    ),
    Mutant(
        "a failure on mixed reads is believed",
        ENGINE,
        "            job.error = defect\n            draft.accept_failure(job, view)\n",
        "            job.fail(defect)\n",
        (FOUND,),
    ),
    Mutant(
        "what rests on a changed write keeps its answer",
        DRAFT,
        "                tainted.update(view.writes)\n",
        "",
        (*STORM, "tests/unit/engine/test_commit.py"),
    ),
    Mutant(
        "a scan that rests on a changed write keeps its answer",
        DRAFT,
        "            stale_scan = view.scanned and unwritten\n",
        "            stale_scan = False\n",
        (FOUND,),
    ),
    Mutant(
        "a lost answer counts as a failure",
        SETTLE,
        "        return _settle(store, commit, before, deadline(), ambient, lost)\n",
        "        raise Unavailable from lost\n",
        STORM,
    ),
    Mutant(
        "after a lost answer the log is never looked at",
        SETTLE,
        "            if entry.id == commit_id:\n",
        "            if False:\n",
        STORM,
    ),
    Mutant(
        "a command that was withdrawn is carried out",
        ENGINE,
        "if not job.withdrawn()]",
        "if job.withdrawn() or True]",
        (*STORM, *seeds(*range(13, 30))),
    ),
    Mutant(
        "a batch acts at a time before what it read",
        CLOCK,
        "        return self._instead is None and self._store.seen.at > now\n",
        "        return False\n",
        ("tests/unit/engine/test_clock.py", "-k", "sqlite and (older or moves_the_time)"),
    ),
    Mutant(
        "a log from the future is written to",
        CLOCK,
        "if self._instead is not None or self._ahead() <= AHEAD_MS_MAX:\n",
        "if True:\n",
        (FOUND, *STORM),
    ),
    Mutant(
        "a command id is not remembered",
        DONE,
        "    if view.writes:\n",
        "    if False:\n",
        STORM,
    ),
    Mutant(
        "leases that ran out are never written down",
        ENGINE,
        "        return [Job(Sweep(self.tenant, SWEEP_MOST), patience), *jobs]\n",
        "        return jobs\n",
        (FOUND,),
    ),
]

STORE_MUTANTS = [
    Mutant(
        "the log shape does not check expectations",
        LOG_STORE,
        "            raise Conflict(changed)\n",
        "            pass\n",
        ("tests/contract/test_commit.py", "-k", "memory"),
    ),
    Mutant(
        "a tombstone has no version",
        FOLD,
        "            self.tombstones[key] = offset\n",
        "            self.tombstones[key] = self.floor\n",
        ("tests/contract/test_reads.py", "-k", "memory"),
    ),
    Mutant(
        "the floor rises above the head",
        LOG_STORE,
        "floor = max(self._fold.floor, min(before, self._fold.offset))\n",
        "floor = max(self._fold.floor, before)\n",
        ("tests/contract/test_log.py", "-k", "memory and (trim or floor)"),
        (FOLD, "max(self.floor, min(before, self.offset))\n", "max(self.floor, before)\n"),
    ),
    Mutant(
        "the floor rises above the head in SQLite",
        SQLITE,
        "floor = max(self._see(cursor), min(before, self.seen.offset))\n",
        "floor = max(self._see(cursor), before)\n",
        ("tests/contract/test_log.py", "-k", "sqlite and (trim or floor)"),
    ),
    Mutant(
        "a prefix ends too late at its bound",
        STORE,
        "            above = 0xE000 if point == 0xD7FF else point + 1\n",
        "            above = point + 1\n",
        ("tests/contract/test_reads.py", "-k", "sqlite and edge"),
    ),
    Mutant(
        "a scan begins with the record it should begin after",
        FOLD,
        "inclusive=(not after, False)",
        "inclusive=(True, False)",
        ("tests/contract/test_reads.py", "-k", "memory"),
    ),
    Mutant(
        "SQLite does not check expectations",
        SQLITE,
        "        if changed:\n            raise Conflict(changed)\n",
        "",
        ("tests/contract/test_commit.py", "-k", "sqlite"),
    ),
    Mutant(
        "SQLite does not sync",
        SQLITE,
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = OFF",
        ("tests/unit/stores/sqlite/test_store.py",),
    ),
    Mutant(
        "the data of a file is not synced",
        FILE_LAYER,
        "            self.sync_file(file)\n            return size\n",
        "            return size\n",
        ("tests/unit/stores/files/test_fsync_order.py",),
    ),
    Mutant(
        "the name of an entry is not synced",
        FILE_LOG,
        "                self._layer.sync_folder(shard)\n            except OSError as error:",
        "                pass\n            except OSError as error:",
        ("tests/unit/stores/files/test_fsync_order.py",),
    ),
    Mutant(
        "syncing a file does nothing",
        FILE_LAYER,
        "            os.fdatasync(file)\n",
        "            pass\n",
        COUNTED_SYNCS,
    ),
    Mutant(
        "syncing a folder does nothing",
        FILE_LAYER,
        "            os.fsync(folder)\n",
        "            pass\n",
        COUNTED_SYNCS,
    ),
    Mutant(
        "a damaged entry is read",
        FILE_LOG,
        '        raise damaged(where, "its checksum is wrong")\n',
        "",
        ("tests/unit/stores/files/test_damage.py",),
    ),
    Mutant(
        "SQLite begins without the write lock",
        SQLITE,
        'self.patiently("BEGIN IMMEDIATE")',
        'self.patiently("BEGIN")',
        ("tests/unit/stores/sqlite/test_store.py", "tests/contract/test_concurrent.py", "-k", "sqlite"),
    ),
    Mutant(
        "Postgres sorts keys by the rules of a language",
        POSTGRES,
        'key text COLLATE "C" NOT NULL, version',
        "key text NOT NULL, version",
        ("tests/unit/stores/postgres/test_table_store.py", "-k", "order_of_their_bytes"),
    ),
    Mutant(
        "Postgres commits without the lock on the head",
        POSTGRES,
        "WHERE l.id = to_log FOR NO KEY UPDATE;",
        "WHERE l.id = to_log;",
        ("tests/unit/stores/postgres/test_table_store.py", "-k", "two_connections or what_follows_the_lock"),
    ),
    Mutant(
        "Postgres (log) appends wherever the head is by now",
        POSTGRES_LOG_SQL,
        "WHERE id = to_log AND head = as_of_head AND floor = as_of_floor;",
        "WHERE id = to_log AND floor = as_of_floor;",
        ("tests/unit/stores/postgres/test_log_store.py", "-k", "behind"),
    ),
    Mutant(
        "Postgres (log) appends although the floor was raised",
        POSTGRES_LOG_SQL,
        "AND head = as_of_head AND floor = as_of_floor;",
        "AND head = as_of_head;",
        ("tests/unit/stores/postgres/test_table_store.py", "-k", "head_and_floor_stand"),
    ),
    Mutant(
        "Postgres (log) trims what no snapshot holds",
        POSTGRES_LOG,
        "            self._snapshots.write(image_of(self._fold), patient=True)\n",
        "            pass\n",
        ("tests/unit/stores/postgres/test_log_store.py", "-k", "trim or large_values"),
    ),
    Mutant(
        "Postgres (log) takes any large value for the one it looks for",
        POSTGRES_LOG,
        "values.get((record.key, record.version))",
        "dict(((key, v) for (key, _), v in values.items())).get(record.key)",
        ("tests/unit/stores/postgres/test_log_store.py", "-k", "looked_for_again"),
    ),
    Mutant(
        "MySQL commits without the lock on the head",
        MYSQL,
        "FROM {log} WHERE id = %d FOR UPDATE;",
        "FROM {log} WHERE id = %d;",
        ("tests/unit/stores/mysql/test_store.py", "-k", "what_follows_the_lock"),
    ),
    Mutant(
        "MySQL commits whatever has changed",
        MYSQL,
        "@floor = %d AND @changed IS NULL, @offset",
        "@floor = %d, @offset",
        ("tests/unit/stores/mysql/test_store.py", "-k", "what_was_loaded or what_follows_the_lock"),
    ),
    Mutant(
        "MySQL takes a trimmed absence for the old one",
        MYSQL,
        "@shut = 0 AND @floor = %d AND",
        "@shut = 0 AND %d IS NOT NULL AND",
        ("tests/unit/stores/mysql/test_store.py", "-k", "what_was_loaded"),
    ),
    Mutant(
        "MySQL answers what is not on disk yet",
        "stores/mysql/store.py",
        "            if self.limits.durable:\n",
        "            if not self.limits.durable:\n",
        ("tests/unit/stores/mysql/test_store.py", "-k", "is_on_disk"),
    ),
]

PROCESS_MUTANTS = [
    Mutant(
        "real processes are granted what others hold",
        TASK,
        "if stored.claim is ACTIVE and now < stored.expires_ms and not command.force:\n",
        "if False:\n",
        ("tests/linearizability/test_histories.py", "-k", "sqlite and store"),
    ),
]

MUTANTS = [
    *RULES,
    *ENGINE_MUTANTS,
    *STORE_MUTANTS,
    *TENANT_MUTANTS,
    *REDIS_MUTANTS,
    *NATS_MUTANTS,
    *LOCK_MUTANTS,
    *GATE_MUTANTS,
    *HOOK_MUTANTS,
    *MERGE_MUTANTS,
    *RESULT_MUTANTS,
    *PROCESS_MUTANTS,
    *WORK_MUTANTS,
    *EFFECT_MUTANTS,
    *PLAN_MUTANTS,
    *GIT_MUTANTS,
]
