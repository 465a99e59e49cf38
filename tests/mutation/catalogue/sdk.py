"""Mutants of the client, the worker and the migration."""

from tests.mutation.mutant import Mutant

MUTANTS = [
    Mutant(
        "a server lost before the log is open ends the connection",
        "coord.sdk.client.connection:Connection.__init__",
        "probe=probe), timeout)",
        "probe=probe), 0)",
        ("tests/unit/sdk/client/test_connection.py",),
    ),
    Mutant(
        "a migration forgets where tenants live",
        "coord.sdk.admin.migrate:_Migration.run",
        "store_id, **own",
        "store_id",
        ("tests/unit/sdk/admin/test_migrate.py::test_where_tenants_live_is_known_in_the_copy",),
    ),
    Mutant(
        "a block does not raise an error about lost locks",
        "coord.sdk.client.blocks:LockBlock.end",
        "not failed",
        "False",
        ("tests/scenarios/test_case_held_block.py::test_a_block_raises_what_it_lost", "-k", "memory"),
    ),
    Mutant(
        "a waiting client ignores its deadline in a busy store",
        "coord.sdk.client.waiting:wait_in_queue",
        "if due or not",
        "if not",
        ("tests/scenarios/test_case_held_block.py::test_a_wait_is_looked_after_however_busy_the_store_is",),
    ),
    Mutant(
        "the old store takes commits while it is copied",
        "coord.sdk.admin.migrate:_Migration.run",
        "self._from.seal(_writable(self._target.url), self._target.store_id)",
        "pass",
        (
            "tests/unit/sdk/admin/test_migrate.py::test_all_of_it_is_there_afterwards",
            "-k",
            "sqlite and not postgres",
        ),
    ),
    Mutant(
        "a copy is not compared",
        "coord.sdk.admin.migrate:_Migration._copy",
        "_checksum_of(self._target, tenant).value != whole.value",
        "False",
        ("tests/unit/sdk/admin/test_migrate.py::test_a_copy_that_differs_is_noticed",),
    ),
    Mutant(
        "damaged data is returned",
        "coord.sdk.client.results:fetch",
        " or _digest(data) != digest",
        "",
        ("tests/unit/sdk/client/test_results.py::test_a_damaged_chunk_is_found", "-k", "sqlite"),
    ),
    Mutant(
        "a worker submits under a claim that it does not trust",
        "coord.sdk.worker.worker:Worker._submit",
        "if work.lost:\n            return WorkOutcome.LOST, work.why_lost",
        "pass",
        ("tests/unit/sdk/worker/test_worker.py::test_a_store_that_is_silent_for_too_long_ends_the_work",),
    ),
    Mutant(
        "a retry after a lost reply has a new command id",
        "coord.sdk.worker.worker:Worker._submit",
        "command_id=command_id",
        "command_id=os.urandom(16).hex()",
        ("tests/unit/sdk/worker/test_worker.py::test_an_outage_shorter_than_the_lease_loses_nothing",),
    ),
    Mutant(
        "a lease is trusted to its last moment",
        "coord.sdk.client.lease:Lease.trusted",
        " - self.margin_s",
        "",
        ("tests/unit/core/tasks/test_claims_lease.py",),
    ),
    Mutant(
        "a refused renewal counts as a renewal",
        "coord.sdk.worker.work:Work._renew",
        "reply.reason is not RenewalReason.RENEWED",
        "False",
        ("tests/unit/sdk/worker/test_worker.py::test_a_lost_claim_is_noticed_and_nothing_is_handed_in",),
    ),
    Mutant(
        "a rate limit is a failure",
        "coord.sdk.worker.worker:Worker._result_of",
        "except GiveBack as error:\n            return self._release(work, error)",
        "",
        ("tests/unit/sdk/worker/test_worker.py::test_what_a_function_raises_says_how_it_goes_on",),
    ),
    Mutant(
        "a block releases what another block needs",
        "coord.sdk.client.blocks:LockBlock.end",
        "names, self.use",
        "names, ''",
        (
            "tests/unit/sdk/client/test_blocks.py::test_nested_blocks_release_nothing_that_the_outer_one_needs",
        ),
    ),
    Mutant(
        "a block does not wait on the store",
        "coord.sdk.client.blocks:LockBlock.keep",
        "pause=watcher.wait, ",
        "",
        ("tests/unit/sdk/client/test_blocks.py::test_a_stolen_lock_is_lost_at_once",),
    ),
    Mutant(
        "a lock that is promised to another session is lost at once",
        "coord.sdk.client.blocks:LockBlock.keep",
        "return watcher.asked_s or 0.0",
        "return 0.0",
        ("tests/unit/sdk/client/test_blocks.py::test_a_lock_that_is_asked_for_is_kept_until_the_deadline",),
    ),
    Mutant(
        "a new store in place of one whose pin was damaged is of the same epoch",
        "coord.sdk.client.open:_with_damaged_pin",
        "proposed._replace(epoch=database.epoch)",
        "proposed",
        ("tests/unit/transports/cli/handlers/test_sessions.py::test_a_pin_without_a_copy_gets_a_new_store",),
    ),
    Mutant(
        "an intact store is given up because its pin was damaged",
        "coord.sdk.client.open:_with_damaged_pin",
        "if replace_damaged(proposed.folder):",
        "if False:",
        (
            "tests/unit/transports/cli/handlers/test_sessions.py::test_a_damaged_pin_is_restored_from_its_copy",
        ),
    ),
]
