"""The sh stubs that git runs as hooks: they start the gate, and then the hook that was there before.

A stub stays when coord itself is gone. Then it tells people so, and refuses agents: nobody would judge them.
Reference transactions are many (several for each commit), so their stub starts Python only where a protected
branch is about to move.
"""

from collections.abc import Sequence
from shlex import quote

from coord.host.caller import GENERIC, TOOLS

LOCAL_HOOKS = ("pre-commit", "prepare-commit-msg", "reference-transaction", "pre-push")
SHARED_HOOK = "pre-receive"
"""The gate of a shared bare repository; git never runs it in any other."""
PROTECTED = ("main", "master")
"""The branches that only commits in order may move; patterns as `release/*` are possible."""
PROTECTED_VARIABLE = "COORD_PROTECTED"
"""How a stub passes them on: separated by spaces, which no branch has in its name."""
_WITH_STDIN = ("reference-transaction", "pre-push", SHARED_HOOK)

MARK = "# Gate of coord,"
"""By which a stub is known."""
_STUB = r"""#!/bin/sh
@MARK@ written by @BY@ and removed by coord uninstall.
# The hook that was here before is beside it, and runs after it: @HOOK@.coord-former
python=@PYTHON@
client=@CLIENT@
@GATE@
former="$0.coord-former"
[ -x "$former" ] || exit 0
@FORMER@
"""

_GATE = r"""if [ -x "$python" ] && [ -f "$client" ]; then
    @RUN@ || exit 1
elif [ -n "@SIGNS@" ]; then
    echo "coord: @HOOK@ refused: the program that judges it is gone ($client)." >&2
    echo "coord: ask the person you work for to run @BY@, or coord uninstall." >&2
    exit 1
else
    echo "coord: @HOOK@ is not judged: $client is gone (@BY@ mends it, coord uninstall ends it)." >&2
fi"""


def stub_text(
    hook: str, python: str, client: str, protected: Sequence[str] = PROTECTED, *, tenant: str = ""
) -> str:
    """Return the stub of a hook, which runs `<python> -I <client> <hook> <arguments of git>`.

    `tenant`: by whose locks it judges, whatever the environment of a caller says.
    """
    run = f'{PROTECTED_VARIABLE}={quote(" ".join(protected))} "$python" -I "$client" {hook} "$@"'
    run = f"COORD_TENANT={quote(tenant)} {run}" if tenant else run
    former = 'exec "$former" "$@"'
    gate = _GATE
    if hook in _WITH_STDIN:
        run = f"printf '%s' \"$lines\" | {run}"
        former = """printf '%s' "$lines" | "$former" "$@\""""
        gate = f"{_LINES}\n{_only_protected(protected) if hook == 'reference-transaction' else gate}"
    # Who pushes to a shared repository may come from anywhere: nothing here shows that it is a person.
    signs = "any" if hook == SHARED_HOOK else "".join(f"${{{name}:-}}" for name in _sign_names())
    text = _STUB.replace("@GATE@", gate).replace("@RUN@", run).replace("@FORMER@", former)
    text = text.replace("@MARK@", MARK).replace("@SIGNS@", signs).replace("@HOOK@", hook)
    text = text.replace("@BY@", "coord gate" if hook == SHARED_HOOK else "coord init")
    return text.replace("@PYTHON@", quote(python)).replace("@CLIENT@", quote(client))


_LINES = """end='
'
lines=$(cat)
[ -z "$lines" ] || lines="$lines$end\""""
"""All that git says on stdin, for two readers."""


def _only_protected(protected: Sequence[str]) -> str:
    """Return the gate inside the question whether a protected branch moves; the gate itself looks closer."""
    cases = "|".join(f'*{_sh_pattern(f" refs/heads/{branch}")}"$end"*' for branch in protected) or "''"
    indented = "\n".join(f"    {line}" for line in _GATE.splitlines())
    return f'case "$1" in prepared)\n  case "$lines" in {cases})\n{indented};;\n  esac;;\nesac'


def _sh_pattern(pattern: str) -> str:
    """Return a pattern as sh knows it: everything is meant literally but `*`."""
    return "*".join(quote(part) if part else "" for part in pattern.split("*"))


def _sign_names() -> list[str]:
    """Return the variables that show an agent."""
    names = ["COORD_SESSION_ID"]
    for tool in (*TOOLS, GENERIC):
        names += [name for name in (tool.session, *tool.signs) if name]
    return names
