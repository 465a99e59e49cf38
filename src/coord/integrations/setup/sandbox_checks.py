"""The check of `coord doctor` for the sandbox of Codex: a real command in the real sandbox tries to write."""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from glob import glob

from coord.integrations.setup.probe import run_bounded
from coord.integrations.setup.sandbox import CONFIG, store_folder
from coord.integrations.setup.text.toml_edit import Config, parse, writable_roots
from coord.integrations.setup.tools import CODEX
from coord.sdk.reports.doctor import BAD, OK, WARN, Finding

CHECK = "codex sandbox"
TOTAL_S = 20.0
"""No further worktree is checked after this time."""
USUAL_PATHS = (
    *("~/.local/bin/codex", "~/.npm-global/bin/codex", "~/.volta/bin/codex", "~/.bun/bin/codex"),
    *("/usr/local/bin/codex", "/opt/homebrew/bin/codex"),
    *(
        "~/.vscode/extensions/openai.chatgpt-*/bin/*/codex",
        "~/.cursor/extensions/openai.chatgpt-*/bin/*/codex",
    ),
)
INSIDE = ("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED")
PROBE = (
    'probe="$1/coord-doctor-$$"; if (: > "$probe") 2>/dev/null; then rm "$probe"; echo store; fi; '
    'if [ -w "$2/hooks" ] || [ -w "$2/config" ]; then echo git; fi; echo ran'
)
"""It creates a file in the folder of the store, and looks whether it could change what git runs."""


def find_codex(environ: Mapping[str, str]) -> str:
    """Return the program of Codex: on the PATH, or where its installers put it; empty: none is found."""
    on_path = shutil.which("codex", path=environ.get("PATH"))
    if on_path:
        return on_path
    home = environ.get("HOME") or os.path.expanduser("~")
    found = [path for pattern in USUAL_PATHS for path in sorted(glob(pattern.replace("~", home, 1)))]
    return next((path for path in reversed(found) if os.access(path, os.X_OK)), "")


def check_sandbox(commondir: str, worktrees: Sequence[str], environ: Mapping[str, str]) -> list[Finding]:
    """Try the sandbox in every worktree."""
    folder, codex = store_folder(commondir), find_codex(environ)
    if any(environ.get(name) for name in INSIDE):
        return [Finding(CHECK, OK, "not checked: this command runs inside of a sandbox")]
    if not folder or not codex:
        why = "codex is not found" if folder else "the store is not in a folder of coord"
        return [Finding(CHECK, OK, f"not checked: {why}")]
    found: list[Finding] = []
    started, tried = time.monotonic(), 0
    for root in worktrees:
        if time.monotonic() - started > TOTAL_S:
            left = len(worktrees) - tried
            found.append(Finding(CHECK, WARN, f"no time to check {left} worktrees", "coord doctor there"))
            break
        tried += 1
        wrong = _check(codex, folder, commondir, root, environ)
        found += [wrong] if wrong else []
    if found:
        return found
    where = "here" if tried == 1 else f"in {tried} worktrees"
    return [Finding(CHECK, OK, f"commands in the sandbox of Codex can write the store {where}")]


def _check(codex: str, folder: str, commondir: str, root: str, environ: Mapping[str, str]) -> Finding | None:
    user, project = (_read(path) for path in (f"{CODEX.home(environ)}/config.toml", f"{root}/{CONFIG}"))
    profile = project.get("default_permissions") or user.get("default_permissions") or ""
    # Without this option, `codex sandbox` uses the profile, or else a sandbox that is read-only.
    mode = [] if profile else ["-c", 'sandbox_mode="workspace-write"']
    words = [codex, "sandbox", *mode, "--", "/bin/sh", "-c", PROBE, "sh", folder, commondir]
    code, out, errors = run_bounded(words, root, environ, b"")
    said = out.decode("utf-8", "replace").split()
    if "ran" not in said:
        lines = errors.strip().splitlines()
        why = "no answer in time" if code is None else lines[-1][:200] if lines else f"exit {code}"
        hint = "coord doctor --fix" if os.path.isdir(folder) else "coord init"
        return Finding(CHECK, WARN, f"{root}: Codex cannot start its sandbox: {why}", hint)
    if "git" in said:
        hint = f"remove {commondir} and folders above it from writable_roots in {CODEX.home(environ)}"
        message = f"{root}: the sandbox of Codex lets commands change the hooks or the configuration of git"
        return Finding(CHECK, WARN, message, hint)
    if "store" in said:
        return None
    message = f"{root}: commands in the sandbox of Codex cannot write {folder}, so they can only read locks"
    return Finding(CHECK, BAD, message, _hint(root, folder, project, str(profile)))


def _hint(root: str, folder: str, project: Config, profile: str) -> str:
    if profile.startswith(":"):
        return (
            f'remove default_permissions = "{profile}" from the configuration of Codex, and use sandbox_mode'
        )
    if profile:
        return f'add "{folder}" = "write" to [permissions.{profile}.filesystem] in the configuration of Codex'
    if folder not in (writable_roots(project) or ()):
        return "coord doctor --fix"
    return f"start codex in {root} and trust the folder"


def _read(path: str) -> Config:
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read()) or {}
    except (OSError, ValueError):
        return {}
