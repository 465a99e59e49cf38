"""The doorbell wakes waiters of other processes; without it they poll, and nothing is ever missed."""

import os
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from coord.stores.local import wakeup as doorbell
from coord.stores.local.wakeup import Wakeup

LONG_S = 60


@pytest.fixture(autouse=True)
def runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of this test's own for the sockets; its name is short, as theirs have to be."""
    with tempfile.TemporaryDirectory(prefix="coord-bell-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the bell can wake anybody."""
    monkeypatch.setattr(doorbell, "POLL_S_FIRST", LONG_S)
    monkeypatch.setattr(doorbell, "POLL_S_MAX", LONG_S)


class Waiter:
    """Somebody who waits in a thread until something has come."""

    def __init__(self, wakeup: Wakeup) -> None:
        self._looked = threading.Event()
        self._come = False
        self.result: bool | None = None
        self._thread = threading.Thread(target=self._wait, args=[wakeup])
        self._thread.start()
        assert self._looked.wait(LONG_S), "it has looked once, so its bell is hung"

    def _wait(self, wakeup: Wakeup) -> None:
        self.result = wakeup.wait(self._look, LONG_S)

    def _look(self) -> bool:
        come = self._come
        self._looked.set()
        return come

    def come(self) -> None:
        self._come = True

    def join(self) -> bool:
        self._thread.join(LONG_S / 2)
        return self.result is True


@pytest.mark.usefixtures("no_polling")
def test_a_ring_wakes_everybody(tmp_path: Path) -> None:
    """Every waiter is woken, whichever of several doorbells of one store they wait at."""
    with ExitStack() as opened:
        bells = [opened.enter_context(closing(Wakeup(tmp_path / "store"))) for _ in range(3)]
        waiters = [Waiter(wakeup) for wakeup in bells for _ in range(2)]
        for waiter in waiters:
            waiter.come()
        bells[0].notify()
        assert [waiter.join() for waiter in waiters] == [True] * 6


@pytest.mark.usefixtures("no_polling")
def test_a_waiter_that_ends_takes_only_its_own_bell_away(tmp_path: Path) -> None:
    """Two store objects of one process have bells of different names."""
    with closing(Wakeup(tmp_path / "store")) as one, closing(Wakeup(tmp_path / "store")) as other:
        stays = Waiter(one)
        assert not other.wait(lambda: False, 0)
        stays.come()
        other.notify()
        assert stays.join()


@pytest.mark.usefixtures("no_polling")
def test_a_process_with_very_many_files_can_wait(tmp_path: Path) -> None:
    """A hub holds thousands of connections, so the number of a socket may be large."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard), hard))
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        with closing(Wakeup(tmp_path / "store")) as wakeup:
            waiter = Waiter(wakeup)
            waiter.come()
            wakeup.notify()
            assert waiter.join()
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_a_ring_polling_finds_it(tmp_path: Path) -> None:
    """A ring is a hint: who hears none looks again by itself."""
    with closing(Wakeup(tmp_path / "store")) as wakeup:
        waiter = Waiter(wakeup)
        waiter.come()
        assert waiter.join()


def test_a_wait_ends_in_time(tmp_path: Path) -> None:
    """Nobody sleeps past the time that was given."""
    with closing(Wakeup(tmp_path / "store")) as wakeup:
        began = time.monotonic()
        assert not wakeup.wait(lambda: False, 0.1)
        assert 0.1 <= time.monotonic() - began < 5


def test_bells_of_the_dead_are_removed(tmp_path: Path, runtime_folder: Path) -> None:
    """The socket of a killed process is taken away by the next ring, and a full one is left alone."""
    with closing(Wakeup(tmp_path / "store")) as wakeup:
        wakeup.wait(lambda: False, 0)
        (home,) = (runtime_folder / "coord").iterdir()
        dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        dead.bind(str(home / "99999-1"))
        dead.close()
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as deaf:
            deaf.bind(str(home / "99999-2"))
            for _ in range(5000):
                wakeup.notify()
        assert [path.name for path in home.iterdir()] == ["99999-2"]
        (home / "99999-2").unlink()


def test_without_a_private_folder_there_is_only_polling(
    tmp_path: Path, runtime_folder: Path, no_polling: None
) -> None:
    """A runtime folder that others may write to is not used, and waiting works all the same."""
    open_folder = runtime_folder / "open"
    open_folder.mkdir(exist_ok=True)
    (open_folder / "coord").mkdir(exist_ok=True)
    (open_folder / "coord").chmod(0o777)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(open_folder))
        with closing(Wakeup(tmp_path / "store")) as wakeup:
            assert not wakeup.wait(lambda: False, 0.01)
            wakeup.notify()
            assert wakeup.wait(lambda: True, 1)
    assert list((open_folder / "coord").iterdir()) == []
