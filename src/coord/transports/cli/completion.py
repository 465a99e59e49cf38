"""Shell completion: small scripts that call `coord completion words -- WORD...`.

The words come from the command specs and the store, so the scripts never become outdated.
"""

from collections.abc import Callable, Iterable

from coord.core.errors import CoordError
from coord.transports import arguments
from coord.transports.cli.commands.flags import GLOBAL_FLAGS, KINDS, WELL_KNOWN
from coord.transports.cli.commands.registry import find, first_words, is_noun, verbs
from coord.transports.cli.spec import Argument, CommandSpec, Flag

SCRIPTS = {
    "bash": """\
# coord in bash: eval "$(coord completion bash)"
_coord() {
    local IFS=$'\\n'
    COMPREPLY=($(coord completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _coord coord
""",
    "zsh": """\
# coord in zsh: eval "$(coord completion zsh)"
_coord() {
    local -a found
    found=(${(f)"$(coord completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _coord coord
""",
    "fish": """\
# coord in fish: coord completion fish > ~/.config/fish/completions/coord.fish
function __coord_words
    set -l typed (commandline -opc) (commandline -ct)
    set -l found (coord completion words -- $typed[2..] 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c coord -f -a '(__coord_words)'
""",
}

_OF_A_PATH = frozenset("/.*?[]{}\\")
"""A word with one of these is only a file."""

Asks = Callable[[str], Iterable[str]]
"""Returns the words of a kind, such as `held` or `tasks`, from the store."""


def candidates(words_typed: list[str], ask: Asks) -> list[str]:
    """Return the completions of the last word; none where the shell should complete file names."""
    *before, current = words_typed or [""]
    line = _Line(before)
    if line.rest:
        return []
    if current == "=" and line.awaiting is not None:  # bash splits a word there
        current = ""
    name, equals, value = current.partition("=")
    given = line.flag(name) if equals else None
    if given is not None:
        return [f"{name}={word}" for word in _listed(given, value, ask) if word.startswith(value)]
    if line.awaiting is not None:
        found = _listed(line.awaiting, current, ask)
    elif current.startswith("-"):
        flags = (*(line.command.flags if line.command else ()), *GLOBAL_FLAGS)
        found = [*{flag.spelled: None for flag in flags if flag.name not in line.flags}, "--help"]
    elif line.command is None:
        found = verbs(line.noun) if line.noun else first_words()
    else:
        word = line.next_word
        found = _listed(word, current, ask) if word else []
    return [word for word in found if word.startswith(current)]


class _Line:
    """The words before the one to complete, parsed as far as possible."""

    def __init__(self, before: list[str]) -> None:
        self.command: CommandSpec | None = None
        self.noun = ""
        self.flags: set[str] = set()
        self.awaiting: Flag | None = None
        self.words = 0
        self.rest = False
        for typed in before:
            self._read(typed)

    @property
    def next_word(self) -> Argument | None:
        """The argument to complete."""
        wanted = self.command.arguments if self.command else ()
        if self.words < len(wanted):
            return wanted[self.words]
        return wanted[-1] if wanted and wanted[-1].many else None

    def _read(self, typed: str) -> None:
        if self.awaiting is not None and typed == "=":
            return
        if self.awaiting is not None:
            self.awaiting = None
        elif typed == "--":
            self.rest = True
        elif typed.startswith("-"):
            self._read_flag(*typed.partition("="))
        elif self.command is None and not self.noun and is_noun(typed):
            self.noun = typed
        elif self.command is None:
            self.command = find(f"{self.noun} {typed}".strip())
        else:
            self.words += 1

    def flag(self, spelled: str) -> Flag | None:
        """Return the flag that is spelled so, of this command or of all."""
        known = (*(self.command.flags if self.command else ()), *GLOBAL_FLAGS)
        return next((flag for flag in known if flag.spelled == spelled), None)

    def _read_flag(self, name: str, equals: str, _value: str) -> None:
        flag = self.flag(name)
        if flag is not None:
            self.flags.add(flag.name)
            self.awaiting = flag if flag.value and not flag.implied and not equals else None


def _listed(item: Flag | Argument, current: str, ask: Asks) -> list[str]:
    if item.choices:
        return list(item.choices)
    if item.completes == "commands":
        return first_words()
    if item.completes == "kinds":
        return list(KINDS)
    if item.completes == "files":
        # Nothing typed yet: the shell's list of files is more useful.
        return list(WELL_KNOWN) if current else []
    if not item.completes:
        return []
    first, comma, _ = current.rpartition(",") if item.kind == "names" else ("", "", current)
    return list(dict.fromkeys(first + comma + _short(word) for word in ask(item.completes)))


def _short(resource: str) -> str:
    """Return a resource without its prefix if possible, because a colon ends a word in bash."""
    scheme, _, bare = resource.partition(":")
    only_a_file = scheme == "name" and not _OF_A_PATH.isdisjoint(bare)
    if scheme not in {"file", "name"} or only_a_file or bare.startswith(arguments.SCHEMES):
        return resource
    return bare


def quietly(ask: Asks) -> Asks:
    """Return the same function, but without words instead of an error if the store fails."""

    def asked(what: str) -> Iterable[str]:
        try:
            return ask(what)
        except CoordError:
            return []

    return asked
