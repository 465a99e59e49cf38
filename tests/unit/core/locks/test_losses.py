"""What the victim of a deadlock is told: the loss, and the one command to run next."""

import pytest

from coord.core.locks.losses import deadlock_text

LOSSES = [
    (
        ["file:y.py"],
        ["file:x.py", "file:y.py"],
        [],
        "Deadlock: you lost y.py to ada. Stop editing it, then run: coord lock x.py y.py",
    ),
    (
        ["file:y.py", "file:z z.py"],
        ["file:y.py", "file:z z.py"],
        ["T2"],
        (
            "Deadlock: you lost y.py, z z.py to ada. Stop editing them, "
            "then run: coord lock y.py 'z z.py' && coord task claim T2"
        ),
    ),
    (
        ["name:push"],
        ["file:x.py", "name:push"],
        [],
        "Deadlock: you lost name:push to ada. Stop using it, then run: coord lock x.py name:push",
    ),
    (
        [],
        ["file:x.py"],
        [],
        (
            "Deadlock: you lost your place in the wait queue to ada, but no lock. "
            "To wait again, run: coord lock x.py"
        ),
    ),
]


@pytest.mark.parametrize(("lost", "again", "claims", "sentence"), LOSSES)
def test_the_victim_reads_its_loss_and_one_command(
    lost: list[str], again: list[str], claims: list[str], sentence: str
) -> None:
    """DLK-15: which lock was lost, to whom, and what gets everything together."""
    assert deadlock_text(lost, "ada", again, claims) == sentence
