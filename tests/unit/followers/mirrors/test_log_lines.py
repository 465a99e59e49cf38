"""The lines of the text logs, as the first founding document has them."""

from hypothesis import given
from hypothesis import strategies as st

from coord.followers.mirrors.log_lines import LogReader
from coord.sdk.log_reader import LoggedEvent

AT = 1_762_165_800_000
TIME = "2025-11-03T10:30:00Z"


def read(reader: LogReader, offset: int, *events: tuple[str, dict], at_ms: int = AT) -> list[tuple[str, str]]:
    found = reader.read([LoggedEvent(offset, at_ms, name, details) for name, details in events])
    return [(line.log, line.text) for line in found]


def registered(reader: LogReader, **agents: str) -> None:
    for session, agent in agents.items():
        read(reader, 1, ("session.registered", {"session": session, "agent": agent}))


def ended(resource: str, session: str, reason: str, **more: str) -> tuple[str, dict]:
    return "lock.released", {"resource": resource, "session": session, "end_reason": reason, **more}


def test_a_deadlock_is_told_as_in_the_document() -> None:
    """AUD-12, AUD-10: both sentences of the document, with the agents of the sessions."""
    reader = LogReader()
    registered(reader, s1="Otto", s2="Rem")
    cycle = ("lock.deadlock", {"cycle": ["s1", "s2", "s1"], "victim": "s2", "resolved": True})
    assert read(reader, 2, cycle, ended("file:X", "s2", "deadlock", by="s1"))[:2] == [
        (
            "coordination.log",
            f"{TIME} [DeadlockDetector] Cycle detected: Otto -> Rem -> Otto. Preempting Rem's lock.\n",
        ),
        (
            "coordination_events.log",
            f"{TIME} Deadlock detected between Otto and Rem, preempting Rem's lock on X\n",
        ),
    ]


def test_a_crash_is_told_as_in_the_document() -> None:
    """AUD-14: with the number of locks that it releases."""
    reader = LogReader()
    registered(reader, s1="Beatrice")
    dead = ("session.ended", {"session": "s1", "agent": "Beatrice", "end_reason": "dead"})
    locks = [ended(f"file:{name}", "s1", "owner_dead") for name in "ab"]
    lines = read(reader, 2, *locks, dead)
    assert (
        "coordination_events.log",
        f"{TIME} Beatrice heartbeat missed, assuming crash – releasing 2 locks\n",
    ) in lines
    assert ("coordination.log", f"{TIME} Agent Beatrice heartbeat missed\n") in lines


def test_a_wait_that_is_given_up_is_told_as_in_the_document() -> None:
    """AUD-14: how long it waited; remembered across a restart."""
    reader = LogReader()
    wait = {"session": "s1", "agent": "Rem", "resources": ["file:a.py"], "holder": "s2", "priority": 0}
    assert read(reader, 1, ("lock.waiting", wait)) == []
    reader = LogReader(reader.dump())
    given_up = {"session": "s1", "resources": ["file:a.py"], "reason": "withdrawn"}
    assert read(reader, 2, ("lock.withdrawn", given_up), at_ms=AT + 60_000) == [
        (
            "coordination.log",
            "2025-11-03T10:31:00Z Failed to acquire lock for 60s, giving up (Rem on a.py)\n",
        )
    ]


def test_how_a_lock_ended_is_told() -> None:
    """AUD-11: released, expired, preempted."""
    reader = LogReader()
    registered(reader, s1="ann", s2="bob")
    found = read(
        reader,
        2,
        ended("file:a", "s1", "released"),
        ended("file:b", "s1", "expired"),
        ended("file:c", "s1", "preempted", by="s2"),
    )
    assert [text.partition(" ")[2] for _, text in found] == [
        "Lock released: ann on a\n",
        "Lock expired: ann on b (expired)\n",
        "Lock preempted: ann on c by bob (preempted)\n",
    ]


def test_verbose_tells_every_operation() -> None:
    """AUD-15: renewals, waits and refusals only then."""
    renewed = ("lock.renewed", {"resource": "file:a", "session": "s1", "fence": 1, "expires_ms": AT})
    assert read(LogReader(), 1, renewed) == []
    assert read(LogReader(verbose=True), 1, renewed) == [
        ("coordination.log", f"{TIME} Lock renewed: s1 on a\n")
    ]


def test_texts_of_others_stay_inside_their_line() -> None:
    """A name with a line break, a control character or a sentence of ours is quoted on one line."""
    reader = LogReader()
    evil = f"x\n{TIME} Lock released: ann on b\x1b[2J"
    lines = read(
        reader,
        1,
        ("lock.acquired", {"resource": f"name:{evil}", "session": evil, "agent": evil, "mode": "write"}),
        ("task.failed", {"task": evil, "reason": evil, "generation": 1, "project": "p"}),
    )
    assert len(lines) == 2
    for _, text in lines:
        assert text.count("\n") == 1
        assert text.endswith("\n")
        assert text[:-1].isprintable()


PLAYED = st.sampled_from(
    [
        ("session.registered", {"session": "s1", "agent": "Otto"}),
        ("session.registered", {"session": "s2", "agent": "Rem"}),
        ("session.ended", {"session": "s1", "agent": "Otto", "end_reason": "dead"}),
        ("session.ended", {"session": "s2", "agent": "Rem", "end_reason": "ended"}),
        ("session.hung", {"session": "s1"}),
        ("lock.waiting", {"session": "s1", "agent": "Otto", "resources": ["file:a"]}),
        ("lock.withdrawn", {"session": "s1", "resources": ["file:a"], "reason": "timeout"}),
        ("lock.acquired", {"resource": "file:a", "session": "s1", "mode": "write"}),
        ("lock.deadlock", {"cycle": ["s1", "s2"], "victim": "s2", "resolved": True}),
        ended("file:a", "s2", "deadlock", by="s1"),
        ended("file:a", "s1", "owner_dead"),
        ("task.completed", {"task": "T1", "agent": "Rem", "generation": 2}),
        ("task.added", {"task": "T1"}),
        ("message.sent", {"session": "s1"}),
    ]
)


@given(st.lists(st.lists(PLAYED, min_size=1, max_size=4), max_size=15), st.lists(st.booleans(), min_size=15))
def test_lines_are_those_of_one_reader_whoever_goes_on(
    entries: list[list[tuple[str, dict]]], restarts: list[bool]
) -> None:
    """What a reader remembers is all that the next one needs, and each completed task has one line."""
    whole, current = LogReader(), LogReader()
    for offset, (entry, restart) in enumerate(zip(entries, restarts, strict=False), 1):
        at_ms = AT + 7000 * offset
        if restart:
            current = LogReader(current.dump())
        lines = read(whole, offset, *entry, at_ms=at_ms)
        assert read(current, offset, *entry, at_ms=at_ms) == lines
        done = [text for log, text in lines if log == "completed_tasks.log"]
        assert len(done) == sum(name == "task.completed" for name, _ in entry)
        assert current.dump() == whole.dump()
