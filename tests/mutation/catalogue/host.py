"""Mutants of the host: processes, paths, the location of the store."""

from tests.mutation.mutant import Mutant

MUTANTS = [
    Mutant(
        "a reused pid counts as the old process",
        "coord.host.processes:probe",
        "stat.start != process.start",
        "False",
        ("tests/unit/host/test_processes.py::test_a_pid_that_was_given_away_again_is_dead",),
    ),
    Mutant(
        "a pid of another boot counts as proof",
        "coord.host.processes:probe",
        "process.boot",
        "here.boot",
        ("tests/unit/host/test_processes.py::test_nothing_is_proven_from_elsewhere",),
    ),
    Mutant(
        "one repository uses two stores",
        "coord.host.store_location:_agreed",
        "not _same_store(first_url, url)",
        "False",
        ("tests/unit/host/test_store_location.py::test_a_later_disagreement_is_refused",),
    ),
    Mutant(
        "a vanished store is created again",
        "coord.host.store_location:check_store_exists",
        "location.pinned and not store_exists(location)",
        "False",
        ("tests/unit/host/test_store_location.py::test_a_vanished_store_is_noticed_before_it_is_made_anew",),
    ),
    Mutant(
        "a clone's settings count at once",
        "coord.host.consent:read_consented",
        "os.path.isfile(consent)",
        "True",
        ("tests/unit/host/test_consent.py",),
    ),
    Mutant(
        "a store that only a clone names is opened",
        "coord.host.store_location:check_confirmed",
        "if location.refusal:",
        "if False:",
        ("tests/unit/host/test_consent.py",),
    ),
    Mutant(
        "stores of tenants need no consent",
        "coord.host.store_location:_with_configuration",
        'if configuration.proposed.get("tenants"):',
        "if False:",
        ("tests/unit/host/test_consent.py",),
    ),
    Mutant(
        "the consent to one repository counts in another",
        "coord.host.consent:_consent",
        'os.fsencode(repository.commondir) + b"\\0" + content',
        "content",
        ("tests/unit/host/test_consent.py::test_another_repository_needs_its_own_consent",),
    ),
    Mutant(
        "a removed folder is a new repository",
        "coord.host.store_location:_location",
        "(None if repository is None else read_copy(folder))",
        "None",
        ("tests/unit/host/test_store_location.py::test_a_removed_folder_is_a_lost_store",),
    ),
    Mutant(
        "a pin that everybody can replace counts",
        "coord.host.pin:_read",
        "os.fstat(opened).st_mode & stat.S_IWOTH and",
        "False and",
        ("tests/unit/stores/local/test_folders.py::test_a_folder_that_everybody_can_write_is_refused",),
    ),
    Mutant(
        "a question creates a store",
        "coord.sdk.client.client:connect",
        "writes = create or location.pinned",
        "writes = True",
        ("tests/unit/transports/cli/handlers/test_trust.py::test_a_question_creates_nothing",),
    ),
    Mutant(
        "--url ignores the pin",
        "coord.transports.cli.connect:proposed_store",
        "not url or find_repository(current_folder()) is None",
        "True",
        (
            "tests/unit/transports/cli/handlers/test_trust.py::test_the_flag_obeys_the_pin_as_the_variable_does",
        ),
    ),
    Mutant(
        "a symlink may leave the repository and come back",
        "coord.host.paths:repository_path",
        "_check_link(repository, link, text)",
        "pass",
        ("tests/unit/host/test_paths.py::test_leaving_and_coming_back_is_refused",),
    ),
    Mutant(
        "a process is ended by its pid alone",
        "coord.host.processes:end_process",
        "if probe(process).life is not ProcessState.ALIVE:",
        "if False:",
        ("tests/unit/host/test_processes.py::test_another_process_with_the_same_pid_is_left_alone",),
    ),
]
