"""The git side of a set-up: stubs among git's hooks, its configuration, and what it shall not track.

Hooks that were there go on running after ours. Where git has hooks in its configuration (2.54), nothing of
others is touched at all. Elsewhere a hook is moved aside in git's own folder. In a folder that somebody named
by core.hooksPath nothing is changed (husky and the like write such folders again): a folder of ours takes its
place, and passes every hook on.
"""

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property
from shlex import quote

from coord.core.errors import Invalid, Unavailable
from coord.host.repository import Repository
from coord.integrations.git.gate.stubs import LOCAL_HOOKS, SHARED_HOOK, stub_text
from coord.integrations.git.run import Git
from coord.integrations.setup.changes import FORMER, Planner
from coord.integrations.setup.files import PROGRAM, Content, put, read
from coord.integrations.setup.marked_block import HASH, with_block
from coord.integrations.setup.tools import program

GATE = "integrations/git/gate/main.py"
CONFIG_HOOKS_SINCE = (2, 54)
PASSED_ON = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-merge-commit", "commit-msg", "post-commit"),
    *("pre-rebase", "post-merge", "post-rewrite", "pre-auto-gc", "push-to-checkout", "sendemail-validate"),
    *("post-index-change", "update", "proc-receive", "post-receive", "post-update", "pre-receive"),
)
"""The hooks of git that are not ours: a folder of ours passes them on to the one in whose place it is."""
OURS = b"written by coord "
POST_CHECKOUT = "post-checkout"
NEW_WORKTREE = r"""#!/bin/sh
# Hook of coord, written by coord init and removed by coord uninstall.
# It brings what agents find in this repository, but git does not know, into a new worktree.
# The hook that was here before is beside it, and runs after it: post-checkout.coord-former
from=@FROM@
case "$1" in "" | *[!0]*) ;; *)
    if [ -d "$from" ]; then
        (cd "$from" && find . -type f) | while IFS= read -r file; do
            top=${file#./}
            top=${top%%/*}
            if [ ! -L "$top" ] && [ ! -e "$file" ] && [ ! -L "$file" ]; then
                mkdir -p "${file%/*}" && cp "$from/$file" "$file"
            fi
        done
    fi ;;
esac
former="$0.coord-former"
[ -x "$former" ] || exit 0
exec "$former" "$@"
"""
FORWARD = r"""#!/bin/sh
# Written by coord init, removed by coord uninstall: runs the hook of the hooks path that was set before.
former=@FORMER@
[ -x "$former" ] || exit 0
exec "$former" "$@"
"""


class GitPart:
    """The git of one repository, as far as set-up changes it."""

    def __init__(self, repository: Repository, folder: str) -> None:
        """`folder` is ours, in the git directory."""
        self._repository = repository
        self.commondir = repository.commondir
        self._git = Git(repository.root or repository.commondir)
        self.hooks_folder = f"{folder}/hooks"
        self.templates = f"{folder}/worktree"
        self.config = f"{repository.commondir}/config"
        self.exclude = f"{repository.commondir}/info/exclude"

    @cached_property
    def worktrees(self) -> list[str]:
        """The tops of all worktrees that are there; the one we are in comes first."""
        listed = self._git.run("worktree", "list", "--porcelain", "-z")
        found = [name.removeprefix("worktree ") for name in listed.names if name.startswith("worktree ")]
        real = [os.path.realpath(path) for path in found if os.path.lexists(f"{path}/.git")]
        own = [self._repository.root] if self._repository.root else []
        return list(dict.fromkeys((*own, *real)))

    def tracked(self, root: str, paths: list[str]) -> set[str]:
        """Return which of the files are in git."""
        return set(Git(root).must("ls-files", "-z", "--", *(f":(top,literal){path}" for path in paths)).names)

    def version(self) -> tuple[int, ...]:
        """Return git's version."""
        found = re.search(r"(\d+)\.(\d+)", self._git.must("version").text)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @property
    def is_shared(self) -> bool:
        """Whether nobody works here: a bare repository, which others push to."""
        return self._repository.root is None and not self.worktrees

    def plan_gate(self, planner: Planner, protected: Sequence[str], tenant: str) -> None:
        """Plan the gate of a shared repository, if there is to be one."""
        if protected:
            stub = stub_text(SHARED_HOOK, sys.executable, program(GATE), protected, tenant=tenant)
            self._wrap_hooks(planner, f"{self._repository.commondir}/hooks", {SHARED_HOOK: stub})
        else:
            planner.notes.append("coord gate, run where the locks are, puts a gate before a bare repository")

    def plan_hooks(self, planner: Planner, *, version: tuple[int, ...] | None = None) -> None:
        """Plan the stubs, and what makes git run them."""
        stubs = {hook: self._stub(hook) for hook in LOCAL_HOOKS}
        stubs[POST_CHECKOUT] = NEW_WORKTREE.replace("@FROM@", quote(self.templates))
        if (version or self.version()) >= CONFIG_HOOKS_SINCE:
            self._name_in_config(planner, stubs)
            return
        former = self._former_path(planner)
        if former is None:
            self._wrap_hooks(planner, f"{self._repository.commondir}/hooks", stubs)
        else:
            self._redirect_hooks(planner, stubs, former)

    def plan_exclude(self, planner: Planner, names: list[str]) -> None:
        """Plan that git does not see files that are there for us only."""
        if names:
            base = planner.base(self.exclude) or Content(b"")
            lines = "\n".join(f"/{name}" for name in names)
            planner.want(self.exclude, "block", base.with_text(with_block(base.text, lines, HASH)))

    def strip_config(self, content: Content, before: Content | None) -> Content:
        """Return git's configuration without what is ours, where others changed it since."""
        for hook in (*LOCAL_HOOKS, POST_CHECKOUT):
            content = self._configured(content, "--remove-section", f"hook.coord-{hook}")
        if self._in(content, "core.hooksPath") == self.hooks_folder:
            former = self._in(before, "core.hooksPath", "--no-type")
            content = self._configured(
                content,
                *(
                    ("--replace-all", "core.hooksPath", former)
                    if former
                    else ("--unset-all", "core.hooksPath")
                ),
            )
        return content

    def _stub(self, hook: str) -> str:
        return stub_text(hook, sys.executable, program(GATE))

    def _wrap_hooks(self, planner: Planner, folder: str, stubs: dict[str, str]) -> None:
        """Put stubs into git's own folder, and what was there beside them."""
        for hook, text in stubs.items():
            path = f"{folder}/{hook}"
            before = planner.base(path)
            if before is not None and OURS in before.data:  # though nobody recorded it
                before = planner.base(path + FORMER)
                planner.rebase(path, before)
                planner.rebase(path + FORMER, None)
            self._want(planner, path, text)
            if before is not None:
                if planner.base(path + FORMER) not in (None, before):
                    raise Invalid(
                        f"{path} is not ours, and there is a {path}{FORMER} already",
                        hint="make one hook of the two, and run it again",
                    )
                planner.want(path + FORMER, "former", before)

    def _redirect_hooks(self, planner: Planner, stubs: dict[str, str], former: str) -> None:
        """Make git look into a folder of ours, which passes on to the folder that was named before."""
        for hook in (*stubs, *PASSED_ON):
            passing = FORWARD.replace("@FORMER@", quote(f"{former}/{hook}"))
            path = f"{self.hooks_folder}/{hook}"
            if hook in stubs:
                self._want(planner, path, stubs[hook])
                path += FORMER
            self._want(planner, path, passing)
        self._want_config(planner, {"core.hooksPath": self.hooks_folder})

    def _name_in_config(self, planner: Planner, stubs: dict[str, str]) -> None:
        """Name stubs in git's configuration, beside whatever hooks there are."""
        pairs: dict[str, str] = {}
        for hook, text in stubs.items():
            path = f"{self.hooks_folder}/{hook}"
            self._want(planner, path, text)
            pairs |= {f"hook.coord-{hook}.event": hook, f"hook.coord-{hook}.command": quote(path)}
        self._want_config(planner, pairs)

    def _want_config(self, planner: Planner, pairs: dict[str, str]) -> None:
        """Plan settings of git; a configuration that has them already stays as others wrote it."""
        base = planner.base(self.config) or Content(b"")
        now = read(self.config) or base
        planner.want(self.config, "config", now if self._with(now, pairs) == now else self._with(base, pairs))

    def _with(self, content: Content, pairs: dict[str, str]) -> Content:
        for key, value in pairs.items():
            content = self._configured(content, "--replace-all", key, value)
        return content

    def _want(self, planner: Planner, path: str, text: str) -> None:
        planner.want(path, "hook", Content(os.fsencode(text), PROGRAM))

    def _former_path(self, planner: Planner) -> str | None:
        """Return the folder that core.hooksPath names without us; None: it names none."""
        base = planner.base(self.config)
        own = self._in(base, "core.hooksPath") if base else None
        listed = self._git.run(
            "config", "--show-scope", "--type=path", "-z", "--get-all", "core.hooksPath"
        ).names
        scopes = dict(zip(listed[::2], listed[1::2], strict=False))
        if "worktree" in scopes or "command" in scopes:
            planner.notes.append(
                "core.hooksPath is set for this worktree or process alone: git's gates do not run there"
            )
        return own or scopes.get("global") or scopes.get("system")

    def _in(self, content: Content | None, key: str, kind: str = "--type=path") -> str | None:
        """Return what a configuration says, alone."""
        if content is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            put(f"{folder}/config", content)
            said = self._git.run("config", kind, "-f", f"{folder}/config", "-z", "--get", key)
            return said.names[0] if said.code == 0 and said.names else None

    def _configured(self, content: Content, *arguments: str) -> Content:
        """Return a configuration as git writes it after a change; one that has nothing to change stays."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/config"
            put(path, content)
            done = self._git.run("config", "-f", path, *arguments)
            if done.code and arguments[0] == "--replace-all":
                raise Unavailable(
                    f"git cannot change its configuration: {done.stderr.strip()}", hint="git config --list"
                )
            with open(path, "rb") as file:
                return Content(file.read(), content.mode)
