"""Mutants of the NATS store."""

from tests.mutants.mutant import Mutant

STORE, LOG = "stores/nats/store.py", "stores/nats/entries.py"
EPOCHS, SPECIFICS = "tests/unit/stores/nats/test_epochs.py", "tests/unit/stores/nats/test_store.py"

NATS_MUTANTS = [
    Mutant(
        "NATS takes a commit at any place",
        STORE,
        'expected = {"Nats-Expected-Last-Sequence": str(self._place)}',
        "expected: dict[str, str] = {}",
        (SPECIFICS, "-k", "questions_per_call"),
    ),
    Mutant(
        "NATS goes on in the same epoch after its server was restarted",
        STORE,
        "        if not self._trusted() and not self._raise_epoch():\n            return None\n",
        "",
        (EPOCHS, "-k", "issued_again"),
    ),
    Mutant(
        "a raised epoch of NATS begins where the last one did",
        LOG,
        "(epoch << EPOCH_BITS) + now_ms - COUNTED_FROM_MS",
        "epoch << EPOCH_BITS",
        (EPOCHS, "-k", "second_loss"),
    ),
    Mutant(
        "who remembers what NATS forgot goes on with it",
        STORE,
        "(found is not None and decode(found, self._stream).token == self._token)",
        "found is not None",
        (EPOCHS, "-k", "remembers"),
    ),
]
