"""Mutants of mirrors: only files of coord are touched, nothing leaves the folder, each line comes once."""

from tests.mutation.mutant import Mutant

PRESENT = "coord.followers.mirrors.present:Present"
TIME = "tests/unit/followers/mirrors/test_present.py"

UNIT = "tests/unit/followers/mirrors"
MIRROR = f"{UNIT}/test_mirror.py"
LAYOUTS = f"{UNIT}/test_layouts.py"
KILLED = f"{MIRROR}::test_a_killed_process_writes_each_line_once"
FOLDER = "coord.stores.local.safe_folder"
WRITER = "coord.followers.mirrors.writer"

MUTANTS = [
    Mutant(
        "an expired lock is shown until something else happens",
        f"{PRESENT}.due_ms",
        "times = [lock.expires_ms for lock in self.locks]",
        "times = [0]",
        (f"{TIME}::test_an_expired_lock_is_gone_at_its_deadline",),
    ),
    Mutant(
        "a lock that was asked back is shown after its grace",
        f"{PRESENT}.due_ms",
        "if lock.preempted_by",
        "if False",
        (f"{TIME}::test_a_lock_that_was_asked_back_is_gone_when_its_grace_ends",),
    ),
    Mutant(
        "an expired claim is shown until something else happens",
        f"{PRESENT}.due_ms",
        "times += [task.expires_ms for task in (*self.queue.working, *self.tasks)]",
        "pass",
        (f"{TIME}::test_an_expired_claim_is_gone_at_its_deadline",),
    ),
    Mutant(
        "a file of others is overwritten",
        f"{WRITER}:_RootWriter._to_write",
        "seen.note is None and (seen.blocked or seen.digest is not None)",
        "False",
        (f"{MIRROR}::test_a_file_of_others_is_left_alone",),
    ),
    Mutant(
        "switching on overwrites files of others",
        "coord.followers.mirrors.switching:_check_free",
        "if others:",
        "if False:",
        (f"{MIRROR}::test_a_file_of_others_is_left_alone",),
    ),
    Mutant(
        "a foreign change is not reported",
        f"{WRITER}:_RootWriter._check",
        "seen.is_changed and",
        "False and",
        (f"{MIRROR}::test_a_foreign_change_is_reported_and_overwritten",),
    ),
    Mutant(
        "a foreign change is obeyed",
        f"{WRITER}:_RootWriter._to_write",
        "seen.digest == digest_of(data) and not seen.blocked",
        "seen.note is not None",
        (f"{MIRROR}::test_a_foreign_change_is_reported_and_overwritten",),
    ),
    Mutant(
        "a folder is entered through a link",
        f"{FOLDER}:_OPEN_FOLDER",
        "os.O_NOFOLLOW | ",
        "",
        (f"{MIRROR}::test_no_link_leads_out_of_the_mirror",),
    ),
    Mutant(
        "the shared folder may be open to others",
        f"{FOLDER}:_problem_of",
        "stat.S_IMODE(found.st_mode) & 0o077",
        "False",
        (f"{MIRROR}::test_a_shared_folder_has_to_be_private",),
    ),
    Mutant(
        "a name leaves its folder",
        "coord.followers.mirrors.names:safe_name",
        '_UNSAFE.sub(lambda found: b"%%%02X" % found[0][0], data)',
        "data",
        (f"{LAYOUTS}::test_hostile_names_stay_inside", f"{UNIT}/test_names.py"),
    ),
    Mutant(
        "two names share a file",
        "coord.followers.mirrors.names:short_names",
        "uses[short(name)] == 1",
        "True",
        (f"{UNIT}/test_names.py::test_short_forms_give_way_where_they_would_collide",),
    ),
    Mutant(
        "the manifest is saved after the files only",
        f"{WRITER}:_RootWriter.write",
        "self._state_file.save(self._state)",
        "pass",
        (KILLED,),
    ),
    Mutant(
        "half a file stays after a kill",
        f"{WRITER}:_RootWriter._finish_drafts",
        "self._folder.remove_draft(name)",
        "pass",
        (f"{MIRROR}::test_off_after_a_kill_leaves_nothing",),
    ),
    Mutant(
        "what a killed process wrote counts as foreign",
        f"{WRITER}:_RootWriter._finish_drafts",
        "digest and seen.digest == digest",
        "False",
        (KILLED,),
    ),
    Mutant(
        "what a killed process appended stays",
        "coord.followers.mirrors.text_logs:TextLogs._write",
        "file.seek(size)",
        "file.seek(0, 2)",
        (f"{UNIT}/test_text_logs.py::test_what_no_state_counts_is_overwritten",),
    ),
    Mutant(
        "an entry is logged again",
        "coord.followers.mirrors.mirror:ContractMirror.take_events",
        "if line.offset > state.offset",
        "if True",
        (f"{MIRROR}::test_two_processes_write_each_line_once",),
    ),
    Mutant(
        "the mirror of one tenant shows another one",
        "coord.followers.mirrors.mirror:Mirror.act",
        "state.tenant != self.source.tenant",
        "False",
        (f"{MIRROR}::test_another_tenant_writes_nothing",),
    ),
    Mutant(
        "a mirror that is off is written",
        "coord.followers.mirrors.mirror:Mirror.wanted",
        "cls.name not in switched_on(source.location.folder)",
        "False",
        (f"{MIRROR}::test_a_mirror_is_off_before_it_is_removed",),
    ),
    Mutant(
        "off leaves the folders",
        f"{WRITER}:_RootWriter._remove_folders",
        "in_use or not self._folder.remove_folder(folder)",
        "True",
        (f"{MIRROR}::test_off_removes_what_coord_wrote_and_nothing_else",),
    ),
    Mutant(
        "a hook locks a file of a mirror",
        "coord.host.runtime.switched_on:is_mirror_path",
        "return any(path == each",
        "return False and any(path == each",
        (f"{UNIT}/test_hooks.py::test_an_edit_of_a_mirror_is_nobodys_work",),
    ),
    Mutant(
        "an import changes what is known",
        "coord.followers.mirrors.import_contract:import_tasks",
        "if name not in known]",
        "]",
        (f"{UNIT}/test_import_contract.py::test_an_import_counts_once",),
    ),
    Mutant(
        "an import skips what is damaged",
        "coord.followers.mirrors.import_contract:import_tasks",
        "if problems:",
        "if False:",
        (f"{UNIT}/test_import_contract.py::test_a_bad_file_is_named_and_nothing_is_imported",),
    ),
    Mutant(
        "a log that is written in one go has one part",
        "coord.followers.mirrors.text_logs:TextLogs._append",
        "size = log.size + len(pending)",
        "size = log.size",
        (f"{UNIT}/test_text_logs.py::test_what_comes_in_one_go_has_as_many_parts_as_it_needs",),
    ),
    Mutant(
        "old parts of a log stay on the disk",
        "coord.followers.mirrors.text_logs:TextLogs.remove_old",
        "range(log.part - 2, -1, -1)",
        "range(log.part - 2, log.part - 3, -1)",
        (f"{UNIT}/test_text_logs.py::test_what_comes_in_one_go_has_as_many_parts_as_it_needs",),
    ),
    Mutant(
        "a reader of the log forgets who waits when it ends",
        "coord.followers.mirrors.log_lines:LogReader.dump",
        "msgspec.json.encode(self._memory)",
        "msgspec.json.encode(_Memory(self._memory.agents))",
        (f"{UNIT}/test_log_lines.py::test_a_wait_that_is_given_up_is_told_as_in_the_document",),
    ),
]
