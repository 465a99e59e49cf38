"""A random wait between two attempts: with equal waits, two processes that collided would collide again."""

import time


def back_off(max_s: float) -> None:
    """Sleep for a random time, at most `max_s` seconds."""
    from random import uniform  # slow to import, and most attempts succeed at once

    time.sleep(uniform(0, max_s))  # noqa: TID251 - nobody notifies us when a file or server is free
