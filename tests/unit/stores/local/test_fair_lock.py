"""The courteous turn: one process at a time where that is to be had quickly, and never a condition."""

import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from coord.stores.local import fair_lock as fair_lock_module
from coord.stores.local.fair_lock import FairLock, lock_within


def test_one_at_a_time(tmp_path: Path) -> None:
    """While somebody has the turn, nobody else gets the lock; afterwards they do."""
    path = tmp_path / "turn"
    with closing(FairLock(str(path))) as fair_lock:
        for _ in range(2):  # the second time with the file that is still open
            with fair_lock:
                assert not can_lock(path)
            assert can_lock(path)


def can_lock(path: Path) -> bool:
    file = os.open(path, os.O_RDWR)
    try:
        return lock_within(file, 0)
    finally:
        os.close(file)


def test_whoever_waits_too_long_goes_on_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Correctness never rests on the turn: a process that keeps it for ever stops nobody."""
    monkeypatch.setattr(fair_lock_module, "WAIT_S", 0.05)
    began = time.monotonic()
    path = str(tmp_path / "turn")
    with closing(FairLock(path)) as one, closing(FairLock(path)) as other, one, other:
        waited = time.monotonic() - began
    assert 0.05 <= waited < 10


def test_the_turn_is_given_back_after_an_error(tmp_path: Path) -> None:
    """An exception in the turn ends it."""
    with closing(FairLock(str(tmp_path / "turn"))) as fair_lock:
        with pytest.raises(KeyError), fair_lock:
            raise KeyError
        assert can_lock(tmp_path / "turn")


def test_where_there_can_be_no_lock_file_there_is_no_turn(tmp_path: Path) -> None:
    """A folder that is missing, or a link put in the place of the lock file, changes nothing."""
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    ran = []
    for path in (tmp_path / "missing" / "turn", tmp_path / "link"):
        with closing(FairLock(str(path))) as fair_lock, fair_lock:
            ran.append(path)
    assert len(ran) == 2
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_cannot_be_locked_is_not_waited_for() -> None:
    """Only a lock that somebody holds is worth waiting for."""
    file = os.open("/dev/null", os.O_RDONLY)
    os.close(file)
    began = time.monotonic()
    assert not lock_within(file, 30)
    assert time.monotonic() - began < 10
