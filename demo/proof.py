"""The proof: from the log alone, then against what the workers were told.

`find_faults` is a plain function over the log; give it a forged one and it says what is wrong with it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from demo.conductor import Outcome
from demo.log import Event


class Completion(NamedTuple):
    """An accepted result, as the log tells it."""

    task: str
    generation: int
    session: str


def find_faults(tasks: Sequence[str], offsets: Sequence[int], events: Sequence[Event]) -> list[str]:
    """Return what contradicts "one accepted result per task", going by the log alone."""
    faults = []
    if list(offsets) != list(range(1, len(offsets) + 1)):
        faults.append("the offsets of the log have a gap or a repetition")
    holders: dict[str, dict[int, str]] = defaultdict(dict)
    completions: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        task = event.fields.get("task", "")
        if event.name == "task.claimed":
            faults += _claim_faults(task, event, holders[task], completions[task])
            holders[task][event.fields["generation"]] = event.fields["session"]
        elif event.name == "task.completed":
            completions[task].append(event)
    for task in tasks:
        faults += _completion_faults(task, completions[task], holders[task])
    faults += [f"{task}: completed, but nobody asked for it" for task in completions.keys() - set(tasks)]
    return faults


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


def find_contradictions(events: Iterable[Event], outcome: Outcome) -> list[str]:
    """Return where the workers' own replies do not agree with the log.

    Only one that was killed in the act of submitting may not know that its result was accepted.
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
    return sorted(faults)


def _named(event: Event) -> Completion:
    return Completion(event.fields["task"], event.fields["generation"], event.fields["session"])
