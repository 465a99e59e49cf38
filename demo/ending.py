"""After the race: every task's lineage, the refused zombies, and the proof in words."""

import coord
from demo.conductor import Outcome
from demo.log import read_log
from demo.plan import PROJECT, TENANT, task_ids
from demo.proof import find_contradictions, find_faults
from demo.stage import Stage


def print_lineage(url: str, tasks: int, outcome: Outcome) -> None:
    """Print generation by generation who held a task, and how that ended."""
    print("\nLINEAGE: every generation of every task\n")
    with coord.TaskCoordinator.open(url) as coordinator:
        for task in task_ids(tasks):
            shown = task
            for past in coordinator.get_claim_history(TENANT, PROJECT, task):
                held = (past.released_at - past.acquired_at).total_seconds()
                killed = "  (killed -9)" if outcome.killed.get(past.session_id) == task else ""
                sign = "✔" if past.result_accepted else "✗"
                print(
                    f"  {shown:<22} {past.generation}  {past.session_id:<8} {held:5.2f} s  "
                    f"{sign} {past.release_reason.value}{killed}"
                )
                for late in past.rejected:
                    why = late.rejection_reason
                    print(f"  {'':<22}    ↳ {late.session_id} came back, and was refused: {why}")
                shown = ""


def print_zombies(outcome: Outcome) -> None:
    """Print whose work was turned away."""
    refused = [reply for reply in outcome.replies if not reply.accepted]
    print(f"\nREFUSED: {len(refused)} submissions of workers whose claim had passed to another\n")
    for reply in refused:
        lost = ", its work is lost" if reply.work_lost else ""
        print(
            f"  {reply.session:<8} {reply.task:<22} had generation {reply.generation}, current is"
            f" {reply.current_generation}: {reply.reason}{lost}"
        )


def print_proof(url: str, tasks: int, outcome: Outcome, stage: Stage) -> int:
    """Read the log again from its beginning, and print what it proves; return the exit code."""
    wanted = task_ids(tasks)
    offsets, events = read_log(url)
    faults = find_faults(wanted, offsets, events) + find_contradictions(events, outcome)
    print(f"\nPROOF, from the {len(offsets)} entries and {len(events)} events of the store's log\n")
    if faults:
        for fault in faults:
            print(f"  ✗ {fault}")
        print(f"\nNOT PROVEN: {len(faults)} contradictions")
        return 1
    unheard = len(wanted) - sum(reply.accepted for reply in outcome.replies)
    unheard_words = f" ({unheard} died before it could hear so)" if unheard else ""
    for line in (
        f"the log has no gap: offsets 1 to {len(offsets)}",
        f"{len(wanted)} tasks, {len(wanted)} task.completed events, one for each",
        "each under the highest generation of its task, by the session that held it",
        "the generations of each task are 1, 2, 3 …, and none began after the result",
        f"what the workers were told agrees{unheard_words}, and every refusal is on record",
    ):
        print(f"  ✔ {line}")
    print(
        f"\nPROVEN: {len(wanted)} tasks, {stage.claims} claims, {stage.kills} workers killed, "
        f"{stage.refused} zombies refused, exactly one accepted result per task. {stage.seconds:.1f} s"
    )
    return 0
