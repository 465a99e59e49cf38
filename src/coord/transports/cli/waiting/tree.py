"""Who waits for whom, as a tree: the sessions that block others are on top, the waits below them.

A wait that several sessions block is shown below each of them; what waits behind it, only once.
"""

from collections.abc import Sequence

from coord.core.locks.commands import Blocker, SessionWait
from coord.core.messages.quoting import visible
from coord.transports import arguments
from coord.transports.cli.table import wrapped

BRANCH, LAST, RAIL, GAP = "├─ ", "└─ ", "│  ", "   "


def tree(found: Sequence[SessionWait], room: int) -> str:
    """Return the waits as lines of at most `room` cells."""
    behind: dict[str, list[SessionWait]] = {}
    for wait in found:
        for session in dict.fromkeys(blocker.session for blocker in wait.blockers) or ("",):
            behind.setdefault(session, []).append(wait)
    waiting = {name for wait in found for name in (wait.session, wait.parent) if name}
    # In a cycle everybody waits: its first session is on top, unless another one leads there.
    tops = [name for name in behind if name not in waiting]
    lines: list[str] = []
    shown: set[str] = set()
    for name in [*tops, *behind]:
        if name not in shown:
            lines += wrapped(visible(name or "nobody for certain"), room)
            lines += _below(name, behind, shown, "", room)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _below(
    name: str, behind: dict[str, list[SessionWait]], shown: set[str], indent: str, room: int
) -> list[str]:
    """Return the waits behind a session, each with those behind it."""
    shown.add(name)
    lines: list[str] = []
    found = behind.get(name, [])
    for at, wait in enumerate(found):
        last = at == len(found) - 1
        first, rest = (LAST, GAP) if last else (BRANCH, RAIL)
        text = visible(_text(wait, [each for each in wait.blockers if each.session == name]))
        parts = wrapped(text, max(room - len(indent) - len(first), 8))
        lines += [indent + (first if number == 0 else rest) + part for number, part in enumerate(parts)]
        for session in dict.fromkeys((wait.session, wait.parent)):
            if session and session in behind and session not in shown:
                lines += _below(session, behind, shown, indent + rest, room)
    return lines


def _text(wait: SessionWait, blockers: Sequence[Blocker]) -> str:
    """Return who waits for what, since when, and what blocks it here."""
    time = arguments.span(wait.waited_s)
    wants = ", ".join(each.removeprefix("file:") for each in wait.wants) or "a task"
    if wait.denied:
        text = f"{wait.session} was denied {wants} and may ask again (first {time} ago)"
    elif wait.kind == "task":
        text = f"{wait.session} waits for a task, {wants} ({time})"
    else:
        text = f"{wait.session} waits for {wants} (position {wait.position}, {time})"
    why = {(each.by, each.what.removeprefix("file:")) for each in blockers}
    named = [f"{by} {what}" for by, what in sorted(why) if what not in wants.split(", ") or by != "lock"]
    text += f" behind {', '.join(named)}" if named else ""
    text += f", sub-agent of {wait.parent}" if wait.parent else ""
    return f"{text} — DEADLOCK {' → '.join([*wait.cycle, wait.cycle[0]])}" if wait.cycle else text
