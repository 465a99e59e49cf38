"""A task that was split is done when its parts are; its result names theirs and copies nothing."""

import msgspec

from coord.core import keys
from coord.core.ids import part_ids, work_product_ref
from coord.core.tasks.result_records import Result, merged_bytes
from coord.core.tasks.schema import DONE, RELEASED, UNCLAIMED, Task, TaskMerged
from coord.core.tasks.types import ReleaseReason, derived_uuid
from coord.core.transaction import Transaction


def merge(tx: Transaction, project: str, task_id: str, parts: int, task: Task, now: int) -> None:
    """Write down that all parts are finished, as a generation of its own, with the generations they had."""
    finished = [tx.get(keys.task(project, name), Task) or UNCLAIMED for name in part_ids(task_id, parts)]
    generations = tuple(part.generation if part.state is DONE else 0 for part in finished)
    generation = task.generation + 1
    size = merged_bytes(part.result_bytes if part.state is DONE else None for part in finished)
    product = work_product_ref(task_id, generation, derived_uuid("merge", project, task_id, generation))
    whole = msgspec.structs.replace(
        task,
        generation=generation,
        state=DONE,
        claim=RELEASED,
        claimed_ms=now,
        ended_ms=now,
        end_reason=ReleaseReason.COMPLETED,
        work_product=product,
        result_bytes=size,
        parts_done=parts,
    )
    tx.put(keys.task(project, task_id), whole)
    tx.put(keys.result(project, task_id, generation), Result(part_generations=generations))
    tx.delete(keys.unfinished(project, task_id))
    skipped = generations.count(0)
    tx.emit(TaskMerged(project, task_id, generation, parts, skipped, product, size))
