"""Which files of a worktree a git command writes; git itself is asked which of them differ.

Commands that put committed content into a worktree (`checkout`, `reset --hard`, `stash`, `merge`) need no
lock: the result is committed already. They destroy edits in that worktree, so they are marked `committed`.
"""

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from coord.host.repository import find_repository
from coord.integrations.shell_commands.options import Options, split
from coord.integrations.shell_commands.patches import patched_files
from coord.integrations.shell_commands.state import Command, Disk, Effects, Words

READING = frozenset(
    (
        *("status", "log", "diff", "show", "blame", "annotate", "ls-files", "rev-parse", "grep", "describe"),
        *(
            "shortlog",
            "rev-list",
            "cat-file",
            "ls-tree",
            "ls-remote",
            "for-each-ref",
            "name-rev",
            "merge-base",
        ),
        *("var", "version", "help", "whatchanged", "count-objects", "check-ignore", "check-attr", "show-ref"),
        *("diff-tree", "diff-index", "diff-files", "range-diff", "cherry", "verify-commit", "show-branch"),
    )
)
NO_FILES = frozenset(
    (
        "add",
        "branch",
        "tag",
        "config",
        "remote",
        "fetch",
        "notes",
        "init",
        "clone",
        "gc",
        "update-ref",
        "stage",
    )
)
"""Commands that change something, but no file of the worktree."""
VALUED = (
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--config-env",
    "--super-prefix",
)
PASSED = ("--git-dir", "--work-tree")
RUNS = ("--ext-diff", "-O", "--open-files-in-pager", "--textconv", "--output")
ALIAS_DEPTH_MAX = 4


class GitCall(NamedTuple):
    """A git command without the options before its subcommand."""

    verb: str
    words: Words
    folder: str
    root: str
    passed: tuple[str, ...]
    config: tuple[str, ...]


def global_options(words: Words) -> tuple[list[tuple[str, str]], Words]:
    """Return the options of git before the subcommand, and the rest: the subcommand and its words."""
    found: list[tuple[str, str]] = []
    rest = words[1:]
    while rest and rest[0] is not None and rest[0].startswith("-"):
        name, joined, value = rest[0].partition("=")
        if name in VALUED and not joined:
            found.append((name, (rest[1] if len(rest) > 1 else "") or ""))
            rest = rest[2:]
        else:
            found.append((name, value))
            rest = rest[1:]
    return found, rest


class GitRunner:
    """Records which files the git commands of a line write."""

    def __init__(self, disk: Disk, effects: Effects) -> None:
        self.disk = disk
        self.effects = effects
        self.run_script: Callable[[str, str], None] | None = None
        """Follows an alias that is a command line, in a folder."""

    def run(self, command: Command, stdin: str | None, depth: int = 0) -> None:
        """Record what a git command writes, below each folder that it may run in."""
        options, rest = global_options(command.words)
        if not rest or rest[0] is None:
            self.effects.unknown |= bool(rest) or None in command.words
            return
        verb, words = rest[0], rest[1:]
        config = tuple(value for name, value in options if name in ("-c", "--config-env"))
        unusual = bool(config) or any(name == "--exec-path" and value for name, value in options)
        if verb in READING:
            runs = any(word is None or word.startswith(RUNS) for word in words)
            self.effects.acts |= unusual or runs
            self.effects.unknown |= unusual or runs
            for path in split(words).values("--output"):
                self.effects.write(command.folders, path)
            return
        self.effects.acts = True
        if verb in NO_FILES:
            return
        passed = tuple(f"{name}={value}" for name, value in options if name in PASSED)
        passed += tuple(
            f"{option}={value}"
            for name, option in (("GIT_DIR", "--git-dir"), ("GIT_WORK_TREE", "--work-tree"))
            if (value := command.environ.get(name))
        )
        within = [value for name, value in options if name == "-C"]
        tree = next(
            (each.partition("=")[2] for each in reversed(passed) if each.startswith("--work-tree")), ""
        )
        for folder in command.folders:
            if folder is None and not any(each.startswith("/") for each in within):
                self.effects.unknown = True
                continue
            start = os.path.join(folder or "/", *within)
            root = os.path.normpath(os.path.join(start, tree)) if tree else self._root(start)
            if root is None:
                self.effects.unknown = True
                continue
            self._dispatch(GitCall(verb, words, start, root, passed, config), command, stdin, depth)

    def _root(self, folder: str) -> str | None:
        from coord.core.errors import CoordError

        try:
            repository = find_repository(folder)
        except (CoordError, OSError, ValueError):
            return None
        return repository.root if repository is not None else None

    def _dispatch(self, call: GitCall, command: Command, stdin: str | None, depth: int) -> None:
        method = getattr(self, f"_{call.verb.replace('-', '_')}", None) if call.verb in _VERBS else None
        if method is not None:
            method(call, stdin)
        else:
            self.effects.unknown = True
            if call.verb not in _OTHER_VERBS and depth < ALIAS_DEPTH_MAX:
                self._alias(call, command, stdin, depth)

    def _alias(self, call: GitCall, command: Command, stdin: str | None, depth: int) -> None:
        """Follow an alias, of the line or of the configuration."""
        given = [value for value in call.config if value.lower().startswith(f"alias.{call.verb.lower()}=")]
        found = (
            [given[-1].partition("=")[2]]
            if given
            else self._ask(call, "config", "-z", "--get", f"alias.{call.verb}")
        )
        if not found:
            return
        if found[0].startswith("!"):
            if self.run_script is not None:
                extra = " ".join(f"'{word}'" for word in call.words if word and "'" not in word)
                self.run_script(f"{found[0][1:]} {extra}", call.root)
            return
        words = (*found[0].split(), *call.words)
        self.run(Command(("git", *call.passed, *words), (call.folder,), command.environ), stdin, depth + 1)

    def _ask(self, call: GitCall, *words: str) -> list[str] | None:
        return self.disk.git(call.folder, *call.passed, *words)

    def _names(self, call: GitCall, *words: str, committed: bool = True, paths: Words = ()) -> bool:
        """Record the files that git names, relative to the top of the worktree; return whether it could."""
        plain = [path for path in paths if path is not None]
        self.effects.unknown |= None in paths
        found = self._ask(call, *words, "--", *plain) if plain or "diff" in words else self._ask(call, *words)
        if found is None:
            self.effects.unknown = True
            return False
        for name in found:
            self.effects.write((call.root,), name.rstrip("/"), tree=name.endswith("/"), committed=committed)
        return True

    def _diff(self, call: GitCall, *words: str, committed: bool = True, paths: Words = ()) -> bool:
        return self._names(
            call,
            *(
                "diff",
                "--no-ext-diff",
                "--no-renames",
                "--ignore-submodules",
                "--no-relative",
                "--name-only",
                "-z",
            ),
            *words,
            committed=committed,
            paths=paths,
        )

    def _is_revision(self, call: GitCall, text: str) -> bool:
        return bool(self._ask(call, "rev-parse", "--verify", "-q", "--end-of-options", f"{text}^{{commit}}"))

    def _moved_to(self, call: GitCall, revision: str) -> None:
        """Record what a checkout of a revision changes."""
        text = "@{-1}" if revision == "-" else revision
        if self._is_revision(call, text):
            self._diff(call, "HEAD", text)
        else:
            remote = self._ask(call, "for-each-ref", "--format=%(refname)%00", f"refs/remotes/*/{text}")
            names = [name.strip() for name in remote or [] if name.strip()]
            if names:
                self._diff(call, "HEAD", names[0])
            else:
                self.effects.unknown = True

    def _checkout(self, call: GitCall, stdin: str | None) -> None:
        self.effects.unknown = True  # post-checkout
        words, paths = _at_dashes(call.words)
        options = split(words, "bB", ("orphan", "conflict", "pathspec-from-file"))
        operands = [word for word in options.operands if word is not None]
        if options.has("-f", "--force"):
            self._diff(call, "HEAD")
        if options.has("-b", "-B", "--orphan"):
            for start in operands[:1]:
                self._moved_to(call, start)
            return
        if paths is None and operands and not self._is_revision(call, operands[0]):
            paths, operands = tuple(options.operands), []
            if len(paths) == 1 and paths[0] and not os.path.lexists(os.path.join(call.folder, paths[0])):
                self._moved_to(call, paths[0])
        elif paths is None and len(operands) > 1:
            paths, operands = tuple(options.operands[1:]), operands[:1]
        if paths:
            committed = not operands or operands[0] in ("HEAD", "@")
            self._diff(call, *operands, committed=committed, paths=paths)
        elif operands:
            self._moved_to(call, operands[0])

    def _restore(self, call: GitCall, stdin: str | None) -> None:
        words, paths = _at_dashes(call.words)
        options = split(words, "s", ("source", "conflict", "pathspec-from-file"))
        staged = options.has("-S", "--staged")
        if staged and not options.has("-W", "--worktree"):
            return
        source = options.values("-s", "--source")[-1:] or (["HEAD"] if staged else [])
        committed = not source or source[0] in ("HEAD", "@")
        self._diff(call, *source, committed=committed, paths=(*options.operands, *(paths or ())))

    def _switch(self, call: GitCall, stdin: str | None) -> None:
        self.effects.unknown = True
        options = split(call.words, "cC", ("create", "force-create", "orphan", "conflict"))
        if options.has("-f", "--force", "--discard-changes"):
            self._diff(call, "HEAD")
        for revision in options.operands[:1]:
            if revision is not None:
                self._moved_to(call, revision)

    def _reset(self, call: GitCall, stdin: str | None) -> None:
        options = split(call.words)
        if options.has("--hard", "--merge", "--keep"):
            revisions = [word for word in options.operands if word is not None] or ["HEAD"]
            self._diff(call, revisions[0])
            self._diff(call, "HEAD", revisions[0])

    def _stash(self, call: GitCall, stdin: str | None) -> None:
        verb = call.words[0] if call.words and call.words[0] and not call.words[0].startswith("-") else "push"
        words = call.words[1:] if call.words[:1] == (verb,) else call.words
        if verb in ("push", "save"):
            before, paths = _at_dashes(words)
            options = split(before, "m", ("message", "pathspec-from-file"))
            paths = (*(options.operands if verb == "push" else ()), *(paths or ()))
            self._diff(call, "HEAD", paths=paths)
            if options.has("-u", "--include-untracked", "-a", "--all"):
                excluded = () if options.has("-a", "--all") else ("--exclude-standard",)
                self._names(call, "ls-files", "-o", "-z", "--full-name", *excluded, paths=paths or (":/",))
        elif verb in ("pop", "apply", "branch"):
            operands = [word for word in split(words).operands if word is not None]
            named = operands[1:] if verb == "branch" else operands
            stash = named[0] if named else "stash@{0}"
            stash = f"stash@{{{stash}}}" if stash.isdigit() else stash
            self._diff(call, f"{stash}^1", stash, committed=False)
            for name in (
                self._ask(call, "ls-tree", "-r", "--name-only", "--full-tree", "-z", f"{stash}^3") or []
            ):
                self.effects.write((call.root,), name)
            self.effects.unknown |= verb == "branch"
        elif verb not in ("list", "show", "drop", "clear", "create", "store"):
            self.effects.unknown = True

    def _clean(self, call: GitCall, stdin: str | None) -> None:
        words, paths = _at_dashes(call.words)
        options = split(words, "e", ("exclude",))
        if options.has("-n", "--dry-run"):
            return
        which = (
            ("-i", "--exclude-standard")
            if options.has("-X")
            else ()
            if options.has("-x")
            else ("--exclude-standard",)
        )
        asked = (*options.operands, *(paths or ()))
        found = self._ask(
            call,
            "ls-files",
            "-o",
            "-z",
            "--full-name",
            "--directory",
            *which,
            "--",
            *(each for each in asked if each),
        )
        if found is None or None in asked:
            self.effects.unknown = True
        for name in found or []:
            folder = name.endswith("/")
            if not folder or options.has("-d") or asked:
                self.effects.write((call.root,), name.rstrip("/"), tree=folder, committed=True)

    def _apply(self, call: GitCall, stdin: str | None) -> None:
        options = split(call.words, "pC", ("directory", "exclude", "include", "whitespace"))
        shows = options.has("--check", "--stat", "--numstat", "--summary") and not options.has("--apply")
        if shows or options.has("--cached"):
            return
        below = (options.values("--directory") or [""])[-1]
        strip = (options.values("-p") or ["1"])[-1]
        self._patches(call, options, stdin, below, int(strip) if strip.isdigit() else 1, committed=False)

    def _am(self, call: GitCall, stdin: str | None) -> None:
        self.effects.unknown = True
        options = split(call.words, "pCS", ("directory", "exclude", "include", "whitespace", "patch-format"))
        self._patches(call, options, stdin, "", 1, committed=True)

    def _patches(
        self, call: GitCall, options: Options, stdin: str | None, below: str, strip: int, *, committed: bool
    ) -> None:
        texts = [stdin] if not options.operands or options.operands == ["-"] else []
        for name in options.operands:
            texts += [self.disk.read(os.path.join(call.folder, name)) if name and name != "-" else None] * (
                name != "-"
            )
        for text in texts:
            if text is None:
                self.effects.unknown = True
                continue
            for path in patched_files(text, strip):
                self.effects.write((call.root, call.folder), os.path.join(below, path), committed=committed)

    def _rm(self, call: GitCall, stdin: str | None) -> None:
        words, paths = _at_dashes(call.words)
        options = split(words, "", ("pathspec-from-file",))
        if options.has("--cached", "-n", "--dry-run"):
            return
        named = (*options.operands, *(paths or ()))
        self._names(call, "ls-files", "-z", "--full-name", committed=False, paths=named)

    def _update_index(self, call: GitCall, stdin: str | None) -> None:
        """Whoever lets git overlook the changes of a file has to be allowed to change it."""
        self.effects.unknown = True
        words, paths = _at_dashes(call.words)
        options = split(words, "", ("chmod", "cacheinfo", "index-version"))
        if options.has("--assume-unchanged", "--skip-worktree"):
            for path in (*options.operands, *(paths or ())):
                if path is not None:
                    self.effects.write((call.folder,), path)

    def _mv(self, call: GitCall, stdin: str | None) -> None:
        options = split(call.words)
        if options.has("-n", "--dry-run"):
            return
        *sources, target = options.operands or [None]
        for source in (*sources, target):
            if source is None or target is None:
                self.effects.unknown = True
                continue
            whole = self.disk.is_folder(os.path.join(call.folder, source))
            if source is not target:
                self.effects.write((call.folder,), source, tree=whole)
                inside = self.disk.is_folder(os.path.join(call.folder, target))
                name = os.path.join(target, os.path.basename(source.rstrip("/"))) if inside else target
                self.effects.write((call.folder,), name, tree=whole)

    def _merge(self, call: GitCall, stdin: str | None) -> None:
        self.effects.unknown = True
        options = split(call.words, "msXF", ("strategy", "strategy-option", "into-name", "cleanup", "file"))
        if options.has("--abort"):
            self._diff(call, "HEAD")
        elif not options.has("--continue", "--quit"):
            for revision in [word for word in options.operands if word] or ["@{upstream}"]:
                self._diff(call, f"HEAD...{revision}")

    def _rebase(self, call: GitCall, stdin: str | None) -> None:
        self.effects.unknown = True
        options = split(call.words, "xsXC", ("onto", "exec", "strategy", "strategy-option", "empty"))
        if options.has("--abort", "--continue", "--skip", "--quit"):
            return
        named = options.values("--onto")[-1:] or [word for word in options.operands if word][:1]
        self._diff(call, f"HEAD...{(named or ['@{upstream}'])[0]}")

    def _pull(self, call: GitCall, stdin: str | None) -> None:
        self.effects.unknown = True  # what the remote has is not known yet
        if self._ask(call, "rev-parse", "--verify", "-q", "@{upstream}"):
            self._diff(call, "HEAD...@{upstream}")

    def _cherry_pick(self, call: GitCall, stdin: str | None) -> None:
        self.effects.unknown = True
        options = split(call.words, "mXsS", ("mainline", "strategy", "strategy-option", "cleanup"))
        for revision in options.operands:
            if revision is None or options.has("--abort", "--continue", "--skip", "--quit"):
                continue
            words = ("log", "-z", "--no-renames", "--name-only", "--format=", "--root", "-m")
            several = () if ".." in revision else ("-1",)
            found = self._ask(call, *words, *several, "--end-of-options", revision)
            for name in found or []:
                self.effects.write((call.root,), name.strip("\n"), committed=True)

    def _revert(self, call: GitCall, stdin: str | None) -> None:
        self._cherry_pick(call, stdin)

    def _worktree(self, call: GitCall, stdin: str | None) -> None:
        self.effects.unknown = True
        if call.words[:1] in (("remove",), ("move",)):
            for path in split(call.words[1:]).operands:
                self.effects.write((call.folder,), path, tree=True, committed=True)


_VERBS = frozenset(
    (
        *("checkout", "restore", "switch", "reset", "stash", "clean", "apply", "am", "rm", "mv", "merge"),
        *("rebase", "pull", "cherry-pick", "revert", "worktree", "update-index"),
    )
)
_OTHER_VERBS = frozenset(
    (
        "commit",
        "push",
        "submodule",
        "bisect",
        "read-tree",
        "checkout-index",
        "sparse-checkout",
    )
)
"""Commands that are no alias, and whose effect is unknown."""


def _at_dashes(words: Words) -> tuple[Words, Words | None]:
    """Return the words before `--` and those after it; None if there is no `--`."""
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]


def sets_config(words: Words) -> list[str]:
    """Return the keys that `git config …` changes; "*" if it may be any."""
    options = split(words, "ft", ("file", "type", "default", "blob", "comment", "value", "url"))
    named = [word for word in options.operands if word is not None]
    verbs = ("set", "unset", "rename-section", "remove-section", "edit", "get", "list")
    verb = named[0] if named and named[0] in verbs else ""
    if options.has("--edit", "-e", "--remove-section", "--rename-section") or verb in (
        "edit",
        "rename-section",
    ):
        return ["*"]
    if verb == "remove-section" or None in options.operands:
        return ["*"]
    if verb in ("get", "list") or options.has(
        "--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch"
    ):
        return []
    keys = named[1:] if verb else named
    writes = verb or len(keys) > 1 or options.has("--add", "--unset", "--unset-all", "--replace-all")
    return [re.sub(r"\s", "", keys[0]).lower()] if writes and keys else []
