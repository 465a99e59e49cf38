"""Set coord up and check it."""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from coord.core.errors import CoordError, Invalid, NotFound, Refused
from coord.transports import exit_codes
from coord.transports.cli.args import Args, Options
from coord.transports.cli.connect import connected
from coord.transports.cli.output import Answer, count, fields_of, is_terminal, say

if TYPE_CHECKING:
    from coord.host.repository import Repository
    from coord.integrations.setup.changes import Plan
    from coord.integrations.setup.tools import HttpForm
    from coord.sdk.admin.install import PreparedStore
    from coord.sdk.client.client import Client
    from coord.sdk.reports.doctor import Finding, Report

STORE_COLUMNS = ("url", "tenant", "made", "store_id", "epoch")
HTTP = "http"
HTTP_NOTE = (
    "Claude Code asks your hub by HTTP: it cannot change files while the hub is down, or without its token. "
    'Before you start claude: eval "$(coord token export)"'
)
CHECK_COLUMNS = ("state", "check", "message", "hint")


class InitArgs(Args, frozen=True):
    """The arguments of `coord init`."""

    new_store: bool
    dry_run: bool
    yes: bool
    diff: bool
    shared: bool
    user: bool
    tools: str
    hub: str


def init(options: Options, args: InitArgs) -> Answer | str:
    """Create and pin the store of this repository; write hooks for agents and git."""
    from coord.integrations.setup.installer import journal_folder, plan_repository, plan_user, tools_with
    from coord.integrations.setup.tools import TOOLS, named_tools
    from coord.sdk.client.open import initialise
    from coord.stores.urls import redact

    added = named_tools(args.tools) if args.tools else TOOLS
    if args.new_store and _tool():
        raise Refused(
            "only people may replace the store: every lock in it would be lost",
            hint="ask the person you work for to run: coord init --new-store",
        )
    if args.hub and _tool():
        raise Refused(
            "only people decide whether a hub is started",
            hint=f"ask the person you work for to run: coord init --hub={args.hub}",
        )
    if args.hub == HTTP:
        from coord.integrations.setup.http.form import check_usable

        check_usable(added, os.environ, shared=args.shared, by_user=args.user)
    location = None
    http = _http_form(args.hub)
    if not args.dry_run:
        _set_hub(args.hub)
        _confirm_configuration(yes=args.yes)
        location = initialise(os.getcwd(), os.environ, url=options.url, new_store=args.new_store)
    if location and location.repository is None:
        fields = {"url": redact(location.url), "store_id": location.store_id, "epoch": location.epoch}
        return Answer(fields, f"Your store outside of repositories is {redact(location.url)}")
    repository = _repository()
    tools = tools_with(journal_folder(repository), added)
    tenant = options.tenant or os.environ.get("COORD_TENANT", "")
    shared, by_user = args.shared, args.user
    plans = [
        plan_repository(
            repository, os.environ, tools, shared=shared, by_user=by_user, tenant=tenant, http=http
        )
    ]
    if args.user:
        plans.append(plan_user(os.environ, tools))
    if location is None:
        for problem in (each for plan in plans for each in plan.problems):
            say(str(problem))
        return "".join(plan.diff() for plan in plans)
    fields = {
        "url": redact(location.url),
        "store_id": location.store_id,
        "epoch": location.epoch,
        "repository_id": location.repository_id,
    }
    line = f"The store of this repository is {redact(location.url)}"
    agreed = args.yes or _agrees(plans, line, whole=args.diff)
    if http is not None:
        plans[0].notes.append(HTTP_NOTE)
    if agreed:
        _set_token(options, plans[0])
    return _carry_out(plans, fields, line, agreed=agreed)


def _http_form(how: str) -> "HttpForm | None":
    """Return where Claude Code sends its hooks; None if they are commands."""
    from coord.integrations.setup.http.form import find_form

    return find_form(_repository(), os.environ) if how == HTTP else None


def _set_token(options: Options, plan: "Plan") -> None:
    """Create the token of http hooks before they are written, and end it when they go."""
    from coord.integrations.setup.http.token_file import drop_token, ensure_token
    from coord.integrations.setup.removal import http_form

    planned, previous = http_form(plan.journal), http_form(plan.previous)
    if planned is None and previous is None:
        return
    with connected(options) as client:
        if planned is not None:
            ensure_token(client, os.environ, planned.variable)
        elif previous is not None:
            drop_token(client, os.environ, previous.variable)


def _set_hub(how: str) -> None:
    """Remember whether commands and hooks of this user start a hub; nothing changes if `how` is empty."""
    from coord.host.runtime.start_hub import want

    if how:
        want(os.environ, wanted=how != "off")


def _confirm_configuration(*, yes: bool) -> None:
    """Ask a person whether the `coord.toml` of this repository counts, unless one has confirmed it."""
    from coord.host.caller import shows_agent
    from coord.transports.cli.handlers.trust import configuration_here, confirmed_by_person

    found = configuration_here()
    if found.consent and not found.confirmed and not found.problem and not shows_agent(os.environ):
        confirmed_by_person(found, yes=yes)


class UninstallArgs(Args, frozen=True):
    """The arguments of `coord uninstall`."""

    dry_run: bool
    user: bool
    tools: str


def uninstall(options: Options, args: UninstallArgs) -> Answer | str:
    """Undo `coord init`, or remove the hooks of some tools; the store is kept."""
    from coord.integrations.setup.removal import plan_removal, plan_tools_removal, plan_user_removal
    from coord.integrations.setup.tools import TOOLS, named_tools

    tools = named_tools(args.tools) if args.tools else TOOLS
    if args.user:
        plan = plan_user_removal(os.environ, tools)
    elif args.tools:
        plan = plan_tools_removal(_repository(), os.environ, tools)
    else:
        plan = plan_removal(_repository())
    if args.dry_run:
        return plan.diff()
    plan.apply(by=_tool())
    if not args.user:
        with suppress(CoordError):  # a store that is gone has no token either
            _set_token(options, plan)
    if not args.user and not args.tools:
        _remove_mirrors()
    changed = [change.path for change in plan.changes]
    said = f"Restored {count(len(changed), 'file')}" if changed else "Nothing to undo"
    if args.tools and plan.journal.edits:
        said += f"; the hooks of {', '.join(('git', *plan.journal.tools))} stay"
    fields = {"changed": changed, "notes": plan.notes, "tools": plan.journal.tools}
    return _with_problems(Answer(fields, "; ".join((said, *plan.notes))), [plan])


def _remove_mirrors() -> None:
    """Remove the files of all mirrors; without coord nothing keeps them up to date."""
    from coord.host.runtime.switched_on import switched_on
    from coord.host.store_location import find_location

    with suppress(CoordError):  # a pin that is gone switches nothing on
        location = find_location(os.getcwd(), os.environ)
        if switched_on(location.folder):
            from coord.followers.mirrors.switching import remove_mirrors

            remove_mirrors(location)


def _with_problems(answer: Answer, plans: "list[Plan]") -> Answer:
    """Return the answer with what could not be done, which makes it a failure."""
    problems = [problem for plan in plans for problem in plan.problems]
    fields = {**answer.fields, "problems": [problem._asdict() for problem in problems]}
    if not problems:
        return answer._replace(fields=fields)
    line = "; ".join((answer.line, *map(str, problems)))
    first = problems[0]
    failure = exit_codes.Failure(exit_codes.REFUSED, "unprotected", first.message, first.hint)
    return answer._replace(fields=fields, line=line, failure=failure)


def _repository() -> "Repository":
    from coord.host.repository import find_repository

    repository = find_repository(os.getcwd())
    if repository is None:
        raise Invalid(f"{os.getcwd()} is not in a git repository", hint="git init creates one")
    return repository


def _tool() -> str:
    """Return the name of the calling agent tool; empty for a person."""
    from coord.host.caller import find_caller

    return find_caller(os.environ).tool


def _agrees(plans: "list[Plan]", line: str, *, whole: bool) -> bool:
    """Show the changes to a person, as a diff if wanted, and ask."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)) or not any(plan.changes for plan in plans):
        return False
    say(line)
    answer = "d" if whole else ""
    for plan in () if whole else plans:
        for path, lines in plan.summary():
            say(f"  {path}: {lines}")
    while True:
        if answer in ("d", "diff"):
            for row in "".join(plan.diff() for plan in plans).splitlines():
                say(row)
        say("Change these files? [y/N] (d shows every line)")
        answer = sys.stdin.readline().strip().lower()
        if answer not in ("d", "diff"):
            return answer in ("y", "yes")


def _carry_out(plans: "list[Plan]", fields: dict[str, object], line: str, *, agreed: bool) -> Answer:
    from coord.integrations.git.gate.upstream import note_trusted
    from coord.integrations.setup.ephemeral import warning

    paths = [change.path for plan in plans for change in plan.changes]
    notes = [note for plan in plans for note in plan.notes]
    if agreed:
        for plan in plans:
            plan.apply(by=_tool())
        note_trusted(_repository(), by=_tool())
        tools = ", ".join(plans[0].journal.tools) or "none"
        line += f"; hooks for git and agents ({tools}): {count(len(paths), 'file')} changed"
    elif paths:
        line += f"; coord init --yes writes hooks into {count(len(paths), 'file')} (--dry-run shows them)"
    if folder := plans[0].journal.ephemeral:
        message, command = warning(folder, os.environ)
        notes.insert(0, f"WARNING: {message}; install coord for good: {command}")
    done = {"changed": paths if agreed else [], "proposed": [] if agreed else paths, "notes": notes}
    return _with_problems(Answer({**fields, **done}, "; ".join((line, *notes))), plans)


class CompletionArgs(Args, frozen=True):
    """The arguments of `coord completion`."""

    shell: str
    words: list[str]


def completion(options: Options, args: CompletionArgs) -> str:
    """Return the completion script of a shell, or the words that complete a line."""
    from coord.transports.cli.completion import SCRIPTS, candidates, quietly

    if args.shell in SCRIPTS:
        return SCRIPTS[args.shell]

    def ask(what: str) -> Iterable[str]:
        from coord.host.store_location import find_location

        if not options.url and not find_location(os.getcwd(), os.environ).pinned:
            return []
        with connected(options, create=False) as client:  # to press Tab must not create a store
            return dict.fromkeys(_completions(client, what))

    return "".join(f"{word}\n" for word in candidates(args.words, quietly(ask)))


def _completions(client: "Client", what: str) -> Iterable[str]:
    """Return the words of a kind that the store knows."""
    if what in _COMPLETIONS:
        return _COMPLETIONS[what](client)
    peers = client.peers()
    agents = [peer.agent for peer in peers if peer.agent]
    if what == "agents":
        return agents
    if what == "projects":
        return [client.project, *(peer.project for peer in peers if peer.project)]
    return [*(peer.session_id for peer in peers), *(agents if what == "recipients" else [])]


def _own_locks(client: "Client") -> Iterable[str]:
    from coord.core.locks.commands import ListLocks

    return [lock.resource for lock in client.call(ListLocks(client.caller, own=True))]


_COMPLETIONS: "dict[str, Callable[[Client], Iterable[str]]]" = {
    "tasks": lambda client: [task.task_id for task in client.task_list()],
    "claimed": lambda client: [task.task_id for task in client.task_list(state="in_progress")],
    "tracks": lambda client: [task.track for task in client.task_list() if task.track],
    "held": lambda client: [lock.resource for lock in client.locks()],
    "own": _own_locks,
    "groups": lambda client: [group.name for group in client.groups()],
    "delegations": lambda client: [each.id for each in client.delegations()],
    "tokens": lambda client: [token.id for token in client.tokens()],
    "unread": lambda client: [message.id for message in client.recv(peek=True).messages],
    "questions": lambda client: [question.id for question in client.questions().questions],
}


def version(_options: Options, _args: Args) -> Answer:
    """Return the version of coord and of its Python, and the folder of the package."""
    import coord

    python = ".".join(map(str, sys.version_info[:3]))
    folder = os.path.dirname(coord.__file__)
    fields = {"version": coord.__version__, "python": python, "folder": folder}
    return Answer(fields, f"coord {coord.__version__} (Python {python}, in {folder})")


class ExplainArgs(Args, frozen=True):
    """The arguments of `coord help`."""

    command: list[str]


def explain(_options: Options, args: ExplainArgs) -> str:
    """Return the same text as `--help` after the command."""
    from coord.transports.cli.help import help_of
    from coord.transports.cli.parser import parse

    request = parse([*args.command, "--help"])
    return help_of(request.command, request.noun)


class InstallArgs(Args, frozen=True):
    """The arguments of `coord install`."""

    url: str
    grants: bool
    dry_run: bool


def install(options: Options, args: InstallArgs) -> Answer:
    """Create the schema of a store, or update it."""
    from coord.sdk.admin.install import prepare, required_grants

    if args.url and options.url:
        raise Invalid("the URL is given twice", hint="omit --url")
    url = args.url or options.url
    if args.grants:
        return _rights(required_grants(os.getcwd(), os.environ, url=url, tenant=options.tenant))
    prepared = prepare(os.getcwd(), os.environ, url=url, tenant=options.tenant, dry_run=args.dry_run)
    fields = fields_of(prepared)
    return Answer(fields, _install_line(prepared, dry_run=args.dry_run), [fields], STORE_COLUMNS)


def _rights(statements: list[str]) -> Answer:
    line = "Run these statements as their comments say" if statements else "This store needs no grants"
    return Answer({"grants": statements}, line, drawn=lambda _: "".join(f"{each}\n" for each in statements))


def _install_line(prepared: "PreparedStore", *, dry_run: bool) -> str:
    whose = f"The store of tenant {prepared.tenant}" if prepared.tenant else "The store"
    if dry_run:
        return f"{whose} {'would be created' if prepared.made else 'exists already'}: {prepared.url}"
    return f"{whose} {'was created' if prepared.made else 'existed already and was updated'}: {prepared.url}"


class DoctorArgs(Args, frozen=True):
    """The arguments of `coord doctor`."""

    accept_clock: bool
    fix: bool
    repair: bool
    yes: bool


def doctor(options: Options, args: DoctorArgs) -> Answer:
    """Run all checks in order; with `--fix` repair what is safe to repair."""
    if args.repair:
        return _repair_store(options, args)
    report = _examine(options, args)
    if args.fix and _restore_pin():
        report = _examine(options, args)
    if args.fix and _repair(options, report):
        report = _examine(options, args)
    rows = fields_of(report.findings)
    return Answer({"checks": rows}, _doctor_line(report), rows, CHECK_COLUMNS, _doctor_failure(report))


def _repair_store(options: Options, args: DoctorArgs) -> Answer:
    """Replace a damaged store by what its checksums prove."""
    from coord.host.caller import Flags
    from coord.sdk.admin.repair import repair_store

    if not args.yes:
        raise Invalid(
            "a repair replaces the store; it keeps the damaged file beside it, and every proven record",
            hint="coord doctor --repair --yes",
        )
    flags = Flags(options.session, options.agent, options.role, options.project, options.parent, options.pid)
    done = repair_store(os.getcwd(), os.environ, flags, tenant=options.tenant)
    lost = ", ".join(f"{count} {kind}" for kind, count in sorted(done.lost.items())) or "nothing"
    kept = f"Repaired in epoch {done.epoch}: kept {done.kept} records; lost: {lost}"
    line = f"{kept}; the damaged file is {done.damaged_copy}"
    return Answer(fields_of([done])[0], line)


def _examine(options: Options, args: DoctorArgs) -> "Report":
    from coord.host.caller import Flags
    from coord.host.repository import find_repository
    from coord.integrations.setup.checks import examine_hooks
    from coord.sdk.reports.doctor import examine
    from coord.sdk.reports.hub import examine_hub

    report = examine(
        options.url,
        flags=Flags(
            options.session, options.agent, options.role, options.project, options.parent, options.pid
        ),
        tenant=options.tenant,
        cwd=os.getcwd(),
        environ=os.environ,
        accept_clock=args.accept_clock,
    )
    repository = None if report.error is not None else find_repository(os.getcwd())
    if repository is not None:
        report.findings.extend(examine_hooks(repository, os.environ))
        report.findings.extend(_examine_mirrors(repository))
    report.findings.extend(examine_hub(repository, os.environ))
    if report.error is None:
        report.findings.extend(_examine_reactions())
        report.findings.extend(_examine_telemetry())
    return report


def _examine_telemetry() -> "list[Finding]":
    """Check that tools report to the hub that runs, if a person switched that on."""
    from coord.integrations.telemetry.setup import hub_url
    from coord.integrations.telemetry.switch import read_telemetry
    from coord.sdk.client.client import connect
    from coord.sdk.reports.doctor import OK, WARN, Finding

    try:
        with connect(create=False) as client:
            found = read_telemetry(client)
        if found is None:
            return []
        url = hub_url(os.environ)
    except CoordError as error:
        return [Finding("telemetry", WARN, f"it is on, but {error.message}", error.hint)]
    if url != found.url:
        text = f"tools report to {found.url}, and the hub listens at {url}"
        return [Finding("telemetry", WARN, text, "coord telemetry on, then start the tools again")]
    return [Finding("telemetry", OK, f"on, for {url}")]


def _examine_mirrors(repository: "Repository") -> "list[Finding]":
    from coord.host.runtime.switched_on import switched_on
    from coord.sdk.reports.doctor import OK, WARN, Finding

    folder = f"{repository.commondir}/coord"
    if not switched_on(folder):
        return []
    from coord.followers.mirrors.switching import examine_mirrors

    return [Finding("mirrors", WARN if hint else OK, text, hint) for text, hint in examine_mirrors(folder)]


def _examine_reactions() -> "list[Finding]":
    """Return what is wrong with tables [[on]], if there are any."""
    from coord.followers.reactions.settings import read_settings
    from coord.host.store_location import find_location
    from coord.sdk.reports.doctor import WARN, Finding

    found = read_settings(find_location(os.getcwd(), os.environ), os.environ)
    if not found.reactions and not found.problems:
        return []
    hint = "correct it; coord reactions list shows the others"
    return [_examine_performer(), *(Finding("reactions", WARN, each, hint) for each in found.problems)]


def _examine_performer() -> "Finding":
    """Check that some process performs the reactions."""
    from coord.followers.direct import log_source
    from coord.followers.reactions.performer import NEXT, find_performer
    from coord.sdk.client.client import connect
    from coord.sdk.reports.doctor import OK, WARN, Finding

    try:
        with connect(create=False) as client:
            performer = find_performer(log_source(client))
    except CoordError as error:
        return Finding("reactions", WARN, f"who performs them cannot be found: {error.message}", error.hint)
    counted = count(performer.reactions, "reaction")
    if performer.problem:
        return Finding("reactions", WARN, f"{counted}: {performer.problem}", NEXT)
    by = f", performed by {performer.name}" if performer.name else ""
    return Finding("reactions", OK, f"{counted}{by}")


def _restore_pin() -> bool:
    """Replace a damaged pin by its copy; return whether that was possible."""
    from coord.host.pin import replace_damaged
    from coord.host.repository import find_repository

    repository = find_repository(os.getcwd())
    return repository is not None and replace_damaged(f"{repository.commondir}/coord")


def _repair(options: Options, report: "Report") -> bool:
    """Repair hooks, and end sessions that are dead or name a foreign process; return whether it was tried."""
    from coord.core.sessions.schema import Liveness
    from coord.host.repository import find_repository
    from coord.integrations.setup.removal import repair
    from coord.sdk.reports.doctor import names_foreign_process

    repository = find_repository(os.getcwd())
    if report.error is not None or repository is None:
        return False
    repair(repository, os.environ)
    if any(each.check == "store" for each in report.findings):
        with connected(options) as client:
            for peer in client.peers():
                if peer.liveness is Liveness.DEAD or names_foreign_process(peer):
                    with suppress(Refused, NotFound):  # it may have ended or come back since
                        client.dereg(peer.session_id)
    return True


def _doctor_line(report: "Report") -> str:
    from coord.sdk.reports.doctor import BAD, OK, WARN

    worst = [each for state in (BAD, WARN) for each in report.findings if each.state == state]
    if not worst:
        return f"All {report.count(OK)} checks passed"
    first = worst[0]
    hint = f" ({first.hint})" if first.hint else ""
    counts = f"{report.count(BAD)} bad, {count(report.count(WARN), 'warning')}"
    return f"{counts}: {first.check}: {first.message}{hint}"


def _doctor_failure(report: "Report") -> exit_codes.Failure | None:
    """Return the failure: the first error, or the first bad check."""
    from coord.sdk.reports.doctor import BAD

    if report.error is not None:
        return exit_codes.failure(report.error)
    bad = next((each for each in report.findings if each.state == BAD), None)
    return None if bad is None else exit_codes.Failure(exit_codes.REFUSED, "bad", bad.message, bad.hint)


class HookArgs(Args, frozen=True):
    """The arguments of `coord hook`."""

    tool: str


def hook(_options: Options, args: HookArgs) -> NoReturn:
    """Answer an event of a coding agent, and end this process."""
    from coord.integrations.hooks.hook import Hook

    Hook(args.tool).run()
