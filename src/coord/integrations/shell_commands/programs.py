"""Which files a program writes, by its name and its words."""

import os
import re
from collections.abc import Callable, Iterable, Sequence

from coord.integrations.shell_commands.git_commands import GitRunner
from coord.integrations.shell_commands.options import Options, split
from coord.integrations.shell_commands.patches import patched_files
from coord.integrations.shell_commands.state import Command, Disk, Effects, State, Words
from coord.integrations.shell_commands.tables import (
    CHECK_ONLY,
    EDITORS,
    OUTPUT_OPTIONS,
    REWRITING,
    REWRITING_ALWAYS,
    SUBCOMMANDS,
)

READERS = frozenset(
    (
        *("cat", "head", "tail", "less", "more", "grep", "egrep", "fgrep", "zgrep", "ls", "wc", "pwd", "dir"),
        *("echo", "printf", "true", "false", "test", "[", ":", "which", "type", "stat", "du", "df", "date"),
        *("whoami", "id", "uname", "printenv", "diff", "cmp", "cut", "jq", "cd", "pushd", "popd", "sleep"),
        *("tr", "nl", "basename", "dirname", "realpath", "readlink", "file", "ps", "pgrep", "column", "od"),
        *("md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "strings", "seq", "rev", "tac", "paste"),
        *("comm", "join", "expand", "unexpand", "fmt", "hostname", "uptime", "free", "nproc", "arch"),
        *("exit", "return", "set", "shift", "read", "export", "unset", "declare", "local", "wait", "jobs"),
        *("break", "continue", "umask", "ulimit", "times", "getconf", "tty", "groups", "logname", "zcat"),
    )
)
"""Programs that write no file, whatever their words are."""


class Runner:
    """Records what the programs of a line write."""

    def __init__(self, disk: Disk, effects: Effects) -> None:
        self.disk = disk
        self.effects = effects
        self.git = GitRunner(disk, effects)

    def run(self, command: Command, state: State, stdin: str | None) -> None:
        """Record what a command writes; a program that is not in a table is unknown."""
        name, words = command.name, command.words[1:]
        method = getattr(self, f"_{_METHODS.get(name, '')}", None)
        if name == "git":
            self.git.run(command, stdin)
        elif method is not None:
            self.effects.acts = True
            method(command, words, stdin)
        elif name in READERS:
            return
        elif name in ("find", "sort", "uniq", "rg", "xxd", "env", "coord"):
            self._mostly_reads(command, words)
        elif name in SUBCOMMANDS and any(verb in words for verb in SUBCOMMANDS[name]):
            self._subcommand(command, words)
        elif name in REWRITING or name in REWRITING_ALWAYS or name in EDITORS:
            self._rewrite(command, words)
        elif name in OUTPUT_OPTIONS:
            self._outputs(command, words)
        else:
            self.effects.unknown = self.effects.acts = self.effects.strange = True

    def knows(self, name: str) -> bool:
        """Whether a program is in a table."""
        return (
            name in _METHODS
            or name in READERS
            or name in REWRITING
            or name in REWRITING_ALWAYS
            or name == "git"
        )

    def _write(self, command: Command, path: str | None, *, tree: bool | None = None) -> None:
        """Record a write; a folder counts with everything below it."""
        for folder in command.folders or (None,):
            whole = (
                bool(path) and folder is not None and self.disk.is_folder(os.path.join(folder, path or ""))
            )
            self.effects.write((folder,), path, tree=whole if tree is None else tree or whole)

    def _all(self, command: Command, paths: Iterable[str | None]) -> None:
        for path in paths:
            self._write(command, path)

    def _mostly_reads(self, command: Command, words: Words) -> None:
        """Look for the few options with which these programs write or run something."""
        known = [word for word in words if word is not None]
        name = command.name
        if name == "coord":
            self.effects.acts |= coord_writes(known)
        elif name == "find":
            acts = (
                "-delete",
                "-exec",
                "-execdir",
                "-ok",
                "-okdir",
                "-fls",
                "-fprint",
                "-fprint0",
                "-fprintf",
            )
            for at, word in enumerate(known):
                if word in acts:
                    self.effects.unknown = self.effects.acts = True
                if word.startswith(("-fprint", "-fls")):
                    self._write(command, known[at + 1] if at + 1 < len(known) else None)
        elif name == "sort":
            options = split(words, "koStT", ("output", "key", "buffer-size", "field-separator"))
            for path in options.values("-o", "--output"):
                self.effects.acts = True
                self._write(command, path)
        elif name in ("uniq", "xxd"):
            operands = split(words, "fswclgos").operands
            if len(operands) > 1:
                self.effects.acts = True
                self._write(command, operands[1])
        elif name == "rg" and any(word.startswith("--pre") for word in known):
            self.effects.unknown = self.effects.acts = True

    def _sed(self, command: Command, words: Words, stdin: str | None) -> None:
        options = split(words, "efl", ("expression", "file", "line-length"), attached="iI")
        scripts = options.values("-e", "--expression")
        operands = list(options.operands)
        if not options.has("-e", "-f", "--expression", "--file"):
            scripts = [operands[0] or ""] if operands else []
            operands = operands[1:]
        if options.has("-i", "-I", "--in-place"):
            # The sed of macOS takes the suffix as a word: `sed -i '' s/a/b/ file`.
            mac = (
                bool(operands)
                and "-i" in words
                and words[words.index("-i") + 1 : words.index("-i") + 2] == ("",)
            )
            if mac:
                operands = operands[1:]
            for path in operands:
                self._write(command, path)
                for suffix in options.values("-i", "-I", "--in-place"):
                    if suffix and path:
                        self._write(command, _backup(path, suffix))
        for script in scripts:
            for named in re.findall(r"(?:^|[;{}\s/|,#0-9$!gpIM])[wW]\s+([^\n;}]+)", script):
                self._write(command, named.strip())
        simple = all(re.fullmatch(r"(?:[0-9,$ ]*[pdq]|s([/|,#])[^\n]*\1[gpI0-9]*)", each) for each in scripts)
        self.effects.unknown |= not simple or options.has("-f", "--file") or not scripts

    def _perl(self, command: Command, words: Words, stdin: str | None) -> None:
        """`perl -pi.bak -e … files`, `ruby -i`: everything after the script is rewritten."""
        self.effects.unknown = True
        at, rewrites, inline = 0, False, False
        while at < len(words) and (word := words[at]) is not None and word.startswith("-") and len(word) > 1:
            at += 1
            if word == "--":
                break
            for number, char in enumerate(word[1:], 1):
                if char == "i":
                    rewrites = True
                    break
                if char in "eE":
                    inline = True
                    at += not word[number + 1 :]
                    break
                if char in "IMmFCxDVr":
                    at += char in "Ir" and not word[number + 1 :]
                    break
        if rewrites:
            self._all(command, words[at if inline else at + 1 :])

    def _awk(self, command: Command, words: Words, stdin: str | None) -> None:
        self.effects.unknown = True
        options = split(words, "fFvi", ("include", "file", "assign", "field-separator"))
        if "inplace" in options.values("-i", "--include"):
            self._all(command, options.operands[0 if options.has("-f", "--file") else 1 :])

    def _copy(self, command: Command, words: Words, stdin: str | None) -> None:
        """`cp`, `mv`, `install`, `ln`: the last operand is a folder or the new name."""
        name = command.name
        options = split(
            words,
            {"install": "tmogS", "cp": "tS", "mv": "tS", "ln": "tS", "gcp": "tS", "gmv": "tS"}.get(name, "t"),
            ("target-directory", "suffix", "mode", "owner", "group"),
        )
        operands = options.operands
        if name == "install" and options.has("-d", "--directory"):
            self._mkdir(command, words, stdin)
            return
        sources: list[str | None] = operands[:-1]
        targets: list[str | None] = operands[-1:]
        given = options.values("-t", "--target-directory")
        if given:
            sources, targets = operands, [given[-1]]
        elif len(operands) == 1:
            sources = operands if name == "ln" else [None]
            targets = ["."] if name == "ln" else operands
        if name in ("mv", "gmv"):
            self._all(command, sources)
        backup = options.has("-b", "--backup", "-S", "--suffix")
        self.effects.unknown |= backup
        for target in targets:
            self._copy_to(command, sources, target, into=bool(given), plain=options.has("-T", "-n"))

    def _copy_to(
        self, command: Command, sources: Sequence[str | None], target: str | None, *, into: bool, plain: bool
    ) -> None:
        if target is None:
            self.effects.unknown = True
            return
        for folder in command.folders or (None,):
            where = os.path.join(folder, target) if folder is not None else target
            relative = folder is None and not target.startswith("/")
            inside = not relative and (
                self.disk.is_folder(where) or os.path.normpath(where) in self.effects.made
            )
            for source in sources:
                whole = source is None or folder is None or self.disk.is_folder(os.path.join(folder, source))
                whole |= (
                    source is not None
                    and folder is not None
                    and (os.path.normpath(os.path.join(folder, source)) in self.effects.made)
                )
                if source is None:
                    self.effects.unknown = True
                    self.effects.write((folder,), target, tree=inside)
                    continue
                name = os.path.basename(source.rstrip("/"))
                if name in ("", ".", ".."):
                    self._contents(command, folder, source, target)
                elif (inside or into or target.endswith("/")) and not plain:
                    self.effects.write((folder,), os.path.join(target, name), tree=whole)
                else:
                    self.effects.write((folder,), target, tree=whole or (inside and plain))
                if folder is not None and not relative:
                    self._link(command, folder, source, os.path.join(where, name) if inside else where)
                if whole and folder is not None:
                    self.effects.made.add(os.path.normpath(os.path.join(folder, target)))

    def _link(self, command: Command, folder: str, source: str, path: str) -> None:
        """Record that a path becomes a link: `ln`, or a copy of a link."""
        if command.name in ("ln", "link"):
            self.effects.link(path, os.path.join(folder, source))
            self.effects.link(path, os.path.join(os.path.dirname(path), source))
        elif os.path.islink(os.path.join(folder, source).rstrip("/")):
            self.effects.link(path, os.path.realpath(os.path.join(folder, source)))

    def _contents(self, command: Command, folder: str | None, source: str, target: str) -> None:
        """Record a copy of everything inside of a folder: `cp -r new/. old`, `rsync new/ old`."""
        if folder is None:
            self.effects.unknown = True
            return
        entries = list(self.disk.list_folder(os.path.join(folder, source)))
        for name, is_folder in entries:
            self.effects.write((folder,), os.path.join(target, name), tree=is_folder)
        self.effects.unknown |= not entries

    def _rsync(self, command: Command, words: Words, stdin: str | None) -> None:
        options = split(
            words, "efTBM", ("exclude", "include", "filter", "rsh", "files-from", "out-format", "log-file")
        )
        *sources, target = options.operands or [None]
        deletes = any(name.startswith("--del") for name in options.found)
        if target is None or not sources or ":" in target.partition("/")[0]:
            self.effects.unknown = True
            return
        if deletes or options.has("--remove-source-files"):
            self._write(command, target, tree=True)
            self._all(command, sources if options.has("--remove-source-files") else ())
        for source in sources:
            if source is not None and source.endswith("/"):
                for folder in command.folders:
                    self._contents(command, folder, source, target)
            else:
                self._copy_to(command, [source], target, into=False, plain=False)

    def _remove(self, command: Command, words: Words, stdin: str | None) -> None:
        options = split(
            words, "ns" if command.name == "shred" else "", ("iterations", "size", "random-source")
        )
        self._all(command, options.operands)

    def _tee(self, command: Command, words: Words, stdin: str | None) -> None:
        self._all(
            command, (path for path in split(words).operands if path not in ("/dev/null", "/dev/stderr", "-"))
        )

    def _dd(self, command: Command, words: Words, stdin: str | None) -> None:
        for word in words:
            if word is None or word.startswith("of="):
                self._write(command, word and word.removeprefix("of="))

    def _touch(self, command: Command, words: Words, stdin: str | None) -> None:
        options = split(words, "drtso", ("date", "reference", "time", "size"))
        self._all(command, options.operands)

    def _chmod(self, command: Command, words: Words, stdin: str | None) -> None:
        plain = tuple(
            word for word in words if word is None or not re.fullmatch(r"-[RfvcHLP]+|--\w[\w-]*", word)
        )
        named = any(word is not None and word.startswith("--reference") for word in words)
        self._all(command, plain if named else plain[1:])

    def _mkdir(self, command: Command, words: Words, stdin: str | None) -> None:
        for path in split(words, "mog", ("mode", "owner", "group")).operands:
            for folder in command.folders:
                if path is not None and folder is not None:
                    parts = os.path.normpath(os.path.join(folder, path)).split("/")
                    self.effects.made |= {"/".join(parts[:end]) for end in range(2, len(parts) + 1)}

    def _patch(self, command: Command, words: Words, stdin: str | None) -> None:
        """`patch -p1 < file`: the names are in the patch, which may also be given by name."""
        self.effects.unknown = True  # it may leave .orig and .rej
        options = split(
            words, "pidorBDFgVYzx", ("strip", "input", "directory", "output", "reject-file", "fuzz", "suffix")
        )
        within = options.values("-d", "--directory")[-1:]
        folders = tuple(os.path.join(each, *within) if each is not None else None for each in command.folders)
        self.effects.write(folders, (options.values("-o", "--output") or [""])[-1])
        text = stdin
        for name in (*options.values("-i", "--input")[-1:], *options.operands[1:2]):
            text = next((self.disk.read(os.path.join(each, name)) for each in folders if each and name), None)
        if options.operands:
            self.effects.write(folders, options.operands[0])
        elif text is not None:
            strip = (options.values("-p", "--strip") or ["-1"])[-1]
            for path in patched_files(text, int(strip) if strip.isdigit() else -1):
                self.effects.write(folders, path)

    def _rewrite(self, command: Command, words: Words) -> None:
        """Record the files of a formatter or an editor; options never name them."""
        self.effects.unknown = self.effects.acts = True
        needed: Iterable[str] = REWRITING.get(command.name, ())
        known = [word for word in words if word is not None]
        options = [word.partition("=")[0] for word in known if word.startswith("-")]
        clusters = [f"-{char}" for word in options if not word.startswith("--") for char in word[1:]]
        if needed and not set(needed) & {*options, *clusters}:
            return
        if command.name not in EDITORS and CHECK_ONLY & set(options):
            return
        self._files(command, known)

    def _files(self, command: Command, words: Iterable[str]) -> None:
        """Record the words that are paths: they exist, or look like a file."""
        for word in words:
            if word.startswith("-") and not re.match(r"-.=|--[\w-]+=", word):
                continue
            for folder in command.folders:
                if folder is None:
                    self.effects.unknown = True
                elif os.path.lexists(os.path.join(folder, word)):
                    self._write(command._replace(folders=(folder,)), word)

    def _subcommand(self, command: Command, words: Words) -> None:
        self.effects.unknown = self.effects.acts = True
        known = [word for word in words if word is not None]
        verb = next(word for word in known if word in SUBCOMMANDS[command.name])
        if CHECK_ONLY & set(known):
            return
        if command.name == "biome" and not set(REWRITING["biome"]) & set(known):
            return
        rest = known[known.index(verb) + 1 :]
        self._files(command, rest)

    def _outputs(self, command: Command, words: Words) -> None:
        self.effects.unknown = self.effects.acts = True
        names = OUTPUT_OPTIONS[command.name]
        short = "".join(name[1] for name in names if not name.startswith("--"))
        options: Options = split(words, short, tuple(name[2:] for name in names if name.startswith("--")))
        for path in options.values(*names):
            if path not in ("-", "/dev/null", "/dev/stdout"):
                self._write(command, path)

    def _acts(self, command: Command, words: Words, stdin: str | None) -> None:
        """Programs that change something, but no file."""


_METHODS: dict[str, str] = {
    **dict.fromkeys(("sed", "gsed"), "sed"),
    **dict.fromkeys(("perl", "ruby"), "perl"),
    **dict.fromkeys(("awk", "gawk", "mawk"), "awk"),
    **dict.fromkeys(("cp", "mv", "install", "ln", "link", "gcp", "gmv"), "copy"),
    **dict.fromkeys(("rm", "rmdir", "unlink", "shred", "srm", "trash", "trash-put", "del", "grm"), "remove"),
    **dict.fromkeys(("touch", "truncate", "mkfifo", "fallocate"), "touch"),
    **dict.fromkeys(("chmod", "chown", "chgrp"), "chmod"),
    **dict.fromkeys(("mkdir", "mktemp"), "mkdir"),
    **{name: name for name in ("tee", "dd", "patch", "rsync")},
    **dict.fromkeys(("kill", "pkill", "killall"), "acts"),
}

COORD_WRITING = (
    "guard",
    "work",
    "merge",
    "salvage",
    "worktree",
    "doctor",
    "init",
    "uninstall",
    "commit",
    "hook",
)
"""Commands of coord that run other commands or write files."""


def coord_writes(words: Sequence[str]) -> bool:
    """Whether a command of coord may write files or run other commands."""
    return list(words) != ["doctor"] and any(word in COORD_WRITING for word in words)


def _backup(path: str, suffix: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, suffix.replace("*", name)) if "*" in suffix else f"{path}{suffix}"


Method = Callable[[Command, Words, str | None], None]
