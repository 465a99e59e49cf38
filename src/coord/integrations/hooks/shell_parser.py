"""Find out what a command line runs, without running it.

A line is split into simple commands, also those inside `sh -c '…'`, `$(…)` and backquotes. That is enough for
people and models that hide nothing; `shell_effects` catches the rest by its effects.
"""

import os
import re
from collections.abc import Iterator

WRAPPERS = (
    "sudo",
    "env",
    "time",
    "nohup",
    "command",
    "exec",
    "builtin",
    "nice",
    "stdbuf",
    "timeout",
    "xargs",
    "setsid",
    "coproc",
)
DETACHING = ("nohup", "setsid", "coproc", "disown")
"""Commands that start other commands which outlive the line."""
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
SEPARATORS = frozenset((";", "&&", "||", "|", "&", "|&", ";;", "(", ")", "{", "}", "\n"))
PUNCTUATION = ";&|(){}<>"
_NO_BACKGROUND = re.compile(r"&&|\|&|[<>]&|&>|;&")
"""Operators with an `&` that puts nothing into the background."""
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?^[ \t]*\2$", re.DOTALL | re.MULTILINE)
KEYWORDS = ("then", "do", "else", "elif", "if", "while", "until", "!")
SCRIPTS_MAX = 16
"""How many nested lines are parsed."""
LINE_CHARS_MAX = 20_000
READ_ONLY = frozenset(
    (
        *("cat", "head", "tail", "less", "more", "grep", "egrep", "fgrep", "rg", "ls", "wc", "pwd"),
        *("echo", "printf", "true", "false", "test", "which", "type", "stat", "du", "df", "date"),
        *("whoami", "id", "uname", "printenv", "diff", "cmp", "cut", "jq", "cd", "sleep"),
    )
)
GIT_READ_ONLY = frozenset(
    ("status", "log", "diff", "show", "blame", "ls-files", "rev-parse", "grep", "describe")
)
COORD_WRITING = (
    ["guard"],
    ["work"],
    ["merge"],
    ["salvage"],
    ["worktree"],
    ["doctor"],
    ["init"],
    ["uninstall"],
)
"""Commands of coord that run other commands or write files."""
COORD_CHANGING = frozenset((*(words[0] for words in COORD_WRITING), "commit"))
OUTPUT_SIGNS = (">", "`", "$(", "<(", "--output")
"""Signs that a line may write a file, or run a command that the parser does not see."""
OPTIONS_WITH_VALUE = {"git": ("-C", "-c", "--git-dir", "--work-tree", "--namespace")}
"""Options before the subcommand that take a value."""


def simple_commands(line: str) -> list[list[str]]:
    """Return the words of each simple command, without assignments and wrappers before them."""
    return [words for _, commands in _parse_scripts(line) for words in commands]


def outlives_call(line: str) -> bool:
    """Whether a command may still run after its line has ended: `git push &`, `setsid make`."""
    line = _shorten(line)
    line = _HERE_DOCUMENT.sub(lambda found: _script_in(found, line), line)
    return any(_detaches(word) for script, _ in _parse_scripts(line) for word in _words(script))


def _script_in(document: re.Match[str], line: str) -> str:
    """Return a here-document that a shell runs; "" for any other, because it is plain text."""
    before = re.split(r"[\s;&|(]+", line[: document.start()])[-3:]
    return document[0] if any(os.path.basename(word) in SHELLS for word in before) else ""


def _detaches(word: str) -> bool:
    if word.strip(PUNCTUATION):
        return os.path.basename(word) in DETACHING
    return "&" in _NO_BACKGROUND.sub("", word)


def _parse_scripts(line: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield a line and each nested line, with its simple commands."""
    line = _shorten(line)
    scripts = [line, *_substitutions(line)][:SCRIPTS_MAX]
    looked = 0
    while looked < min(len(scripts), SCRIPTS_MAX):
        commands = [plain for words in _split(scripts[looked]) if (plain := _unwrap(words))]
        scripts += [script for words in commands for script in _scripts(words)]
        yield scripts[looked], commands
        looked += 1


def only_reads(line: str, *, store: bool = True) -> bool:
    """Whether every command of a line is known to only read files.

    Without a `store` commands of coord do not count as reading: they would create a new store.
    """
    if any(sign in line for sign in OUTPUT_SIGNS):
        return False
    commands = [_without_options(words) for words in simple_commands(line)]
    return bool(commands) and all(
        words[0] in READ_ONLY
        or (words[0] == "git" and len(words) > 1 and words[1] in GIT_READ_ONLY)
        or (words[0] == "coord" and (words[1:] == ["doctor"] or (store and words[1:2] not in COORD_WRITING)))
        for words in commands
    )


def only_coord(line: str) -> bool:
    """Whether a line only asks coord, and lets it neither write files nor run other commands."""
    if any(sign in line for sign in OUTPUT_SIGNS):
        return False
    commands = simple_commands(line)
    return bool(commands) and all(
        words[0] == "coord" and not COORD_CHANGING.intersection(words[1:]) for words in commands
    )


def folders_entered(line: str) -> list[str]:
    """Return the folders that a line enters, as it names them."""
    return [words[1] for words in simple_commands(line) if words[0] in ("cd", "pushd") and len(words) > 1]


def _shorten(line: str) -> str:
    """Return a long line without its middle, which is most likely text."""
    if len(line) <= LINE_CHARS_MAX:
        return line
    return f"{line[: LINE_CHARS_MAX // 2]}\n{line[-LINE_CHARS_MAX // 2 :]}"


def _words(line: str) -> list[str]:
    """Return the words and operators of a line."""
    from shlex import shlex

    lexer = shlex(line.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=PUNCTUATION)
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[str] = []
    try:
        found += lexer
    except ValueError:  # an open quote, as in the text of a here-document
        for part in line.replace(";", "\n").replace("&&", "\n").split("\n"):
            found += [";", *part.split()]
    return found


def _split(line: str) -> list[list[str]]:
    commands: list[list[str]] = [[]]
    for word in _words(line):
        if word in SEPARATORS or (word and not word.strip(";&|(){}")):
            commands.append([])
        else:
            commands[-1].append(word)
    return [words for words in commands if words]


def _unwrap(words: list[str]) -> list[str]:
    """Return a command without wrappers, keywords and assignments."""
    while words:
        first = words[0]
        name, assigned, _ = first.partition("=")
        if first in KEYWORDS or (assigned and name.isidentifier()):
            words = words[1:]
        elif os.path.basename(first) in WRAPPERS:
            words = words[1:]
            while words and (words[0].startswith("-") or words[0][:1].isdigit()):
                words = words[1:]
        else:
            return _without_options([os.path.basename(first), *words[1:]])
    return []


def _without_options(words: list[str]) -> list[str]:
    """Return `git -C there push` as `git push`."""
    joined = OPTIONS_WITH_VALUE.get(words[0], ())
    rest = words[1:]
    while joined and rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in joined else rest[1:]
    return [words[0], *rest]


def _scripts(words: list[str]) -> list[str]:
    """Return the command lines that a command runs."""
    if words[0] == "eval":
        return [" ".join(words[1:])]
    if words[0] not in SHELLS:
        return []
    flags = [number for number, word in enumerate(words) if word.startswith("-") and word.endswith("c")]
    return words[flags[0] + 1 : flags[0] + 2] if flags else []


def _substitutions(line: str) -> list[str]:
    """Return the contents of `$(…)` and of backquotes."""
    found = line.split("`")[1::2]
    return found + [part.split(")")[0] for part in line.split("$(")[1:]]
