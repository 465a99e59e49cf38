"""The thread that listens for all waiters of a store: when it starts, and that it can be stopped."""

import contextlib
import threading
from collections.abc import Iterator

import pytest

from coord.stores.server.listener import Listener, Subscription

LOG, HEAD = 7, 3


@contextlib.contextmanager
def subscribed() -> Iterator[Subscription]:
    yield lambda logs, _seconds: dict.fromkeys(logs, HEAD)


def test_an_interrupted_start_of_the_thread_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the thread starts: the store can be closed, and the next waiter starts another thread."""

    def interrupted(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    listener = Listener(subscribed)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            listener.wait(LOG, HEAD - 1, 60)
    assert listener.wait(LOG, HEAD - 1, 60)
    listener.close()

    closed_at_once = Listener(subscribed)
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        closed_at_once.wait(LOG, HEAD - 1, 60)
    closed_at_once.close()
