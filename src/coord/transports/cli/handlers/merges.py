"""`coord merge`."""

import os
import shlex
from types import SimpleNamespace
from typing import Any

from coord.core.errors import Invalid
from coord.integrations.git.gate.stubs import PROTECTED
from coord.integrations.git.merge import merge as merging
from coord.integrations.git.merge.merge import Merge, Outcome, Verdict, Wanted
from coord.integrations.git.run import Git, as_text
from coord.sdk.client.client import Client
from coord.transports import exit_codes as render
from coord.transports.cli.output import Answer

COLUMNS = ("branch", "verdict", "commit", "why")
SHORT = 10


def merge(client: Client, given: SimpleNamespace) -> Answer:
    """Merge branches, and say of each what became of it."""
    git = Git(os.getcwd())
    try:
        check = tuple(shlex.split(given.check))
    except ValueError as error:
        raise Invalid(f"--check {given.check!r}: {error}", hint="quote it as for a shell") from error
    into = given.into or merging.default_branch(git, PROTECTED)
    wanted = Wanted(tuple(given.branch), into, check, given.check_timeout, given.any_file, given.wait)
    return answer_of(merging.merge(client, git, wanted))


def answer_of(merged: Merge) -> Answer:
    """Return the answer of a merge; it failed if one branch is left out."""
    rows = [{**fields, "why": _why(fields)} for fields in map(_fields, merged.outcomes)]
    fields: dict[str, Any] = {
        "into": as_text(merged.into),
        "before": merged.before,
        "after": merged.after,
        "branches": [_fields(outcome) for outcome in merged.outcomes],
        "warnings": [as_text(warning) for warning in merged.warnings],
    }
    if merged.ok:
        return Answer(fields, _told(merged), rows, COLUMNS)
    first = next(row for row in rows if row["verdict"] not in (Verdict.MERGED, Verdict.NOTHING_NEW))
    failure = render.Failure(
        render.REFUSED,
        first["verdict"],
        f"{first['branch']} is not merged into {fields['into']}: {first['why']}",
        first["findings"][0]["next_step"] if first["findings"] else _NEXT[Verdict(first["verdict"])],
    )
    return Answer(fields, f"coord: {failure.message} ({failure.hint})", rows, COLUMNS, failure)


_NEXT = {
    Verdict.CONFLICT: "merge the other branch into yours, resolve it there under locks, and merge again",
    Verdict.CHECK_FAILED: "mend it on the branch, and merge again",
}


def _fields(outcome: Outcome) -> dict[str, Any]:
    return {
        "branch": as_text(outcome.branch),
        "tip": outcome.tip,
        "verdict": outcome.verdict.value,
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
    if fields["verdict"] == Verdict.CONFLICT:
        who = ", ".join(dict.fromkeys(f"{party['who']} ({party['branch']})" for party in fields["parties"]))
        return f"both sides changed {', '.join(fields['files'])}; by {who or 'nobody known'}"
    if fields["verdict"] == Verdict.CHECK_FAILED:
        return f"the check fails: {(fields['said'].splitlines() or [''])[-1]}"
    return f"{len(fields['files'])} files" if fields["files"] else ""


def _told(merged: Merge) -> str:
    new = [as_text(each.branch) for each in merged.outcomes if each.verdict is Verdict.MERGED]
    if not new:
        return f"Nothing new for {as_text(merged.into)}"
    warned = "".join(f"; {as_text(warning)}" for warning in merged.warnings)
    return f"Merged ✓ {', '.join(new)} into {as_text(merged.into)} ({merged.after[:SHORT]}){warned}"
