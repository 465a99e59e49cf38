"""The checks of `coord doctor` for hooks: their files are unchanged, and they answer."""

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median

from coord.core.errors import CoordError
from coord.host.repository import Repository, find_repository
from coord.integrations.git.gate.accepted import protected_branches
from coord.integrations.git.gate.hidden_guides import hidden_guides, hidden_text
from coord.integrations.git.gate.stubs import PROTECTED
from coord.integrations.git.run import Git
from coord.integrations.setup.changes import Plan
from coord.integrations.setup.ephemeral import warning
from coord.integrations.setup.git_hooks import GATE, GitSetup
from coord.integrations.setup.http.checks import check_http
from coord.integrations.setup.installer import journal_folder, user_folder
from coord.integrations.setup.journal import Journal, read_journal
from coord.integrations.setup.probe import codex_hooks, probe_gate, probe_hook
from coord.integrations.setup.removal import http_form, plan_repair
from coord.integrations.setup.sandbox_checks import check_sandbox, find_codex
from coord.integrations.setup.switches import disabling_setting, hook_files
from coord.integrations.setup.tools import (
    BY_NAME,
    CLAUDE,
    CODEX,
    TOOLS,
    Tool,
    is_ours,
    is_shared,
    our_hooks,
    program,
    settings_in,
)
from coord.integrations.shell_effects.enforcement_files import INCIDENTS, incidents_of
from coord.sdk.reports.doctor import BAD, OK, WARN, Finding
from coord.sdk.reports.hub import hub_answers

SHOWN_MAX = 3
PROBES = 3
"""How often a hook that is a command is timed."""
INCIDENT_DAYS = 7


def examine_hooks(repository: Repository, environ: Mapping[str, str]) -> list[Finding]:
    """Check the hooks of git and of all installed tools, in each worktree."""
    try:
        journal = read_journal(journal_folder(repository))
        if not journal.edits:
            return _check_missing(repository, environ) + _check_incidents(journal_folder(repository))
        plans = plan_repair(repository, environ)
        found = [_check_files(plans), *_check_problems(plans), _check_gate(repository, environ, journal)]
        found += _check_branches(repository, journal)
        root = repository.root
        if root is not None and (hidden := hidden_guides(repository)):
            message, _, hint = hidden_text(hidden).partition("; run ")
            found.append(Finding("guides", WARN, message, hint))
        if journal.ephemeral:
            found.append(Finding("program", WARN, *warning(journal.ephemeral, environ)))
        if root is not None:
            found += _check_newcomers(root, environ, journal)
            found += _check_program(environ)
            found += _check_parser()
            tools = [BY_NAME[name] for name in journal.tools if name in BY_NAME]
            for tool in tools:
                found += _check_form(tool, root, environ, journal)
            found += _check_worktrees(repository, environ, tools)
            if CODEX in tools:
                found += check_sandbox(repository.commondir, _worktrees(repository), environ)
                found += _check_codex_worktrees(root, environ)
        found += _check_incidents(journal_folder(repository))
    except CoordError as error:
        return [Finding("hooks", BAD, error.message, error.hint)]
    return found


def _check_incidents(coord_folder: str) -> list[Finding]:
    """Look for changes of agents to hooks, settings and coord.toml."""
    since_s = time.time() - INCIDENT_DAYS * 86_400
    recent = [each for each in incidents_of(coord_folder) if each.at_s >= since_s]
    if not recent:
        return []
    last = recent[-1]
    did = "coord put it back" if last.restored else "coord could not put it back"
    at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(last.at_s))
    text = f"session {last.session} changed {last.path} at {at}; {did}"
    more = f" ({len(recent)} such changes in {INCIDENT_DAYS} days)" if len(recent) > 1 else ""
    return [
        Finding(
            "incidents", WARN, f"{text}{more}", f"ask that agent why; then remove {coord_folder}/{INCIDENTS}"
        )
    ]


def _check_missing(repository: Repository, environ: Mapping[str, str]) -> list[Finding]:
    root = repository.root
    used = [tool.title for tool in TOOLS if root is not None and tool.is_used_in(root)]
    if not used or read_journal(user_folder(environ)).edits:
        return []
    verb = "works" if len(used) == 1 else "work"
    return [Finding("hooks", WARN, f"{', '.join(used)} {verb} without hooks here", "coord init")]


def _check_newcomers(root: str, environ: Mapping[str, str], journal: Journal) -> list[Finding]:
    """Look for tools that were installed after `coord init`, and so have no hooks."""
    new = [tool for tool in TOOLS if tool.name not in journal.tools and tool.is_present(root, environ)]
    return [
        Finding(
            tool.name,
            WARN,
            f"{tool.title} is installed here and has no coord hooks: nothing stops its edits",
            f"coord init --tools {tool.name} --yes",
        )
        for tool in new
        if not _hooks_in(tool, root, environ)
    ]


def _check_parser() -> list[Finding]:
    """Check that hooks can read command lines before they run."""
    from coord.integrations.shell_commands.line import parser_error

    why = parser_error()
    if not why:
        return []
    message = f"hooks cannot read shell commands before they run ({why}), and only find their effects"
    return [Finding("shell grammar", BAD, message, "pip install tree-sitter tree-sitter-bash")]


def _check_program(environ: Mapping[str, str]) -> list[Finding]:
    """Check that agents find the `coord` that their guides name."""
    if shutil.which("coord", path=environ.get("PATH")):
        return []
    folder = os.path.dirname(sys.executable)
    found = f"add {folder} to PATH" if os.path.exists(f"{folder}/coord") else "put coord on the PATH"
    return [
        Finding(
            "program",
            WARN,
            "coord is not on the PATH, so agents cannot run the commands of their guides",
            found,
        )
    ]


def _check_files(plans: Sequence[Plan]) -> Finding:
    """Check that a setup would change nothing now."""
    unfinished = plans[0].previous.unfinished
    if unfinished:
        return Finding(
            "hooks", BAD, f"coord {unfinished} was interrupted", f"coord {unfinished}, or coord doctor --fix"
        )
    paths = [change.path for plan in plans for change in plan.changes]
    if not paths:
        count = sum(len(plan.journal.edits) for plan in plans)
        return Finding(
            "hooks", OK, f"{'1 file is' if count == 1 else f'{count} files are'} as coord init wrote them"
        )
    more = f" and {len(paths) - SHOWN_MAX} more" if len(paths) > SHOWN_MAX else ""
    message = f"{', '.join(paths[:SHOWN_MAX])}{more} changed since coord init"
    return Finding("hooks", BAD, message, "coord doctor --fix")


def _check_problems(plans: Sequence[Plan]) -> list[Finding]:
    """Report what keeps coord from writing its files."""
    return [Finding("hooks", BAD, each.message, each.hint) for plan in plans for each in plan.problems]


def _check_gate(repository: Repository, environ: Mapping[str, str], journal: Journal) -> Finding:
    """Check that git finds the gates, and that they run."""
    work_folder = repository.root or repository.commondir
    stubs = [
        edit.path for edit in journal.edits if edit.how == "hook" and not edit.path.endswith(".coord-former")
    ]
    folder = Git(work_folder).must("rev-parse", "--path-format=absolute", "--git-path", "hooks").text
    named = Git(work_folder).run("config", "--get-regexp", r"^hook\.coord-").code == 0
    if not named and os.path.realpath(folder) not in {
        os.path.realpath(os.path.dirname(stub)) for stub in stubs
    }:
        return Finding(
            "git hooks", BAD, f"git runs only the hooks in {folder}", "git config --unset core.hooksPath"
        )
    wrong = probe_gate(
        [sys.executable, "-I", program(GATE), "pre-push", "coord-doctor", "none"], work_folder, environ
    )
    return Finding(
        "git hooks",
        BAD if wrong else OK,
        wrong or "git runs the gates, and they answer",
        "coord doctor" if wrong else "",
    )


def _check_branches(repository: Repository, journal: Journal) -> list[Finding]:
    """Look for protected branches that were moved without a gate."""
    git = Git(repository.root or repository.commondir)
    branches = protected_branches(git, repository.commondir, journal.protected or PROTECTED)
    return [
        Finding(
            "branches",
            WARN,
            f"{each.ref.removeprefix('refs/heads/')} was moved to {each.tip[:10]} without its gate",
            f"check it now: git update-ref {each.ref} {each.tip}"
            f" (to move it back: git update-ref {each.ref} {each.accepted[-1]})",
        )
        for each in branches
        if each.bypassed
    ]


def _hooks_in(tool: Tool, root: str, environ: Mapping[str, str]) -> list[dict[str, object]]:
    """Return our hooks before a call in the settings that a tool reads in a worktree."""
    paths = hook_files(tool, root, environ)
    return [hook for path in paths for hook in our_hooks(settings_in(path)).get(tool.before, [])]


def _check_settings(tool: Tool, root: str, environ: Mapping[str, str]) -> Finding | None:
    """Check that the settings of a tool in a worktree have our hook, and that none disables it."""
    try:
        if not _hooks_in(tool, root, environ):
            return Finding(tool.name, BAD, f"{tool.title} has no coord hook", "coord doctor --fix")
    except CoordError as error:
        return Finding(tool.name, BAD, error.message, error.hint)
    if switch := disabling_setting(tool, root, environ):
        return Finding(
            tool.name,
            BAD,
            f"{switch.path} disables hooks: {switch.name}",
            f"remove {switch.name} from {switch.path}",
        )
    return None


def _worktrees(repository: Repository) -> list[str]:
    return GitSetup(repository, journal_folder(repository)).worktrees


def _check_worktrees(
    repository: Repository, environ: Mapping[str, str], tools: Sequence[Tool]
) -> list[Finding]:
    """Check the settings in every other worktree."""
    others = _worktrees(repository)[1:]
    found: list[Finding] = []
    for root in others:
        wrong = [each for tool in tools if (each := _check_settings(tool, root, environ))]
        found += [
            Finding(f"worktree {os.path.basename(root)}", BAD, f"{root}: {each.message}", each.hint)
            for each in wrong
        ]
    if others and not found:
        count = "1 other worktree has" if len(others) == 1 else f"{len(others)} other worktrees have"
        found = [Finding("worktrees", OK, f"{count} the hooks")]
    return found


def _check_form(tool: Tool, root: str, environ: Mapping[str, str], journal: Journal) -> list[Finding]:
    """Check the hooks of a tool in the form that it uses."""
    form = http_form(journal)
    if tool is not CLAUDE or form is None:
        return [_check_tool(tool, root, environ)]
    wrong = _check_settings(tool, root, environ)
    return [wrong] if wrong else check_http(form, root, environ)


def _check_tool(tool: Tool, root: str, environ: Mapping[str, str]) -> Finding:
    """Check that a tool has our hook, that no setting disables it, and that it answers in time."""
    if wrong := _check_settings(tool, root, environ):
        return wrong
    command = str(_hooks_in(tool, root, environ)[0].get("command", ""))
    problem, times = "", list[float]()
    while not problem and len(times) < PROBES:
        began = time.monotonic()
        problem = probe_hook(tool, command, root, environ)
        times.append((time.monotonic() - began) * 1000)
    took = f"{median(times):.0f} ms (p50 of {PROBES})"
    if problem:
        lost = is_shared(command) and not shutil.which("coord", path=environ.get("PATH"))
        hint = "put coord on the PATH" if lost else "coord doctor --fix"
        return Finding(tool.name, BAD, f"{tool.title}: {problem}", hint)
    return (
        _check_trust(root, environ)
        if tool is CODEX
        else Finding(tool.name, OK, f"{tool.title}: the hook answers {_by(root, environ)}in {took}")
    )


def _by(root: str, environ: Mapping[str, str]) -> str:
    """Return who answers hooks here, as a part of a sentence."""
    return "through the hub " if hub_answers(find_repository(root), environ) else ""


def _check_codex_worktrees(root: str, environ: Mapping[str, str]) -> list[Finding]:
    """Warn if `codex --worktree` would start without our hooks: git runs no hook that could add them."""
    of_user = settings_in(f"{CODEX.home(environ)}/{CODEX.user}")
    shared = any(is_shared(str(hook.get("command", ""))) for hook in _hooks_in(CODEX, root, environ))
    if shared or our_hooks(of_user).get(CODEX.before) or not find_codex(environ):
        return []
    message = "codex --worktree starts without hooks: Codex creates that worktree with git's hooks off"
    return [Finding("codex --worktree", WARN, message, "coord init --user; or coord worktree add instead")]


def _check_trust(root: str, environ: Mapping[str, str]) -> Finding:
    """Ask Codex whether it runs our hooks; it silently skips those that nobody trusted."""
    codex = find_codex(environ)
    hooks = codex_hooks(codex, root, environ) if codex else None
    if hooks is None:
        return Finding("codex", OK, "Codex: the hook answers; could not ask Codex whether it trusts the hook")
    ours = [hook for hook in hooks if is_ours(hook)]
    if not ours:
        return Finding(
            "codex", BAD, "Codex does not read the hooks here", f"start codex in {root} and trust the folder"
        )
    untrusted = [hook for hook in ours if hook.get("trustStatus") not in ("trusted", "managed")]
    off = [hook for hook in ours if hook.get("enabled") is False]
    if untrusted or off:
        state = "does not trust" if untrusted else "disables"
        count = f"{len(untrusted or off)} of {len(ours)} coord hooks"
        return Finding(
            "codex", BAD, f"Codex {state} {count}, and skips them", "start codex here and enter /hooks"
        )
    return Finding("codex", OK, f"Codex: the hook answers, and Codex trusts all {len(ours)}")
