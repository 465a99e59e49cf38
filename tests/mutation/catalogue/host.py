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
