"""Whether a running agent is stuck: every signal has been silent for long enough.

| signal | counts as life |
|---|---|
| a command, a tool call or a commit of its session | until `alert_stuck_seconds` later |
| a tool call under way | for `alert_prompting_seconds`; longer only while its processes are busy |
| processor time, reads and writes of its processes | for `alert_prompting_seconds` after the last command |

An agent that waits for a lock, a task or a person is not stuck. A model call shows in what the processes
read. If nobody can look at the processes, a model call may be under way, so the longer time counts.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from coord.core import keys
from coord.core.alerts.commands import ListWatched, SessionSample, WatchedProcess
from coord.core.alerts.schema import Sample, Watch, Watches
from coord.core.sessions.liveness import evidence_of, liveness, thresholds_of
from coord.core.sessions.queries import every_session
from coord.core.sessions.schema import Session
from coord.core.settings import Settings, settings_of
from coord.core.tasks.activity import activities, state_of
from coord.core.transaction import Transaction

INTERVAL_MS = 60_000
"""How often alerts are checked."""
SAMPLE_MS = 30_000
"""Samples that are closer to each other say too little."""
CPU_SHARE_BUSY = 0.05
"""A process that draws a spinner while it waits uses less than this share of a processor."""
READ_BYTES_BUSY, WRITTEN_BYTES_BUSY = 64 * 1024, 4096
"""What a busy process reads or writes in a minute: an answer of a model, a transcript, a build."""
BUSY_RUNS = 2
"""How many busy samples in a row end an alert: one may be a timer."""
FRESH_MS = 3 * INTERVAL_MS
"""An older sample says nothing about now."""
WATCHED_MAX = 500
RUNNING_STATES = ("working", "starting")


class Running(NamedTuple):
    """A session that does something, and the state that others see."""

    session: Session
    state: str

    @property
    def runs(self) -> bool:
        """Whether it should show activity; a call that never ended counts although its time is over."""
        waits_for_person = self.session.questions > 0
        working = self.state in RUNNING_STATES or (bool(self.session.calls) and self.state == "idle")
        return working and not waits_for_person


def agents(tx: Transaction, now: int) -> list[Running]:
    """Return the sessions of agents that have not ended, with their states."""
    living = [each for each in every_session(tx) if not (each.ended_ms or each.person or each.terminal)]
    found = activities(tx, living, now)
    thresholds = thresholds_of(tx)
    return [
        Running(
            each,
            state_of(
                each, liveness(each, now, evidence_of(tx, each), thresholds), found[each.session_id], now
            ),
        )
        for each in living
    ]


def is_watched(agent: Running, now: int) -> bool:
    """Whether the processes of an agent are worth a look: it runs, and was not heard of for a minute."""
    session = agent.session
    return agent.runs and session.process is not None and now - session.beat_ms >= INTERVAL_MS


def list_watched(tx: Transaction, _: ListWatched, now: int) -> list[WatchedProcess]:
    """Return the processes of silent sessions."""
    if not settings_of(tx).alert_stuck_seconds:
        return []
    found = [each.session for each in agents(tx, now) if is_watched(each, now)]
    return [
        WatchedProcess(each.session_id, each.process)
        for each in found[:WATCHED_MAX]
        if each.process is not None
    ]


def update_watches(
    tx: Transaction, found: Iterable[Running], samples: Sequence[SessionSample], now: int
) -> dict[str, Watch]:
    """Return what is known about silent sessions after these samples, and keep it."""
    before = tx.get(keys.ALERT_WATCHES, Watches) or Watches()
    by_session = {each.session_id: each for each in samples}
    watches = {}
    for session in [each.session for each in found if is_watched(each, now)][:WATCHED_MAX]:
        taken = by_session.get(session.session_id)
        sample = taken.sample if taken is not None and taken.process == session.process else None
        watches[session.session_id] = next_watch(
            before.sessions.get(session.session_id), session.beat_ms, sample, now
        )
    if watches != before.sessions:
        tx.put(keys.ALERT_WATCHES, msgspec.structs.replace(before, sessions=watches))
    return watches


def next_watch(before: Watch | None, beat_ms: int, sample: Sample | None, now: int) -> Watch:
    """Return a watch after a sample; a sign of life begins it again."""
    if before is None or before.beat_ms != beat_ms:
        before = Watch(beat_ms)
    if sample is None or now - before.sampled_ms < SAMPLE_MS:
        return before
    if before.sample is None:
        return msgspec.structs.replace(before, sample=sample, sampled_ms=now, quiet_ms=now)
    if is_busy(before.sample, sample, now - before.sampled_ms):
        runs = before.busy_runs + 1
        return msgspec.structs.replace(
            before, sample=sample, sampled_ms=now, busy_ms=now, busy_runs=runs, quiet_ms=now
        )
    return msgspec.structs.replace(before, sample=sample, sampled_ms=now, busy_runs=0)


def is_busy(before: Sample, after: Sample, elapsed_ms: int) -> bool:
    """Whether processes did something between two samples, besides timers and spinners."""
    if (before.processes, before.newest) != (after.processes, after.newest):
        return True
    minutes = elapsed_ms / INTERVAL_MS
    return (
        after.cpu_ms - before.cpu_ms >= CPU_SHARE_BUSY * elapsed_ms
        or after.read_bytes - before.read_bytes >= READ_BYTES_BUSY * minutes
        or after.written_bytes - before.written_bytes >= WRITTEN_BYTES_BUSY * minutes
    )


def is_stuck(agent: Running, watch: Watch | None, settings: Settings, now: int) -> bool:
    """Whether every signal of an agent has been silent for long enough."""
    session = agent.session
    stuck_ms, prompting_ms = 1000 * settings.alert_stuck_seconds, 1000 * settings.alert_prompting_seconds
    silent_ms = now - session.beat_ms
    if not stuck_ms or not agent.runs or silent_ms < stuck_ms:
        return False
    calls = any(until_ms > now for until_ms in session.calls.values())
    if silent_ms >= prompting_ms:
        return not (calls and watch is not None and now - watch.busy_ms < stuck_ms)
    if calls or watch is None or watch.sample is None or now - watch.sampled_ms > FRESH_MS:
        return False
    # The first sample is taken up to two intervals after the last sign of life.
    measured_ms = watch.sampled_ms - watch.quiet_ms
    return now - max(session.beat_ms, watch.busy_ms) >= stuck_ms and measured_ms >= stuck_ms - 2 * INTERVAL_MS
