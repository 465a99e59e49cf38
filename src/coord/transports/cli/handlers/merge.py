"""Merge branches."""

import os
import shlex
from typing import Any

from coord.core.errors import Invalid
from coord.integrations.git.gate.stubs import PROTECTED
from coord.integrations.git.merge import merge as merging
from coord.integrations.git.merge.merge import MergeReport, MergeRequest, MergeStatus, Outcome
from coord.integrations.git.merge.queue_lock import LOCK
from coord.integrations.git.run import Git, as_text
from coord.sdk.client.blocks import LockBlock
from coord.sdk.client.client import Client
from coord.transports import exit_codes
from coord.transports.cli.args import Args
from coord.transports.cli.handlers.locks import describe_wait
from coord.transports.cli.output import Answer, count
from coord.transports.cli.release import release_program
from coord.transports.cli.waiting.line import showing_wait
from coord.transports.cli.watchdog import Watchdog

COLUMNS = ("branch", "status", "commit", "why")
SHORT = 10


class MergeArgs(Args, frozen=True):
    """The arguments of `coord merge`."""

    branches: list[str]
    into: str
    check: str
    check_timeout_s: float
    any_file: bool
    wait_s: float


def merge(client: Client, args: MergeArgs) -> Answer:
    """Merge branches; the answer has an outcome for each."""
    git = Git(os.getcwd())
    try:
        check = tuple(shlex.split(args.check))
    except ValueError as error:
        raise Invalid(f"--check {args.check!r}: {error}", hint="quote it as for a shell") from error
    into = args.into or merging.default_branch(git, PROTECTED)
    wanted = MergeRequest(tuple(args.branches), into, check, args.check_timeout_s, args.any_file, args.wait_s)
    with showing_wait(client, "other merges", args.wait_s, describe_wait):
        return answer_of(merging.merge(client, git, wanted, watch=lambda held: _watchdog(client, held)))


def _watchdog(client: Client, held: LockBlock) -> Watchdog:
    """Return a block that frees the lock of the merge queue if this process is killed in it."""
    return Watchdog(*release_program(client, [LOCK], held.use))


def answer_of(merged: MergeReport) -> Answer:
    """Return the answer to a merge; it fails if a branch was not merged."""
    rows = [{**fields, "why": _why(fields)} for fields in map(_outcome_fields, merged.outcomes)]
    fields: dict[str, Any] = {
        "into": as_text(merged.into),
        "before": merged.before,
        "after": merged.after,
        "branches": [_outcome_fields(outcome) for outcome in merged.outcomes],
        "warnings": [as_text(warning) for warning in merged.warnings],
    }
    if merged.ok:
        return Answer(fields, _merged_line(merged), rows, COLUMNS)
    first = next(row for row in rows if row["status"] not in (MergeStatus.MERGED, MergeStatus.NOTHING_NEW))
    failure = exit_codes.Failure(
        exit_codes.REFUSED,
        first["status"],
        f"cannot merge {first['branch']} into {fields['into']}: {first['why']}",
        first["findings"][0]["next_step"] if first["findings"] else _NEXT[MergeStatus(first["status"])],
    )
    return Answer(fields, f"coord: {failure.message} ({failure.hint})", rows, COLUMNS, failure)


_NEXT = {
    MergeStatus.CONFLICT: "merge the other branch into yours, resolve the conflict under locks, then retry",
    MergeStatus.CHECK_FAILED: "fix it on the branch, then retry",
}


def _outcome_fields(outcome: Outcome) -> dict[str, Any]:
    return {
        "branch": as_text(outcome.branch),
        "tip": outcome.tip,
        "status": outcome.status.value,
        "commit": outcome.commit,
        "files": [as_text(path) for path in outcome.files],
        "parties": [
            {name: as_text(value) for name, value in party._asdict().items()} for party in outcome.parties
        ],
        "findings": [
            {name: as_text(value) for name, value in each._asdict().items()} for each in outcome.findings
        ],
        "said": outcome.said,
    }


def _why(fields: dict[str, Any]) -> str:
    if fields["findings"]:
        return "; ".join(finding["what"] for finding in fields["findings"])
    if fields["status"] == MergeStatus.CONFLICT:
        who = ", ".join(dict.fromkeys(f"{party['who']} ({party['branch']})" for party in fields["parties"]))
        return f"both sides changed {', '.join(fields['files'])}; by {who or 'unknown authors'}"
    if fields["status"] == MergeStatus.CHECK_FAILED:
        return f"the check failed: {(fields['said'].splitlines() or [''])[-1]}"
    return count(len(fields["files"]), "file") if fields["files"] else ""


def _merged_line(merged: MergeReport) -> str:
    new = [as_text(each.branch) for each in merged.outcomes if each.status is MergeStatus.MERGED]
    if not new:
        return f"Nothing to merge into {as_text(merged.into)}"
    warned = "".join(f"; {as_text(warning)}" for warning in merged.warnings)
    return f"Merged ✓ {', '.join(new)} into {as_text(merged.into)} ({merged.after[:SHORT]}){warned}"
