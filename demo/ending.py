"""The output after the run: the lineage of every task, the refused submissions, and the proof in words."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import coord
from demo.author import COORD
from demo.conductor import Outcome
from demo.git_act import Landing
from demo.git_proof import find_git_faults, find_log_faults, find_overwrite_faults
from demo.log import read_log
from demo.plan import PROJECT, TENANT
from demo.proof import find_contradictions, find_faults, find_lock_faults, find_lost_lines
from demo.stage import Stage


def print_lineage(url: str, tasks: Iterable[str], outcome: Outcome) -> None:
    """Print the holder of each generation of each task, and how its claim ended."""
    print("\nLINEAGE: every generation of every task\n")
    with coord.TaskCoordinator.open(url) as coordinator:
        for task in tasks:
            shown = task
            for past in coordinator.get_claim_history(TENANT, PROJECT, task):
                held = (past.released_at - past.acquired_at).total_seconds()
                killed = "  (killed -9)" if outcome.killed.get(past.session_id) == task else ""
                deadlock = "  (lost a deadlock)" if past.note.endswith("(deadlock)") else ""
                sign = "✔" if past.result_accepted else "✗"
                print(
                    f"  {shown:<22} {past.generation}  {past.session_id:<8} {held:5.2f} s  "
                    f"{sign} {past.release_reason.value}{killed}{deadlock}"
                )
                for late in past.rejected:
                    why = late.rejection_reason
                    print(f"  {'':<22}    ↳ {late.session_id} came back, and was refused: {why}")
                shown = ""


def print_losses(outcome: Outcome) -> None:
    """Print the refused submissions, and the victims of deadlocks."""
    refused = [reply for reply in outcome.replies if not reply.accepted]
    print(f"\nREFUSED: {len(refused)} submissions of workers whose claim had passed to another\n")
    for reply in refused:
        lost = ", its work is lost" if reply.work_lost else ""
        print(
            f"  {reply.session:<8} {reply.task:<22} had generation {reply.generation}, current is"
            f" {reply.current_generation}: {reply.reason}{lost}"
        )
    print(f"\nGAVE WAY: {len(outcome.losers)} in a cycle of agents that waited for each other\n")
    for session, cycle in outcome.losers.items():
        print(f"  {session:<8} read: {cycle}")


def print_landing(landing: Landing) -> None:
    """Print the result of each merge, and the overwrite that the hook caught."""
    print("\nGIT: what came to main out of worktrees, and what did not\n")
    for told in landing.told:
        how = "✔ merged" if told.merged else "✗ refused"
        print(f"  {told.session:<8} {told.branch:<11} {told.path:<15} {how}")
        if told.why:
            print(f"  {'':<8} ↳ {told.why}")
    if landing.overwrite is not None:
        overwrite = landing.overwrite
        print(f"\nOVERWRITTEN: {overwrite.path}, by a shell command that no lock could stop\n")
        print(f"  {overwrite.writer:<8} read: {overwrite.writer_told}")
        print(f"  {overwrite.holder:<8} read: {overwrite.holder_told}")


def print_proof(url: str, folder: Path, outcome: Outcome, stage: Stage, landing: Landing) -> int:
    """Read the log again from its beginning, and print what it proves; return the exit code."""
    pieces = stage.pieces
    offsets, events = read_log(url)
    faults = [
        *find_faults(pieces, offsets, events),
        *find_lock_faults(events),
        *find_lost_lines(folder, pieces, events),
        *find_contradictions(events, outcome),
        *find_overwrite_faults(folder, landing, events),
        *find_log_faults(landing, events),
        *find_git_faults(folder, landing, events),
    ]
    print(f"\nPROOF, from {len(offsets)} entries and {len(events)} events of the store's log, and from git\n")
    if faults:
        for fault in faults:
            print(f"  ✗ {fault}")
        print(f"\nFAILED: {len(faults)} contradictions")
        return 1
    merged = sum(told.merged for told in landing.told)
    late = len(landing.told) - merged
    unheard = len(pieces) - sum(reply.accepted for reply in outcome.replies)
    unheard_words = f" ({unheard} died before it could hear so)" if unheard else ""
    for line in (
        f"the log has no gap: offsets 1 to {len(offsets)}",
        f"{len(pieces)} tasks, {len(pieces)} task.completed events, one for each",
        "each under the highest generation of its task, by the session that held it",
        "the generations of each task are 1, 2, 3 …, and none began after the result",
        "no task was begun before all that it depends on was done",
        "no file was locked by two at once, no accepted line is missing in any, and no lock is left",
        "the victim of the deadlock was notified, and the next generation did its task",
        f"the answers to the workers agree with it{unheard_words}, and every refusal is recorded",
        "both sides were notified of the overwrite, neither lost any work, and the holder's work was merged",
        "no branch was merged whose lock another had got since, and who was refused had lost its lock",
        "main is what the accepted merges made of it, one after the other, and every accepted line is there",
        "what was refused is not in main, and is still on its branch, in its worktree",
    ):
        print(f"  ✔ {line}")
    print(
        f"\nPROVEN: {len(pieces)} tasks, {stage.claims} claims, {stage.kills} workers killed, "
        f"{stage.refused} zombies refused, {stage.waits} lock waits, {stage.deadlocks} deadlock broken,\n"
        f"exactly one accepted result per task; {merged} branches merged, {late} refused, "
        f"1 overwrite caught, main intact. {stage.seconds:.1f} s"
    )
    return 0


def print_report(folder: Path, html: str) -> None:
    """Print what `coord report` says of the last minutes; with a file name, write the page of them, too."""
    print("\nREPORT: coord report --since 2m\n", flush=True)
    words = [*COORD, "-o", "table", "report", "--since", "2m"]
    subprocess.run(words, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    if html:
        words = [*COORD, "report", "--since", "10m", "--html", html]
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(f"\nThe page of this run: {html} (open it in a browser; it needs no hub)")
