"""Commands about what a session remembers."""

from types import SimpleNamespace
from typing import Any

from coord.sdk.client.client import Client
from coord.sdk.client.session_memory import SessionMemory
from coord.transports.cli.output import Answer, fields_of, moment


def show(client: Client, given: SimpleNamespace) -> Answer:
    """Show what a session did and needs to go on."""
    memory = client.session_memory(given.session)
    line = (
        f"{memory.session_id}: {len(memory.active_claims)} claimed, {len(memory.lost_claims)} lost, "
        f"{len(memory.completed_tasks)} finished; {memory.resume.next[0]}"
    )
    return Answer(fields_of(memory), line, _rows(memory), ("what", "is"))


def _rows(memory: SessionMemory) -> list[dict[str, Any]]:
    claims = [
        f"{ref.task_id} (generation {ref.generation}, {ref.expires_in_s:.0f} s left)"
        for ref in memory.active_claims
    ]
    lost = [
        f"{claim.task_id} (generation {claim.generation}, {claim.reason.lower()}"
        f"{f', now with {claim.holder}' if claim.holder else ''})"
        for claim in memory.lost_claims
    ]
    pairs: list[tuple[str, Any]] = [
        ("session", memory.session_id),
        ("user", memory.user_id),
        ("project", memory.project_id),
        ("began", moment(memory.created_ms)),
        ("last active", moment(memory.last_activity_ms)),
        ("claims", claims),
        ("lost", lost),
        ("finished", memory.completed_tasks),
        ("locks", [lock.resource for lock in memory.resume.locks]),
        ("waits for", memory.resume.waiting_for),
        ("messages", memory.resume.unread_messages),
        *((f"track {name or '-'}", _progress(done)) for name, done in (memory.track_progress or {}).items()),
        *(("next", step) for step in memory.resume.next),
    ]
    return [{"what": what, "is": value} for what, value in pairs]


def _progress(done: dict[str, int]) -> str:
    return ", ".join(f"{number} {stage.replace('_', ' ')}" for stage, number in done.items())
