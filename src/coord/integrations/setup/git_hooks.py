"""The git side of a setup: hook stubs, git's configuration and the exclude file.

Existing hooks keep running after ours. Git 2.54 and newer reads hooks from its configuration, so we add
ours there and change no file of others. For older versions we rename an existing hook in `.git/hooks`. A
folder that core.hooksPath names stays unchanged, because husky and similar tools rewrite it: we set
core.hooksPath to our folder, which forwards every hook to the former one.
"""

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property
from shlex import quote

from coord.core.errors import Invalid, Unavailable
from coord.host.caller import TENANT
from coord.host.repository import Repository
from coord.integrations.git.gate.stubs import LOCAL_HOOKS, SHARED_HOOKS, stub_text
from coord.integrations.git.run import Git
from coord.integrations.git.worktree import templates
from coord.integrations.setup.changes import FORMER_SUFFIX, SIGNATURE, Planner
from coord.integrations.setup.files import DRAFT_SUFFIX, PROGRAM_MODE, Content, read_file, write_file
from coord.integrations.setup.text.marked_block import HASH, has_block, with_block, without_block
from coord.integrations.setup.tools import program

GATE = "integrations/git/gate/main.py"
CONFIG_HOOKS_SINCE = (2, 54)
FORWARDED_HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-merge-commit", "commit-msg", "post-commit"),
    *("pre-rebase", "post-merge", "post-rewrite", "pre-auto-gc", "push-to-checkout", "sendemail-validate"),
    *("post-index-change", "update", "proc-receive", "post-receive", "post-update", "pre-receive"),
)
"""Hooks that our folder only forwards to the former folder."""
FORMER_PATH = "coord-setup.formerHooksPath"
"""The setting of git with the former core.hooksPath, for a removal after `.git/coord` is gone."""
POST_CHECKOUT = "post-checkout"
NEW_WORKTREE = r"""#!/bin/sh
# Hook of coord, written by coord init and removed by coord uninstall.
# It copies the untracked agent settings of this repository into a worktree that has none.
# Then it runs the hook that was here before: post-checkout.coord-former
from=@FROM@
if [ "$3" = 1 ] && [ -d "$from" ]; then
    (cd "$from" && find . -type f) | while IFS= read -r file; do
        top=${file#./}
        top=${top%%/*}
        if [ ! -L "$top" ] && [ ! -e "$file" ] && [ ! -L "$file" ]; then
            mkdir -p "${file%/*}" && cp "$from/$file" "$file"
        fi
    done
fi
former="$0.coord-former"
[ -x "$former" ] || exit 0
exec "$former" "$@"
"""
FORWARD = r"""#!/bin/sh
# Written by coord init, removed by coord uninstall: runs the hook of the former core.hooksPath.
former=@FORMER@
[ -x "$former" ] || exit 0
exec "$former" "$@"
"""


class GitSetup:
    """Plans the hooks, configuration and exclude file of one git repository."""

    def __init__(self, repository: Repository, folder: str) -> None:
        """`folder`: the folder of coord inside the git directory."""
        self._repository = repository
        self.commondir = repository.commondir
        self._git = Git(repository.root or repository.commondir)
        self.hooks_folder = f"{folder}/hooks"
        self.templates = f"{repository.commondir}/{templates.FOLDER}"
        self.config = f"{repository.commondir}/config"
        self.exclude = f"{repository.commondir}/info/exclude"

    @cached_property
    def worktrees(self) -> list[str]:
        """The roots of all existing worktrees; the current one comes first."""
        listed = self._git.run("worktree", "list", "--porcelain", "-z")
        found = [name.removeprefix("worktree ") for name in listed.names if name.startswith("worktree ")]
        real = [os.path.realpath(path) for path in found if os.path.lexists(f"{path}/.git")]
        own = [self._repository.root] if self._repository.root else []
        return list(dict.fromkeys((*own, *real)))

    def tracked(self, root: str, paths: list[str]) -> set[str]:
        """Return the files that git tracks."""
        return set(Git(root).must("ls-files", "-z", "--", *(f":(top,literal){path}" for path in paths)).names)

    def version(self) -> tuple[int, ...]:
        """Return the major and minor version of git."""
        found = re.search(r"(\d+)\.(\d+)", self._git.must("version").text)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @property
    def is_shared(self) -> bool:
        """Whether this is a bare repository without worktrees, which others push to."""
        return self._repository.root is None and not self.worktrees

    def plan_gate(self, planner: Planner, protected: Sequence[str], tenant: str) -> None:
        """Plan the gate of a shared repository, if it has protected branches."""
        if protected:
            stubs = {
                hook: stub_text(hook, sys.executable, program(GATE), protected, tenant=tenant, shared=True)
                for hook in SHARED_HOOKS
            }
            self._install_stubs(planner, f"{self._repository.commondir}/hooks", stubs)
        else:
            planner.notes.append(
                "a bare repository gets its gate by coord gate, run in a repository with locks"
            )

    def plan_hooks(
        self, planner: Planner, tenant: str = TENANT, *, version: tuple[int, ...] | None = None
    ) -> None:
        """Plan the stubs, and the configuration that makes git run them."""
        stubs = {hook: stub_text(hook, sys.executable, program(GATE), tenant=tenant) for hook in LOCAL_HOOKS}
        stubs[POST_CHECKOUT] = NEW_WORKTREE.replace("@FROM@", quote(self.templates))
        if (version or self.version()) >= CONFIG_HOOKS_SINCE:
            self._configure_hooks(planner, stubs)
            return
        former = self._former_path(planner)
        if former is None:
            self._install_stubs(planner, f"{self._repository.commondir}/hooks", stubs)
        else:
            self._replace_hooks_path(planner, stubs, former)

    def plan_exclude(self, planner: Planner, names: list[str]) -> None:
        """Plan to hide files from git that exist only for coord."""
        if names:
            base = planner.base(self.exclude) or Content(b"")
            if has_block(base.text, HASH):  # no journal has it
                base = base.with_text(without_block(base.text, HASH))
                planner.set_base(self.exclude, base)
            lines = "\n".join(f"/{name}" for name in names)
            current = read_file(self.exclude)
            if current is None or with_block(current.text, lines, HASH) != current.text:
                current = base.with_text(with_block(base.text, lines, HASH))
            planner.plan_file(self.exclude, "block", current)  # others may have added lines behind ours

    def plan_unrecorded_removal(self, planner: Planner) -> None:
        """Plan to remove parts of coord in the git directory that no journal names."""
        others = (FORMER_SUFFIX, DRAFT_SUFFIX)
        for folder in (f"{self.commondir}/hooks", self.hooks_folder):
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
                path = f"{folder}/{name}"
                stub = None if planner.previous.find(path) else read_file(path)
                if stub is not None and SIGNATURE in stub.data and not name.endswith(others):
                    former = read_file(path + FORMER_SUFFIX)
                    planner.set_base(path, former)
                    planner.set_base(path + FORMER_SUFFIX, None)
        exclude, config = read_file(self.exclude), read_file(self.config)
        if exclude and planner.previous.find(self.exclude) is None:
            planner.set_base(self.exclude, exclude.with_text(without_block(exclude.text, HASH)))
        if config and "coord" in config.text and planner.previous.find(self.config) is None:
            planner.set_base(self.config, self.strip_config(config, None))

    def hides(self, planner: Planner, name: str) -> bool:
        """Return whether git ignores a file at the top of each worktree because of an earlier setup."""
        texts = [
            content.text if content else ""
            for content in (read_file(self.exclude), planner.base(self.exclude))
        ]
        now, without = (f"/{name}" in text.splitlines() for text in texts)
        return now and not without

    def strip_config(self, content: Content, before: Content | None) -> Content:
        """Return a git configuration without our settings; keep those of others."""
        for hook in (*LOCAL_HOOKS, POST_CHECKOUT):
            content = self._edit_config(content, "--remove-section", f"hook.coord-{hook}")
        if self._config_value(content, "core.hooksPath") == self.hooks_folder:
            former = self._config_value(before, "core.hooksPath", "--no-type") or self._config_value(
                content, FORMER_PATH, "--no-type"
            )
            content = self._edit_config(
                content,
                *(
                    ("--replace-all", "core.hooksPath", former)
                    if former
                    else ("--unset-all", "core.hooksPath")
                ),
            )
        return self._edit_config(content, "--remove-section", FORMER_PATH.partition(".")[0])

    def _install_stubs(self, planner: Planner, folder: str, stubs: dict[str, str]) -> None:
        """Plan stubs in git's hook folder, and rename existing hooks."""
        for hook, text in stubs.items():
            path = f"{folder}/{hook}"
            before = planner.base(path)
            if before is not None and SIGNATURE in before.data:  # a stub that no journal has
                before = planner.base(path + FORMER_SUFFIX)
                planner.set_base(path, before)
                planner.set_base(path + FORMER_SUFFIX, None)
            self._plan_stub(planner, path, text)
            if before is not None:
                if planner.base(path + FORMER_SUFFIX) not in (None, before):
                    raise Invalid(
                        f"cannot rename {path}: {path}{FORMER_SUFFIX} exists already",
                        hint="merge the two hooks into one, and run this command again",
                    )
                planner.plan_file(path + FORMER_SUFFIX, "former", before)

    def _replace_hooks_path(self, planner: Planner, stubs: dict[str, str], former: str) -> None:
        """Plan our hook folder, which forwards to the former one, and set core.hooksPath to it."""
        for hook in (*stubs, *FORWARDED_HOOKS):
            forward = FORWARD.replace("@FORMER@", quote(f"{former}/{hook}"))
            path = f"{self.hooks_folder}/{hook}"
            if hook in stubs:
                self._plan_stub(planner, path, stubs[hook])
                path += FORMER_SUFFIX
            self._plan_stub(planner, path, forward)
        own = self._config_value(planner.base(self.config), "core.hooksPath", "--no-type")
        known = {FORMER_PATH: own} if own else {}
        self._plan_config(planner, {**known, "core.hooksPath": self.hooks_folder})

    def _configure_hooks(self, planner: Planner, stubs: dict[str, str]) -> None:
        """Plan our stubs as hooks in git's configuration."""
        pairs: dict[str, str] = {}
        for hook, text in stubs.items():
            path = f"{self.hooks_folder}/{hook}"
            self._plan_stub(planner, path, text)
            pairs |= {f"hook.coord-{hook}.event": hook, f"hook.coord-{hook}.command": quote(path)}
        self._plan_config(planner, pairs)

    def _plan_config(self, planner: Planner, pairs: dict[str, str]) -> None:
        """Plan settings of git; keep a configuration that has them already."""
        base = planner.base(self.config) or Content(b"")
        current = read_file(self.config) or base
        planner.plan_file(
            self.config,
            "config",
            current if self._with_settings(current, pairs) == current else self._with_settings(base, pairs),
        )

    def _with_settings(self, content: Content, pairs: dict[str, str]) -> Content:
        for key, value in pairs.items():
            content = self._edit_config(content, "--replace-all", key, value)
        return content

    def _plan_stub(self, planner: Planner, path: str, text: str) -> None:
        planner.plan_file(path, "hook", Content(os.fsencode(text), PROGRAM_MODE))

    def _former_path(self, planner: Planner) -> str | None:
        """Return the core.hooksPath without coord; None: it is not set."""
        base = planner.base(self.config)
        own = self._config_value(base, "core.hooksPath") if base else None
        listed = self._git.run(
            "config", "--show-scope", "--type=path", "-z", "--get-all", "core.hooksPath"
        ).names
        scopes = dict(zip(listed[::2], listed[1::2], strict=False))
        if "worktree" in scopes or "command" in scopes:
            planner.notes.append(
                "this worktree or process sets core.hooksPath: the git gates do not run there"
            )
        return own or scopes.get("global") or scopes.get("system")

    def _config_value(self, content: Content | None, key: str, kind: str = "--type=path") -> str | None:
        """Return a value of one configuration file; None: it is not set there."""
        if content is None:
            return None
        found = self._git.run("config", kind, "-f", "-", "-z", "--get", key, stdin=content.data)
        return found.names[0] if found.code == 0 and found.names else None

    def _edit_config(self, content: Content, *arguments: str) -> Content:
        """Return a configuration after a `git config` command."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/config"
            write_file(path, content)
            done = self._git.run("config", "-f", path, *arguments)
            if done.code and arguments[0] == "--replace-all":
                raise Unavailable(
                    f"git cannot change its configuration: {done.stderr.strip()}",
                    hint="see git config --list",
                )
            with open(path, "rb") as file:
                return Content(file.read(), content.mode)
