"""The record of an accepted result, and the result as callers see it."""

from collections.abc import Iterable

import msgspec

from coord.core import keys
from coord.core.ids import part_id
from coord.core.limits import RECORD_RESULT_BYTES
from coord.core.records import Stored
from coord.core.tasks.schema import Task
from coord.core.tasks.types import TaskResult
from coord.core.transaction import Transaction


class Result(Stored, frozen=True, tag=1):
    """An accepted result: its data, or the digest of large data, or of which generation each part's is."""

    data: msgspec.Raw = msgspec.Raw(b"null")
    digest: str = ""
    part_generations: tuple[int, ...] = ()


def shown_result(tx: Transaction, tenant: str, project: str, task_id: str, task: Task) -> TaskResult:
    """Return the accepted result of a generation; data of more than one record can hold is left out."""
    import json  # slow to import, and few look at results

    result = tx.get(keys.result(project, task_id, task.generation), Result) or Result()
    data = None
    if task.result_bytes <= RECORD_RESULT_BYTES:
        data = json.loads(bytes(_whole(tx, project, task_id, result)))
    return TaskResult(
        tenant,
        project,
        task_id,
        task.generation,
        task.session,
        task.agent,
        task.ended_ms,
        accepted=True,
        result_data=data,
        work_product_ref=task.work_product,
        size_bytes=task.result_bytes,
        digest=result.digest,
        part_generations=result.part_generations,
    )


def _whole(tx: Transaction, project: str, task_id: str, result: Result) -> bytes | msgspec.Raw:
    """Return the JSON of a small result, which may be made of those of its parts."""
    if not result.part_generations:
        return result.data
    places = [
        keys.result(project, part_id(task_id, number), generation)
        for number, generation in enumerate(result.part_generations, 1)
    ]
    tx.prefetch(*places)
    return merged(
        bytes((tx.get(place, Result) or Result()).data) if generation else None
        for place, generation in zip(places, result.part_generations, strict=True)
    )


def merged(parts: Iterable[bytes | None]) -> bytes:
    """Return the results of parts as one: a list in their order, null for a part that was skipped."""
    return b'{"parts":[' + b",".join(part or b"null" for part in parts) + b"]}"


def merged_bytes(sizes: Iterable[int | None]) -> int:
    """Return how long `merged` is of parts of these sizes."""
    each = [len(b"null") if size is None else size for size in sizes]
    return len(merged(())) + sum(each) + max(0, len(each) - 1)
