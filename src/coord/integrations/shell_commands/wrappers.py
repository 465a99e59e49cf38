"""Programs that run another program: `sudo`, `env`, `timeout`, `xargs`, `npx`, `coord guard` and the like."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from coord.integrations.shell_commands.grammar import RESERVED
from coord.integrations.shell_commands.state import Words

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))
DETACHING = frozenset(("nohup", "setsid", "coproc", "disown", "daemonize", "at", "batch", "systemd-run"))
"""Commands that start others which outlive the line."""


class Inner(NamedTuple):
    """The command that a wrapper runs."""

    words: Words
    environ: Mapping[str, str | None] = {}
    folder: str | None = None
    """The folder that the wrapper changes to."""
    unknown: bool = False
    """Whether the wrapper may do more than its text shows."""
    writes: tuple[str, ...] = ()
    stdin_words: bool = False
    """Whether words from standard input are added."""
    placeholder: str = ""
    """The text that these words replace."""
    guarded: bool = False


class _Wrapper(NamedTuple):
    """The options of a wrapper that take a value, and the operands before the command."""

    values: str = ""
    long_values: tuple[str, ...] = ()
    operands: int = 0
    folder: tuple[str, ...] = ()
    """Options whose value is the folder of the command."""
    writes: tuple[str, ...] = ()
    """Options whose value is a file that the wrapper writes."""
    assigns: bool = False
    """Whether `NAME=value` may stand before the command."""


_WRAPPERS = {
    "sudo": _Wrapper(
        "ugpCrtTUDRh",
        ("user", "group", "prompt", "close-from", "role", "type", "chdir", "chroot", "host", "other-user"),
        folder=("-D", "--chdir"),
        assigns=True,
    ),
    "doas": _Wrapper("uC"),
    "env": _Wrapper(
        "uCS", ("unset", "chdir", "split-string", "block-signal"), folder=("-C", "--chdir"), assigns=True
    ),
    "time": _Wrapper("of", ("output", "format"), writes=("-o", "--output")),
    "nohup": _Wrapper(),
    "command": _Wrapper(),
    "builtin": _Wrapper(),
    "exec": _Wrapper("a"),
    "nice": _Wrapper("n", ("adjustment",)),
    "ionice": _Wrapper("cn", ("class", "classdata")),
    "stdbuf": _Wrapper("ioe", ("input", "output", "error")),
    "timeout": _Wrapper("sk", ("signal", "kill-after"), operands=1),
    "setsid": _Wrapper(),
    "coproc": _Wrapper(),
    "xargs": _Wrapper(
        "adEILnPs",
        ("arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"),
    ),
    "taskset": _Wrapper(operands=1),
    "chrt": _Wrapper(operands=1),
    "busybox": _Wrapper(),
    "toybox": _Wrapper(),
    "unbuffer": _Wrapper(),
    "noglob": _Wrapper(),
    "nocorrect": _Wrapper(),
    "strace": _Wrapper("oeapsuEPOSXbI", writes=("-o",)),
    "caffeinate": _Wrapper("tw"),
}
_RUNNERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "npx": ((),),
    "bunx": ((),),
    "uvx": ((),),
    "pipx": (("run",),),
    "npm": (("exec",), ("x",)),
    "pnpm": (("exec",), ("dlx",)),
    "yarn": (("exec",), ("dlx",), ("run",), ()),
    "bun": (("x",), ("run",)),
    "uv": (("run",), ("tool", "run")),
    "poetry": (("run",),),
    "pipenv": (("run",),),
    "pdm": (("run",),),
    "rye": (("run",),),
    "hatch": (("run",),),
    "bundle": (("exec",),),
    "mise": (("exec",), ("x",)),
    "conda": (("run",),),
}
"""Runners of packages; what they do besides the command stays unknown."""
_RUNNER_VALUES = frozenset(
    (
        "-p",
        "--package",
        "--with",
        "--from",
        "--python",
        "-n",
        "--name",
        "--project",
        "--directory",
        "--env-file",
    )
)
_MODULES = ("python", "python3")


def unwrap(words: Words) -> Inner | None:
    """Return the command inside of a wrapper; None if this is none."""
    name = os.path.basename(words[0] or "") if words else ""
    if name in RESERVED:
        return Inner(words[1:], unknown=True)
    if name in _WRAPPERS:
        return _wrapped(name, _WRAPPERS[name], words[1:])
    if name in _RUNNERS:
        return _of_runner(name, words[1:])
    if name.startswith(_MODULES) and words[1:2] == ("-m",) and len(words) > 2 and words[2]:
        return Inner(words[2:], unknown=True)
    if name == "coord":
        return _guarded(words)
    if name == "flock" and len(words) > 2:
        return _flock(words[1:])
    return None


def _wrapped(name: str, wrapper: _Wrapper, words: Words) -> Inner:
    environ: dict[str, str | None] = {}
    folder, writes, at, placeholder, left = None, list[str](), 0, "", wrapper.operands
    while at < len(words):
        word = words[at]
        if word is None:
            return Inner(words[at:], environ, folder, True, tuple(writes), name == "xargs", placeholder)
        option, value, used = _option(word, words[at + 1 : at + 2], wrapper)
        if word == "--":
            at += 1
            break
        if option:
            if option in ("-v", "-V") and name == "command":
                return Inner((), unknown=False)
            folder = value if option in wrapper.folder else folder
            writes += [value] if option in wrapper.writes and value else []
            environ |= _unset_by(name, option, value)
            if name == "env" and option in ("-S", "--split-string"):
                words = (*words[: at + used], *(value or "").split(), *words[at + used :])
            if name == "xargs" and option in ("-I", "-i", "--replace"):
                placeholder = value or "{}"
            at += used
        elif wrapper.assigns and "=" in word and word.partition("=")[0].isidentifier():
            environ[word.partition("=")[0]] = word.partition("=")[2]
            at += 1
        elif left:
            left -= 1
            at += 1
        else:
            break
    from_file = name == "xargs" and any(word in ("-a", "--arg-file") for word in words[:at])
    return Inner(words[at:], environ, folder, from_file, tuple(writes), name == "xargs", placeholder)


def _unset_by(name: str, option: str, value: str | None) -> dict[str, str | None]:
    """Return the variables that an option of `env` removes; "*" means all."""
    if name == "env" and option in ("-u", "--unset"):
        return {value or "": None}
    if name == "env" and option in ("-i", "-", "--ignore-environment"):
        return {"*": None}
    return {}


def _option(word: str, following: Words, wrapper: _Wrapper) -> tuple[str, str | None, int]:
    """Return an option with its value, and how many words it takes; "" if the word is no option."""
    if word.startswith("--") and len(word) > 2:
        name, joined, value = word[2:].partition("=")
        full = next((each for each in wrapper.long_values if each.startswith(name)), "")
        if joined or not full:
            return f"--{full or name}", value, 1
        return f"--{full}", following[0] if following else None, 2
    if not word.startswith("-") or word == "--":
        return "", None, 0
    for at, char in enumerate(word[1:], 1):
        if char in wrapper.values:
            rest = word[at + 1 :]
            return f"-{char}", rest or (following[0] if following else None), 1 if rest else 2
    return word[:2], "", 1


def _of_runner(name: str, words: Words) -> Inner | None:
    for verbs in sorted(_RUNNERS[name], key=len, reverse=True):
        if words[: len(verbs)] == verbs:
            rest = words[len(verbs) :]
            while rest and rest[0] is not None and rest[0].startswith("-"):
                rest = rest[2:] if rest[0] in _RUNNER_VALUES else rest[1:]
            program = rest[0].partition("@")[0] if rest and rest[0] and not rest[0].startswith("@") else None
            return Inner((program, *rest[1:]), unknown=True) if program else None
    return None


def _guarded(words: Words) -> Inner | None:
    """Return the command that `coord guard NAME… -- command` runs while it holds the locks."""
    if "guard" not in words or "--" not in words:
        return None
    at = words.index("--")
    return Inner(words[at + 1 :], guarded=True) if words.index("guard") < at else None


def _flock(words: Words) -> Inner:
    rest = words
    while rest and rest[0] is not None and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-w", "--timeout", "-E") else rest[1:]
    if rest[1:2] in (("-c",), ("--command",)):
        return Inner(("sh", "-c", *rest[2:]))
    return Inner(rest[1:])
