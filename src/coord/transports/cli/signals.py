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


class Interrupts:
    """Whether somebody has pressed Ctrl-C.

    Python loses the exception of a signal that comes while it runs a callback, such as that of a module lock
    at the end of an import. Whoever waits asks here before it goes on.
    """

    asked = False

    def check(self) -> None:
        """Raise the interrupt that was lost."""
        if self.asked:
            raise KeyboardInterrupt


interrupts = Interrupts()


def stopping() -> AbstractContextManager[None]:
    """Return a context in which signals that end a command raise, so that a wait is withdrawn."""
    interrupts.asked = False

    def stop(signum: int) -> None:
        if signum == signal.SIGINT:
            interrupts.asked = True
            raise KeyboardInterrupt
        raise Stopped(signum)

    return handling((*ENDING, signal.SIGINT), stop)


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
