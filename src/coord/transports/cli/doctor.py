"""`coord doctor`: what stands in the way of working here, and what helps."""

import os
from types import SimpleNamespace

from coord.host.who import Flags
from coord.sdk.doctor import BAD, OK, WARN, Report, examine
from coord.transports import render
from coord.transports.cli.output import Answer, fields_of

COLUMNS = ("state", "check", "message", "hint")


def doctor(options: SimpleNamespace, given: SimpleNamespace) -> Answer:
    """Look at everything in order; what is bad makes it fail."""
    report = examine(
        options.url,
        flags=Flags(
            options.session, options.agent, options.role, options.project, options.parent, options.pid
        ),
        tenant=options.tenant,
        cwd=os.getcwd(),
        environ=os.environ,
        accept_clock=given.accept_clock,
    )
    rows = fields_of(report.findings)
    return Answer({"checks": rows}, _line(report), rows, COLUMNS, _failure(report))


def _line(report: Report) -> str:
    worst = [each for state in (BAD, WARN) for each in report.findings if each.state == state]
    if not worst:
        return f"All {report.count(OK)} checks are well"
    first = worst[0]
    hint = f" ({first.hint})" if first.hint else ""
    return f"{report.count(BAD)} bad, {report.count(WARN)} to look at: {first.check}: {first.message}{hint}"


def _failure(report: Report) -> render.Failure | None:
    """Return how it fails: as the first error does, or as a refusal."""
    if report.error is not None:
        return render.failure(report.error)
    bad = next((each for each in report.findings if each.state == BAD), None)
    return None if bad is None else render.Failure(render.REFUSED, "bad", bad.message, bad.hint)
