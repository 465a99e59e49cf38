"""Mutants of what notices damage: checksums, totals, and what is refused."""

from tests.mutation.mutant import Mutant

SQLITE = "tests/unit/stores/sqlite/test_damage.py"
CHANGED = f"{SQLITE}::test_what_another_program_changed_is_corrupt"
MARKS = "tests/unit/host/test_high_water.py"
REPAIR = "tests/unit/sdk/admin/test_repair.py"
VANISHED = f"{SQLITE}::test_a_vanished_record_is_noticed_when_the_log_is_opened"

DISK = "tests/contract/test_full_disk.py"

MUTANTS = [
    Mutant(
        "doctor writes nothing on a full disk",
        "coord.stores.local.filesystem:disk_check",
        "probe.write(os.urandom(PROBE_BYTES))",
        "pass",
        (DISK, "-k", "files and full"),
    ),
    Mutant(
        "doctor asks a read-only disk only for its free space",
        "coord.stores.local.filesystem:disk_check",
        "with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:",
        "with tempfile.TemporaryFile(buffering=0) as probe:",
        (DISK, "-k", "files and read"),
    ),
    Mutant(
        "a disk that is nearly full is well",
        "coord.stores.local.filesystem:disk_check",
        "free < NEARLY_FULL_BYTES",
        "False",
        (f"{DISK}::test_a_disk_that_is_nearly_full_is_a_warning",),
    ),
    Mutant(
        "a disk without inodes is well",
        "coord.stores.local.filesystem:disk_check",
        "disk.f_files and disk.f_favail < NEARLY_FULL_FILES",
        "False",
        (f"{DISK}::test_a_disk_may_run_out_of_files",),
    ),
    Mutant(
        "SQLite: doctor does not try the disk",
        "coord.stores.sqlite.health:check_sqlite",
        "disk_check(os.path.dirname(path)),",
        "",
        (DISK, "-k", "sqlite and read"),
    ),
    Mutant(
        "a store that cannot be written is only a warning",
        "coord.sdk.reports.doctor:_Examination.look_at_backend",
        "BAD if stops else WARN",
        "WARN",
        (DISK, "-k", "files and read"),
    ),
    Mutant(
        "Postgres: doctor calls a read-only server well",
        "coord.stores.postgres.health:_access",
        "if read_only:",
        "if False:",
        (f"{DISK}::test_a_postgres_server_that_only_reads_is_bad",),
    ),
    Mutant(
        "Redis: doctor tries no write",
        "coord.stores.redis.health:_access",
        """wire.ask("ZADD", f"{keys_of(address.prefix, '')[0]}-probe", "XX", 0, "probe")""",
        "pass",
        (f"{DISK}::test_a_redis_server_without_memory_is_bad",),
    ),
    Mutant(
        "a record is taken without its checksum",
        "coord.stores.checksums:Checksums.checked",
        "right = checksum - version == digest",
        "right = True",
        (CHANGED, "-k", "value"),
    ),
    Mutant(
        "the digest of a record leaves out its index key",
        "coord.stores.checksums:Checksums.digest",
        'f"{key}\\0{index_key}\\0"',
        'f"{key}\\0\\0"',
        ("tests/unit/stores/test_checksums.py::test_a_digest_depends_on_everything_in_the_row",),
    ),
    Mutant(
        "records of one store are valid in another",
        "coord.stores.checksums:Checksums.__init__",
        'f"{store_id}/{tenant}\\0"',
        'f"{tenant}\\0"',
        ("tests/unit/stores/test_checksums.py",),
    ),
    Mutant(
        "an entry is taken without its checksum",
        "coord.stores.checksums:Checksums.checked_entry",
        "checksum - offset == self.entry_digest(at, id_, events)",
        "True",
        (CHANGED, "-k", "time and entry"),
    ),
    Mutant(
        "a missing entry is skipped",
        "coord.stores.checksums:check_contiguous",
        "limit <= 0",
        "True",
        (CHANGED, "-k", "entry"),
    ),
    Mutant(
        "the totals leave out damaged keys",
        "coord.stores.checksums:keys_total",
        'sum(map(crc32, joined.encode().split(b"\\0"))) if joined is not None else 0',
        "-1",
        (f"{SQLITE}::test_totals_follow_every_kind_of_change",),
    ),
    Mutant(
        "vanished records are not counted",
        "coord.stores.checksums:check_totals",
        "kept == found",
        "True",
        (VANISHED,),
    ),
    Mutant(
        "SQLite: an opening does not count the records",
        "coord.stores.sqlite.store:SqliteStore.__init__",
        "self._verify(cursor)",
        "pass",
        (VANISHED,),
    ),
    Mutant(
        "SQLite: a process that stays counts once",
        "coord.stores.sqlite.store:SqliteStore.load",
        "verify = uptime_ms() - self._verified_ms >= VERIFY_EVERY_S * 1000",
        "verify = False",
        (f"{SQLITE}::test_a_process_that_stays_notices_a_vanished_record",),
    ),
    Mutant(
        "SQLite: the row of the log is taken without its checksum",
        "coord.stores.sqlite.rows:read_log_row",
        "row[:4] != (head, at, floor, sums)",
        "False",
        (CHANGED, "-k", "head or floor"),
    ),
    Mutant(
        "SQLite: the metadata are taken without their checksum",
        "coord.stores.sqlite.rows:check_metadata",
        "sealed_metadata(found) != found or ",
        "",
        (CHANGED, "-k", "epoch"),
    ),
    Mutant(
        "SQLite: a log under a damaged name is created again",
        "coord.stores.sqlite.store:SqliteDatabase.find_log",
        "self._check_tenants(cursor)",
        "pass",
        (CHANGED, "-k", "name"),
    ),
    Mutant(
        "SQLite: a damaged index of tombstones leads a trim to live records",
        "coord.stores.sqlite.store:SqliteStore.trim",
        "self._verify(cursor)",
        "pass",
        (f"{SQLITE}::test_trimming_a_damaged_file_removes_nothing",),
    ),
    Mutant(
        "SQLite: the newest entry is not looked at before others are written beside it",
        "coord.stores.sqlite.store:SqliteStore._verify",
        "self._checksums.checked_page(newest_entries, row.head - 1, 2, row.head, row.floor)",
        "pass",
        (VANISHED, "-k", "newest"),
    ),
    Mutant(
        "an old copy of a store is taken for the newest",
        "coord.host.high_water:HighWater.check",
        "offset < mark.offset",
        "False",
        (f"{MARKS}::test_an_old_copy_is_refused",),
    ),
    Mutant(
        "marks are never written",
        "coord.stores.database:Database.close",
        "self.marks is not None and logs",
        "False",
        (f"{MARKS}::test_an_old_copy_is_refused",),
    ),
    Mutant(
        "a log is opened without a look at its mark",
        "coord.stores.database:Database.log",
        "self._check_mark(tenant, log)",
        "pass",
        (f"{MARKS}::test_a_lost_write_ahead_log_is_refused",),
    ),
    Mutant(
        "a mark falls when a process ends that saw less",
        "coord.host.high_water:HighWater.raise_to",
        "max(mark, known.get((store_id, tenant), mark))",
        "mark",
        (f"{MARKS}::test_a_mark_never_falls",),
    ),
    Mutant(
        "a store of an older coord has no successor",
        "coord.sdk.client.open:_opens_as_pinned",
        "(Corrupt, OlderFormat)",
        "Corrupt",
        (f"{REPAIR}::test_a_new_store_replaces_whatever_is_in_its_place", "-k", "old_format"),
    ),
    Mutant(
        "the store beside an older pin is looked for elsewhere",
        "coord.host.store_location:_location",
        "EARLIER_BELOW_THE_PIN: _earlier",
        '"": _earlier',
        (f"{REPAIR}::test_the_store_of_an_older_coord_gets_a_successor",),
    ),
    Mutant(
        "a new store begins beside the log of a lost one",
        "coord.sdk.client.open:set_aside",
        '("-wal", "-shm", "")',
        '("",)',
        (f"{REPAIR}::test_a_new_store_replaces_whatever_is_in_its_place", "-k", "only_a_log"),
    ),
    Mutant(
        "a careless umask opens the folders of settings",
        "coord.integrations.setup.files:write_file",
        "make_readable_folder(os.path.dirname(path))",
        "os.makedirs(os.path.dirname(path), exist_ok=True)",
        ("tests/unit/integrations/setup/test_agent_files.py", "-k", "nobody_else"),
    ),
]
