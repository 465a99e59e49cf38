"""What `coord doctor` finds out about hooks: are they as they were set up, and do they answer?"""

import os
import shutil
import sys
import tomllib
from collections.abc import Mapping

from coord.core.errors import CoordError
from coord.host.repository import Repository
from coord.integrations.git.run import Git
from coord.integrations.setup.git_hooks import GATE
from coord.integrations.setup.installer import plan_again, record_folder, user_folder
from coord.integrations.setup.journal import Record, read_record
from coord.integrations.setup.probe import codex_hooks, disabled, play, run_gate
from coord.integrations.setup.tools import (
    BY_NAME,
    CODEX,
    TOOLS,
    Tool,
    is_ours,
    is_shared,
    our_hooks,
    program,
    settings_in,
)
from coord.sdk.reports.doctor import BAD, OK, WARN, Finding

NAMED_MAX = 3
MANAGED = "/etc/claude-code/managed-settings.json"


def examine_hooks(repository: Repository, environ: Mapping[str, str]) -> list[Finding]:
    """Look at the hooks of git and of all tools that were set up."""
    try:
        record = read_record(record_folder(repository))
        if not record.edits:
            return _not_set_up(repository, environ)
        found = [_files(repository, environ), _gate(repository, environ, record)]
        root = repository.root
        if root is not None:
            found += [_tool(BY_NAME[name], root, environ) for name in record.tools if name in BY_NAME]
    except CoordError as error:
        return [Finding("hooks", BAD, error.message, error.hint)]
    return found


def _not_set_up(repository: Repository, environ: Mapping[str, str]) -> list[Finding]:
    root = repository.root
    used = [tool.title for tool in TOOLS if root is not None and tool.used_in(root)]
    if not used or read_record(user_folder(environ)).edits:
        return []
    return [Finding("hooks", WARN, f"nothing holds {', '.join(used)} to the locks here", "coord init")]


def _files(repository: Repository, environ: Mapping[str, str]) -> Finding:
    """Look whether all files are as a set-up would leave them now."""
    plans = plan_again(repository, environ)
    paths = [change.path for plan in plans for change in plan.changes]
    if not paths:
        count = sum(len(plan.record.edits) for plan in plans)
        return Finding("hooks", OK, f"{count} files are as coord init left them")
    more = f" and {len(paths) - NAMED_MAX} more" if len(paths) > NAMED_MAX else ""
    text = f"{', '.join(paths[:NAMED_MAX])}{more} should be otherwise"
    return Finding("hooks", BAD, text, "coord doctor --fix")


def _gate(repository: Repository, environ: Mapping[str, str], record: Record) -> Finding:
    """Look whether git finds the gates, and whether they run."""
    root = repository.root or repository.commondir
    stubs = [
        edit.path for edit in record.edits if edit.how == "hook" and not edit.path.endswith(".coord-former")
    ]
    folder = Git(root).must("rev-parse", "--path-format=absolute", "--git-path", "hooks").text
    named = Git(root).run("config", "--get-regexp", r"^hook\.coord-").code == 0
    if not named and os.path.realpath(folder) not in {
        os.path.realpath(os.path.dirname(stub)) for stub in stubs
    }:
        return Finding(
            "git hooks", BAD, f"git looks for hooks in {folder} only", "git config --unset core.hooksPath"
        )
    wrong = run_gate([sys.executable, "-I", program(GATE), "pre-push", "coord-doctor", "none"], root, environ)
    return Finding(
        "git hooks",
        BAD if wrong else OK,
        wrong or "git runs them, and they answer",
        "coord doctor" if wrong else "",
    )


def _tool(tool: Tool, root: str, environ: Mapping[str, str]) -> Finding:
    """Look at one tool: where it has our hook, whether that is switched off, whether it answers."""
    home = tool.home(environ)
    settings_paths = [f"{root}/{tool.local}", f"{root}/{tool.shared}", f"{home}/{tool.user}"]
    settings = {path: settings_in(path) for path in dict.fromkeys(settings_paths)}
    hooks = [hook for each in settings.values() for hook in our_hooks(each).get(tool.before, [])]
    if not hooks:
        return Finding(
            tool.name, BAD, f"{tool.title} has no hook of coord", f"coord init --tools {tool.name} --yes"
        )
    if tool.name == "claude":
        settings[MANAGED] = settings_in(MANAGED)
    if tool is CODEX:
        settings |= {path: _toml_in(path) for path in (f"{root}/.codex/config.toml", f"{home}/config.toml")}
    for path, each in settings.items():
        if switch := disabled(tool, each):
            return Finding(
                tool.name, BAD, f"{path} switches hooks off: {switch}", f"take {switch} out of {path}"
            )
    wrong = play(tool, hooks[0]["command"], root, environ)
    if wrong:
        lost = is_shared(hooks[0]["command"]) and not shutil.which("coord", path=environ.get("PATH"))
        hint = "put coord on the PATH" if lost else "coord doctor --fix"
        return Finding(tool.name, BAD, f"{tool.title}: {wrong}", hint)
    return (
        _trust(root, environ) if tool is CODEX else Finding(tool.name, OK, f"{tool.title}: its hook answers")
    )


def _trust(root: str, environ: Mapping[str, str]) -> Finding:
    """Ask Codex whether it runs our hooks: it leaves out those that nobody trusted, and says nothing."""
    codex = shutil.which("codex", path=environ.get("PATH"))
    text = codex_hooks(codex, root, environ) if codex else None
    if text is None:
        return Finding("codex", OK, "Codex: its hook answers; whether Codex trusts it could not be asked")
    ours = [hook for hook in text if is_ours(hook)]
    if not ours:
        return Finding(
            "codex", BAD, "Codex does not read the hooks here", f"start codex in {root}, and trust the folder"
        )
    untrusted = [hook for hook in ours if hook.get("trustStatus") not in ("trusted", "managed")]
    off = [hook for hook in ours if hook.get("enabled") is False]
    if untrusted or off:
        state = "does not trust" if untrusted else "is set not to run"
        count = f"{len(untrusted or off)} of {len(ours)} hooks of coord"
        return Finding(
            "codex", BAD, f"Codex {state} {count}, and leaves them out", "start codex here, and say /hooks"
        )
    return Finding("codex", OK, f"Codex: its hook answers, and it trusts all {len(ours)}")


def _toml_in(path: str) -> Mapping[str, object]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError):
        return {}
