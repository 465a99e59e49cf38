"""Run the commands of a line as the shell would: functions, wrappers, builtins, nested shells, programs."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from coord.integrations.shell_commands.programs import READERS, Runner
from coord.integrations.shell_commands.state import Command, Disk, Effects, State, Words, Write, union
from coord.integrations.shell_commands.wrappers import DETACHING, SHELLS, Inner, unwrap

if TYPE_CHECKING:
    from coord.integrations.shell_commands.grammar import Script

DEPTH_MAX = 40
Stdin = str | None
"""The text on standard input, if the line shows it."""
Environ = dict[str, str | None]


class Executor(ABC):
    """Runs commands, and records what they do; `Walker` follows the syntax around them."""

    def __init__(self, disk: Disk, effects: Effects) -> None:
        self.disk = disk
        self.effects = effects
        self.runner = Runner(disk, effects)
        self.runner.git.run_script = self._run_alias
        self._depth = 0

    @abstractmethod
    def run(self, text: str, state: State) -> None:
        """Follow a script."""

    @abstractmethod
    def _visit(self, script: Script, node: Any, state: State, stdin: Stdin) -> None:
        """Follow a node of a script."""

    def _run_alias(self, text: str, folder: str) -> None:
        """Follow an alias of git that is a command line."""
        if self._depth < DEPTH_MAX:
            self.run(text, State(folder, self.disk.environ))

    def execute(
        self, words: Words, environ: Environ, state: State, stdin: Stdin, *, guarded: bool = False
    ) -> None:
        """Run a command: a function of the line, a wrapper, a builtin of the shell, or a program."""
        state.failed = ()
        if not words or not state.folders:
            return
        name = words[0]
        if name is not None and name in state.functions and self._depth < DEPTH_MAX:
            self._call(name, words, state, stdin)
            if not self.runner.knows(name):
                return
        inner = unwrap(words)
        if inner is not None:
            self._unwrapped(inner, words, environ, state, stdin, guarded=guarded)
            return
        command = Command(words, state.folders, environ, guarded)
        self.effects.commands.append(command)
        if command.name in DETACHING:
            self.effects.background = True
        if None in words and command.name not in READERS:
            self.effects.unknown = self.effects.strange = True
        builtin = getattr(self, f"_do_{_BUILTINS.get(command.name, '')}", None)
        if builtin is not None:
            builtin(words[1:], environ, state, stdin)
        elif command.name in SHELLS:
            self._shell(command, environ, state, stdin)
        else:
            self.runner.run(command, state, stdin)

    def _call(self, name: str, words: Words, state: State, stdin: Stdin) -> None:
        """Run a function; branches may have defined it in several ways."""
        outer, given = state.arguments, words[1:]
        state.arguments = None if None in given else tuple(word for word in given if word is not None)
        before = state.copy()
        for number, (script, body) in enumerate(state.functions[name]):
            run = before.copy() if number else state
            self._visit(script, body, run, stdin)
            state.merge(run)
        state.arguments = outer

    def _unwrapped(
        self, inner: Inner, words: Words, environ: Environ, state: State, stdin: Stdin, *, guarded: bool
    ) -> None:
        """Run the command inside of a wrapper."""
        self.effects.background |= os.path.basename(words[0] or "") in DETACHING
        self.effects.unknown |= inner.unknown
        for path in inner.writes:
            self.effects.write(state.folders, path)
        rest = self._with_stdin(inner, stdin) if inner.stdin_words else inner.words
        within = state
        if inner.folder is not None:
            within = state.copy()
            within.folders = tuple(each and os.path.join(each, inner.folder) for each in state.folders)
        if rest:
            before = dict(self.effects.writes)
            guarded |= inner.guarded
            self.execute(rest, {**environ, **inner.environ}, within, stdin, guarded=guarded)
            if inner.guarded:
                self._drop_guarded(words, state, before)
        else:
            self.effects.commands.append(Command(words, state.folders, environ, guarded))
            self.effects.unknown |= None in words

    def _drop_guarded(self, words: Words, state: State, before: dict[Write, None]) -> None:
        """Drop the writes to files that `coord guard` locks first: it waits for them."""
        named = [word for word in words[words.index("guard") + 1 : words.index("--")] if word is not None]
        locked = [
            os.path.normpath(os.path.join(folder, word.removeprefix("file:")))
            for folder in state.folders
            if folder
            for word in named
        ]
        for write in [write for write in self.effects.writes if write not in before]:
            path = os.path.normpath(write.path)
            if any(
                fnmatchcase(path, path_locked) or f"{path}/".startswith(f"{path_locked}/")
                for path_locked in locked
            ):
                del self.effects.writes[write]

    def _with_stdin(self, inner: Inner, stdin: Stdin) -> Words:
        """Return the words of a command of `xargs`."""
        plain = stdin is not None and not any(char in stdin for char in "'\"\\")
        given: Words = tuple((stdin or "").split()) if plain else (None,)
        if not inner.placeholder:
            return (*inner.words, *given)
        found: Words = ()
        for word in inner.words:
            if word is None or inner.placeholder not in word:
                found += (word,)
            else:
                found += tuple(each and word.replace(inner.placeholder, each) for each in given)
        return found

    def _shell(self, command: Command, environ: Environ, state: State, stdin: Stdin) -> None:
        """Follow `sh -c '…'`, and a script on standard input."""
        self.effects.acts = True
        words = command.words[1:]
        number, takes_script = 0, False
        while number < len(words):
            word = words[number]
            if word is None or not (word.startswith(("-", "+")) and word not in ("-", "--")):
                break
            takes_script |= not word.startswith("--") and "c" in word
            number += 2 if word.strip("-+") in ("O", "o", "rcfile", "init-file") else 1
        rest = words[number + (words[number : number + 1] == ("--",)) :]
        inner = state.copy()
        inner.functions = {}
        inner.variables |= environ
        inner.exported |= environ
        text = rest[0] if takes_script and rest else stdin if not rest or rest[0] == "-" else None
        if text is None:
            self.effects.unknown = True
            return
        given = rest[2:] if takes_script else rest[1:]
        inner.arguments = None if None in given else tuple(word for word in given if word is not None)
        self.run(text, inner)

    def _do_cd(self, words: Words, environ: Environ, state: State, stdin: Stdin) -> None:
        """Change the folder; if the new one does not exist now, the old one stays possible."""
        named = [
            word
            for word in words
            if word is None or not re.fullmatch(r"-[LPen@]*|--|\+\d+", word) or word == "-"
        ]
        old = state.folders
        if named == ["-"]:
            state.folders = state.before
        elif not named:
            state.folders = (state.variables.get("HOME"),)
        elif named[0] is None or len(named) > 1 or state.variables.get("CDPATH") or environ.get("CDPATH"):
            state.folders = (None,)
        else:
            path = named[0]
            state.folders = tuple(
                None
                if each is None and not path.startswith("/")
                else os.path.normpath(os.path.join(each or "/", path))
                for each in old
            )
            written = {write.path for write in self.effects.writes}
            if not all(each and self.disk.is_folder(each) and each not in written for each in state.folders):
                physical = tuple(None if each is None else os.path.join(each, path) for each in old)
                state.failed = old
                state.folders = union(union(state.folders, old), physical if ".." in path else ())
        state.before = old
        self.effects.unknown |= None in state.folders

    def _do_popd(self, words: Words, environ: Environ, state: State, stdin: Stdin) -> None:
        state.folders, state.before = union(state.before, (None,)), state.folders

    def _do_eval(self, words: Words, environ: Environ, state: State, stdin: Stdin) -> None:
        self.effects.acts = True
        if None in words:
            self.effects.unknown = True
            state.forget()
        else:
            self.run(" ".join(word for word in words if word is not None), state)

    def _do_source(self, words: Words, environ: Environ, state: State, stdin: Stdin) -> None:
        self.effects.unknown = True
        state.forget()

    def _do_trap(self, words: Words, environ: Environ, state: State, stdin: Stdin) -> None:
        self.effects.unknown = True
        if words and words[0]:
            self.run(words[0], state.copy())

    def _do_alias(self, words: Words, environ: Environ, state: State, stdin: Stdin) -> None:
        self.effects.unknown = True

    def _do_assign(self, words: Words, environ: Environ, state: State, stdin: Stdin) -> None:
        """Forget the variables that `read` and the like assign."""
        for word in words:
            if word is None:
                state.variables = dict.fromkeys(state.variables)
            elif word.isidentifier():
                state.variables[word] = None
        state.variables["REPLY"] = state.variables["MAPFILE"] = None

    def _do_set(self, words: Words, environ: Environ, state: State, stdin: Stdin) -> None:
        if "--" in words:
            given = words[words.index("--") + 1 :]
            state.arguments = None if None in given else tuple(word for word in given if word is not None)

    def _do_shift(self, words: Words, environ: Environ, state: State, stdin: Stdin) -> None:
        state.arguments = state.arguments[1:] if state.arguments is not None and not words else None


_BUILTINS = {
    **dict.fromkeys(("cd", "chdir", "pushd"), "cd"),
    **dict.fromkeys(("source", "."), "source"),
    **dict.fromkeys(("alias", "unalias", "enable", "hash", "bind", "shopt", "setopt", "unsetopt"), "alias"),
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts", "let", "local"), "assign"),
    **{name: name for name in ("popd", "eval", "trap", "set", "shift")},
}
