"""Signal handling: stop a command cleanly, or forward signals to a child process."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)
PASSED_ON = (*ENDING, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Stopped(BaseException):
    """A signal asked this process to end."""

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(f"stopped by {signal.Signals(signum).name}")


def stopping() -> AbstractContextManager[None]:
    """Return a context in which SIGTERM and SIGHUP raise `Stopped`, so that a wait is withdrawn."""

    def stop(signum: int) -> None:
        raise Stopped(signum)

    return handling(ENDING, stop)


@contextmanager
def asking_nobody() -> Iterator[None]:
    """Let background commands that read the terminal fail instead of stopping for ever."""
    before = signal.signal(signal.SIGTTIN, signal.SIG_IGN)  # an ignored signal stays ignored after exec
    try:
        yield
    finally:
        signal.signal(signal.SIGTTIN, before)


@contextmanager
def handling(signals: tuple[signal.Signals, ...], handle: Callable[[int], None]) -> Iterator[None]:
    """Handle signals during a block; an ignored signal (nohup) stays ignored."""

    def handler(signum: int, _frame: FrameType | None) -> None:
        handle(signum)

    before = {each: signal.getsignal(each) for each in signals}
    changed = {each: was for each, was in before.items() if was is not signal.SIG_IGN}
    for each in changed:
        signal.signal(each, handler)
    try:
        yield
    finally:
        for each, was in changed.items():
            signal.signal(each, was)
