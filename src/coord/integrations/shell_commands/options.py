"""Split the words of a command into options and operands, as GNU `getopt_long` does."""

from typing import NamedTuple

from coord.integrations.shell_commands.state import Words


class Options(NamedTuple):
    """The options with their values, and the operands; None stands for unknown words."""

    found: dict[str, list[str]]
    operands: list[str | None]

    def has(self, *names: str) -> bool:
        """Whether one of these options is given; a long one also in its short forms: `--in-pl`."""
        return any(_same(given, name) for given in self.found for name in names)

    def values(self, *names: str) -> list[str]:
        """Return the values of these options."""
        return [
            value
            for given, values in self.found.items()
            if any(_same(given, name) for name in names)
            for value in values
        ]


def split(
    words: Words, values: str = "", long_values: tuple[str, ...] = (), *, attached: str = ""
) -> Options:
    """Split words; `values`: short options that take one, `attached`: those that take it without a space."""
    found: dict[str, list[str]] = {}
    operands: list[str | None] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            operands += words[at:]
            break
        if word is None or word == "-" or not word.startswith("-"):
            operands.append(word)
        elif word.startswith("--"):
            name, joined, value = word.partition("=")
            if not joined and any(_same(name, f"--{each}") for each in long_values):
                value = (words[at] if at < len(words) else "") or ""
                at += 1
            found.setdefault(name, []).append(value)
        else:
            at = _short(word, words, at, (values, attached), found)
    return Options(found, operands)


def _short(word: str, words: Words, at: int, values: tuple[str, str], found: dict[str, list[str]]) -> int:
    """Read a word such as `-rf` or `-t.`, and return where the next word is."""
    for number, char in enumerate(word[1:], 1):
        rest = word[number + 1 :]
        if char in values[1]:
            found.setdefault(f"-{char}", []).append(rest)
            return at
        if char in values[0]:
            if not rest:
                rest = (words[at] if at < len(words) else "") or ""
                at += 1
            found.setdefault(f"-{char}", []).append(rest)
            return at
        found.setdefault(f"-{char}", []).append("")
    return at


def _same(given: str, name: str) -> bool:
    if given == name:
        return True
    return name.startswith("--") and len(given) > 2 and given.startswith("--") and name.startswith(given)
