"""`coord doctor`: what stands in the way of working here, and what helps."""

import os
from contextlib import suppress
from types import SimpleNamespace

from coord.core.errors import NotFound, Refused
from coord.core.replies import Liveness
from coord.host.caller import Flags
from coord.host.repository import find_repository
from coord.sdk.reports.doctor import BAD, OK, WARN, Report, examine
from coord.transports import exit_codes as render
from coord.transports.cli.connect import connected
from coord.transports.cli.output import Answer, fields_of

COLUMNS = ("state", "check", "message", "hint")


def doctor(options: SimpleNamespace, given: SimpleNamespace) -> Answer:
    """Look at everything in order; what is bad makes it fail. What can be mended safely is, if asked for."""
    report = _look(options, given)
    if given.fix and _mend(options, report):
        report = _look(options, given)
    rows = fields_of(report.findings)
    return Answer({"checks": rows}, _line(report), rows, COLUMNS, _failure(report))


def _look(options: SimpleNamespace, given: SimpleNamespace) -> Report:
    from coord.integrations.setup.checks import examine_hooks

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
    repository = None if report.error is not None else find_repository(os.getcwd())
    if repository is not None:
        report.findings.extend(examine_hooks(repository, os.environ))
    return report


def _mend(options: SimpleNamespace, report: Report) -> bool:
    """Set hooks up again as they were, and end sessions that are proven dead; return whether it was tried."""
    from coord.integrations.setup.installer import plan_again

    repository = find_repository(os.getcwd())
    if report.error is not None or repository is None:
        return False
    for plan in plan_again(repository, os.environ):
        if plan.old.edits:
            plan.apply()
    if any(each.check == "store" for each in report.findings):
        with connected(options) as client:
            for peer in client.peers():
                if peer.liveness is Liveness.DEAD:
                    with suppress(Refused, NotFound):  # it is looked at again, and may be gone or alive
                        client.dereg(peer.session_id)
    return True


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
