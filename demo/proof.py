"""The proof: checks the log alone, then compares it with the files and with the replies to the workers.

`find_faults` is a pure function of the log: for a forged log it returns the contradictions.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from demo.conductor import Outcome
from demo.log import Event
from demo.plan import HOT_FILE
from demo.stage import Piece


class Completion(NamedTuple):
    """An accepted result, as the log records it."""

    task: str
    generation: int
    session: str


def find_faults(pieces: Mapping[str, Piece], offsets: Sequence[int], events: Sequence[Event]) -> list[str]:
    """Return contradictions to "one accepted result per task, in order", from the log alone."""
    faults = []
    if list(offsets) != list(range(1, len(offsets) + 1)):
        faults.append("the offsets of the log have a gap or a repetition")
    holders: dict[str, dict[int, str]] = defaultdict(dict)
    completions: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        task = event.fields.get("task", "")
        if event.name == "task.claimed":
            faults += _claim_faults(task, event, holders[task], completions[task])
            early = [need for need in _needs(pieces, task) if not completions[need]]
            faults += [f"{task}: claimed at offset {event.offset} before {need} was done" for need in early]
            holders[task][event.fields["generation"]] = event.fields["session"]
        elif event.name == "task.completed":
            completions[task].append(event)
    for task in pieces:
        faults += _completion_faults(task, completions[task], holders[task])
    unasked = [task for task, done in completions.items() if done and task not in pieces]
    faults += [f"{task}: completed, but nobody asked for it" for task in unasked]
    return faults


def _needs(pieces: Mapping[str, Piece], task: str) -> tuple[str, ...]:
    return pieces[task].depends_on if task in pieces else ()


def _claim_faults(task: str, claim: Event, earlier: dict[int, str], completions: list[Event]) -> list[str]:
    faults = []
    if claim.fields["generation"] != len(earlier) + 1:
        faults.append(f"{task}: claim {len(earlier) + 1} has generation {claim.fields['generation']}")
    if completions:
        faults.append(f"{task}: claimed at offset {claim.offset} although it was done")
    return faults


def _completion_faults(task: str, completions: list[Event], holders: dict[int, str]) -> list[str]:
    if len(completions) != 1:
        return [f"{task}: {len(completions)} accepted results, not one"]
    (completion,) = completions
    generation, session = completion.fields["generation"], completion.fields["session"]
    if generation != max(holders, default=0):
        newest = max(holders, default=0)
        return [f"{task}: the accepted result has generation {generation}, but {newest} was the newest"]
    if holders[generation] != session:
        return [f"{task}: accepted from {session}, but {holders[generation]} held generation {generation}"]
    return []


def find_lock_faults(events: Iterable[Event]) -> list[str]:
    """Return files that two held at once, locks that remain, and planned events that did not happen."""
    faults = []
    held: dict[str, str] = {}
    handed_on = resolved = False
    for event in events:
        fields = event.fields
        if event.name == "lock.acquired":
            other = held.setdefault(fields["resource"], fields["session"])
            if other != fields["session"]:
                faults.append(f"{fields['resource']}: {fields['session']} got it while {other} held it")
            handed_on = handed_on or (fields["resource"] == HOT_FILE and fields.get("waited_ms", 0) > 0)
        elif event.name == "lock.released":
            held.pop(fields["resource"], None)
        elif event.name == "lock.deadlock":
            resolved = resolved or fields["resolved"]
    faults += [f"{resource} is still held by {session}" for resource, session in held.items()]
    if not handed_on:
        faults.append(f"nobody got {HOT_FILE} after waiting for it")
    if not resolved:
        faults.append("no deadlock was broken")
    return faults


def find_lost_lines(folder: Path, pieces: Mapping[str, Piece], events: Iterable[Event]) -> list[str]:
    """Return accepted work that is missing in a file of its task."""
    faults = []
    for event in events:
        piece = pieces.get(event.fields.get("task", ""))
        if event.name != "task.completed" or piece is None:
            continue
        line = f"{piece.task} {event.fields['generation']} {event.fields['session']}"
        for name in piece.files:
            path = folder / name.removeprefix("file:")
            if not path.exists() or line not in path.read_text().splitlines():
                faults.append(f"{name} has lost what {line} wrote")
    return faults


def find_contradictions(events: Iterable[Event], outcome: Outcome) -> list[str]:
    """Return replies to workers that do not agree with the log.

    Only a worker that was killed while submitting may lack the reply that its result was accepted.
    """
    logged = {_named(event) for event in events if event.name == "task.completed"}
    rejected = {_named(event) for event in events if event.name == "task.result_rejected"}
    told = {Completion(r.task, r.generation, r.session) for r in outcome.replies if r.accepted}
    refused = {Completion(r.task, r.generation, r.session) for r in outcome.replies if not r.accepted}
    faults = [
        f"{who.session} was told that {who.task} is accepted; the log knows nothing" for who in told - logged
    ]
    faults += [
        f"{who.session} was refused for {who.task}; the log has it accepted" for who in refused & logged
    ]
    faults += [
        f"{who.session} was refused for {who.task}; the log has no trace" for who in refused - rejected
    ]
    unheard = {who for who in logged - told if who.session not in outcome.killed}
    faults += [f"{who.session} never heard that {who.task} was accepted, though it lived" for who in unheard]
    faults += [
        f"{reply.session} slept through its lease on {reply.task}, and its result was accepted"
        for reply in outcome.replies
        if reply.was_frozen and reply.accepted
    ]
    victims = {event.fields["victim"] for event in events if event.name == "lock.deadlock"}
    faults += [f"{victim} lost a deadlock and was not told" for victim in victims - outcome.losers.keys()]
    return sorted(faults)


def _named(event: Event) -> Completion:
    return Completion(event.fields["task"], event.fields["generation"], event.fields["session"])
