"""The checks of `coord doctor` on a store: its version, durability, location and clock."""

from typing import NamedTuple

APART_MS = 1_000


class Check(NamedTuple):
    """The result of one check; `hint` names the next step if it failed, `stops` that nothing works then."""

    name: str
    well: bool
    text: str
    hint: str = ""
    stops: bool = False


NTP = "set both with NTP; coord uses the clock of the server"


def clock_check(server_ms: int, asked_ms: int, answered_ms: int, hint: str = NTP) -> Check:
    """Compare the clock of a server with ours; the server read it between `asked_ms` and `answered_ms`.

    >>> clock_check(5_000, 1_000, 2_000).text
    'the clock of the server is 3.0 s ahead of ours'
    """
    apart_ms = min(server_ms - asked_ms, max(0, server_ms - answered_ms))
    if abs(apart_ms) < APART_MS:
        return Check("server clock", well=True, text="less than a second apart from ours")
    side = "ahead of" if apart_ms > 0 else "behind"
    text = f"the clock of the server is {abs(apart_ms) / 1000:.1f} s {side} ours"
    return Check("server clock", well=False, text=text, hint=hint)
