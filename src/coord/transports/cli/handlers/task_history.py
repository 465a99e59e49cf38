"""Show a task, its claims and its results."""

from typing import Any

from coord.core.errors import NotFound
from coord.core.plans.commands import TaskInfo
from coord.core.tasks.types import ClaimHistory, TaskClaim, TaskRefusal, TaskResult, TaskState
from coord.sdk.client.client import Client
from coord.transports.cli.handlers.tasks import TaskArgs, claim_fields, state_of
from coord.transports.cli.output import Answer, count, fields_of, timestamp

HISTORY = ("generation", "session_id", "agent_id", "acquired_at", "released_at", "release_reason", "note")
LINEAGE = (
    "generation",
    "session_id",
    "agent_id",
    "user_id",
    "acquired_at",
    "released_at",
    "outcome",
    "reason",
    "times",
)


def show(client: Client, args: TaskArgs) -> Answer:
    """Show a task."""
    state = client.task_state(args.task)
    try:
        task: TaskInfo | None = client.show_task(args.task)
    except NotFound:
        if not state.generation:
            raise
        task = None  # it was claimed without being added
    fields = {
        "task": fields_of(task) if task is not None else {"task_id": args.task, "state": state.state.value},
        "claim": claim_fields(state.claim) if state.claim is not None else None,
        "result": fields_of(state.result),
        "rejected": fields_of(state.rejected),
        "refused": fields_of(state.refused),
    }
    shown = {**fields["task"], **_result_rows(client, args.task, state)}
    rows = [{"field": name, "value": value} for name, value in shown.items()]
    line = f"{args.task} is {state_of(task) if task is not None else state.state.value}"
    return Answer(fields, line, rows, ("field", "value"))


def _result_rows(client: Client, task_id: str, state: TaskState) -> dict[str, Any]:
    """Return what people want to see of a task's claims: each generation, the result and its author."""
    rows: dict[str, Any] = {}
    ended = client.task_history(task_id) if state.generation else []
    claims = [
        f"{each.generation} {each.agent_id or each.session_id} "
        f"{'accepted' if each.result_accepted else each.release_reason.value.lower()}"
        for each in ended
    ]
    claim = state.claim
    if claim is not None and state.generation not in [each.generation for each in ended]:
        claims.append(f"{state.generation} {claim.agent_id or claim.session_id} {claim.state.value.lower()}")
    if claims:
        rows["generations"] = "; ".join(claims)
    result = state.result
    if result is not None:
        from coord.transports.cli.table import ago

        rows["result_by"] = (
            f"{result.agent_id or result.session_id} ({result.session_id}), generation {result.generation}, "
            f"{ago(timestamp(result.submitted_ms) or '')}"
        )
        large = f"{result.size_bytes} bytes: coord task result {task_id}"
        rows["result"] = large if result.result_data is None else result.result_data
        rows["work_product_ref"] = result.work_product_ref
    return rows


def history(client: Client, args: TaskArgs) -> Answer:
    """List the ended claims of a task."""
    found = fields_of(client.task_history(args.task))
    return Answer({"history": found}, f"{args.task}: {count(len(found), 'ended claim')}", found, HISTORY)


def lineage(client: Client, args: TaskArgs) -> Answer:
    """Show all claims and refusals of a task."""
    state = client.task_state(args.task)
    ended = client.task_history(args.task)
    rows = [_generation_row(each) for each in ended]
    if state.claim is not None and state.generation not in [each.generation for each in ended]:
        rows.append(_claim_row(state.claim))
    rejected = [_rejected_row(each) for each in state.rejected]
    refused = [_refused_row(each) for each in state.refused]
    fields = {
        "task_id": args.task,
        "state": state.state.value,
        "generations": rows,
        "rejected": rejected,
        "refused": refused,
    }
    line = (
        f"{args.task} is {state.state.value}: {count(len(rows), 'generation')},"
        f" {len(rejected)} rejected{f', {len(refused)} refused' if refused else ''}"
    )
    return Answer(fields, line, [*rows, *rejected, *refused], LINEAGE)


def _generation_row(entry: ClaimHistory) -> dict[str, Any]:
    return {
        "generation": entry.generation,
        "session_id": entry.session_id,
        "agent_id": entry.agent_id,
        "user_id": entry.user_id,
        "acquired_at": timestamp(entry.acquired_ms),
        "released_at": timestamp(entry.released_ms),
        "outcome": "ACCEPTED" if entry.result_accepted else entry.release_reason.value,
        "work_product_ref": entry.work_product_ref,
        "reason": entry.note,
    }


def _claim_row(claim: TaskClaim) -> dict[str, Any]:
    shown = claim_fields(claim)
    row = {name: shown[name] for name in ("generation", "session_id", "agent_id")}
    return {**row, "acquired_at": shown["claimed_at"], "released_at": None, "outcome": shown["state"]}


def _rejected_row(result: TaskResult) -> dict[str, Any]:
    return {
        "generation": result.generation,
        "session_id": result.session_id,
        "agent_id": result.agent_id,
        "user_id": result.user_id,
        "submitted_at": timestamp(result.submitted_ms),
        "outcome": "REJECTED",
        "reason": result.rejection_reason.value if result.rejection_reason else "",
        "times": result.times,
    }


def _refused_row(refusal: TaskRefusal) -> dict[str, Any]:
    return {
        "generation": refusal.generation,
        "session_id": refusal.session_id,
        "agent_id": refusal.agent_id,
        "user_id": refusal.user_id,
        "refused_at": timestamp(refusal.refused_ms),
        "operation": refusal.operation.value,
        "outcome": "REFUSED",
        "reason": refusal.reason,
        "times": refusal.times,
    }
