"""The mutants of the Redis store."""

from tests.mutants.mutant import Mutant

STORE, SCRIPTS, SERVER = "stores/redis/store.py", "stores/redis/scripts.py", "stores/redis/connection.py"


def specifics(name: str) -> tuple[str, ...]:
    """A test of what only this store can get wrong."""
    return (f"tests/unit/stores/redis/test_store.py::test_{name}",)


def epochs(name: str) -> tuple[str, ...]:
    """A test of servers that lost commits."""
    return (f"tests/unit/stores/redis/test_epochs.py::test_{name}",)


REDIS_MUTANTS = [
    Mutant(
        "Redis commits whatever was read",
        SCRIPTS,
        "if version ~= expected[each] then",
        "if false then",
        ("tests/contract/test_commit.py", "-k", "redis and conflict"),
    ),
    Mutant(
        "Redis believes in a moment of another connection",
        STORE,
        "number = self._connections",
        "number = 1",
        specifics("a_moment_counts_within_one_connection"),
    ),
    Mutant(
        "Redis marks records with somebody else's offset",
        SCRIPTS,
        "if head ~= seen then text",
        "if false then text",
        specifics("a_commit_after_others_has_its_own_offset"),
    ),
    Mutant(
        "Redis gives lost offsets again",
        SCRIPTS,
        "if meta[2] ~= ARGV[1] and not (meta[3] == '1' and ARGV[2] == '1') then",
        "if false then",
        epochs("lost_offsets_never_come_again"),
    ),
    Mutant(
        "a raise that Redis lost is made once more",
        SCRIPTS,
        " + (now - SINCE) % EPOCH_UNIT",
        "",
        epochs("a_raise_that_was_lost_itself_repeats_no_offset"),
    ),
    Mutant(
        "Redis takes commits of an earlier epoch",
        SCRIPTS,
        "if meta[1] ~= ARGV[1] or meta[2] ~= ARGV[2] then",
        "if false then",
        epochs("a_commit_of_another_epoch_is_refused"),
    ),
    Mutant(
        "a commit that Redis did not answer is taken for a no",
        SERVER,
        "return Unknown(message) if committing else Unavailable(message)",
        "return Unavailable(message)",
        ("tests/contract/test_server_connections.py", "-k", "answer_is_lost and redis"),
    ),
]
