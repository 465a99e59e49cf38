"""A pause between two tries, of random length: who met once must not go on meeting in step."""

import time


def pause(most_s: float) -> None:
    """Let some time pass, at most so long."""
    from random import uniform  # with what it imports in turn slow to come, and most tries succeed at once

    time.sleep(uniform(0, most_s))  # noqa: TID251 - files and SQLite tell nobody when they are free
