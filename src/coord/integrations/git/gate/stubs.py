"""The sh stubs that git runs as hooks: each starts the gate, and then the hook that was there before.

A stub outlives coord. Without coord it warns people and refuses agents, because nothing can check them. Git
runs several reference transactions per commit, so their stub starts Python only if a protected branch moves.
"""

from collections.abc import Sequence
from shlex import quote

from coord.host.caller import GENERIC, TOOLS

LOCAL_HOOKS = ("pre-commit", "prepare-commit-msg", "reference-transaction", "pre-push")
SHARED_HOOK = "pre-receive"
"""The gate of a shared bare repository; git runs this hook only there."""
SHARED_HOOKS = (SHARED_HOOK, "reference-transaction")
PROTECTED = ("main", "master")
"""The branches that only accept checked commits; patterns such as `release/*` are possible."""
PROTECTED_VARIABLE = "COORD_PROTECTED"
"""How a stub passes them on: separated by spaces, which no branch name contains."""
STUB_VARIABLE, GIT_VARIABLE = "COORD_GATE_STUB", "COORD_GATE_GIT"
"""How a stub passes on its own path, and the process of git."""
TENANT_VARIABLE, SHARED_VARIABLE = "COORD_GATE_TENANT", "COORD_GATE_SHARED"
"""How a stub passes on the tenant whose locks count, and whether the repository is shared."""
_WITH_STDIN = ("reference-transaction", "pre-push", SHARED_HOOK)

MARK = "# Gate of coord,"
"""Marks a file as a stub of coord."""
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
    echo "coord: @HOOK@ refused: the program that checks it is missing ($client)." >&2
    echo "coord: ask the person you work for to run @BY@, or coord uninstall." >&2
    exit 1
else
    echo "coord: @HOOK@ is not checked: $client is missing (run @BY@ to repair it, or coord uninstall)." >&2
fi"""


def stub_text(
    hook: str,
    python: str,
    client: str,
    protected: Sequence[str] = PROTECTED,
    *,
    tenant: str = "",
    shared: bool = False,
) -> str:
    """Return the stub of a hook, which runs `<python> -I <client> <hook> <arguments of git>`.

    `tenant`: the tenant whose locks count, whatever the environment of the caller says. `shared`: the
    repository is a bare one that others push to, so nothing shows who calls.
    """
    shared = shared or hook == SHARED_HOOK
    run = f'{PROTECTED_VARIABLE}={quote(" ".join(protected))} "$python" -I "$client" {hook} "$@"'
    run = f"{TENANT_VARIABLE}={quote(tenant)} {SHARED_VARIABLE}={'yes' * shared} {run}"
    run = f'{STUB_VARIABLE}="$0" {GIT_VARIABLE}="$PPID" {run}'
    former = 'exec "$former" "$@"'
    gate = _GATE
    if hook in _WITH_STDIN:
        run = f"printf '%s' \"$lines\" | {run}"
        former = """printf '%s' "$lines" | "$former" "$@\""""
        gate = f"{_LINES}\n{_only_protected(protected) if hook == 'reference-transaction' else gate}"
    # A push to a shared repository may come from anywhere, so nothing proves that it comes from a person.
    signs = "any" if shared else "".join(f"${{{name}:-}}" for name in _sign_names())
    text = _STUB.replace("@GATE@", gate).replace("@RUN@", run).replace("@FORMER@", former)
    text = text.replace("@MARK@", MARK).replace("@SIGNS@", signs).replace("@HOOK@", hook)
    text = text.replace("@BY@", "coord gate" if shared else "coord init")
    return text.replace("@PYTHON@", quote(python)).replace("@CLIENT@", quote(client))


_LINES = """end='
'
lines=$(PATH=/usr/bin:/bin:$PATH; cat)
[ -z "$lines" ] || lines="$lines$end\""""
"""Keeps the standard input for two readers: the gate and the former hook."""
_MAY_MOVE = """git=${0%/*} git=${git%/hooks} git=${git%/coord} moves=
case "$lines" in @CASES@) moves=yes;; esac
for branch in @NAMES@; do
    if [ -f "$git/refs/heads/$branch" ]; then
        read -r ref <"$git/refs/heads/$branch"
        case "$ref" in ref:*) moves=yes;; esac
    fi
done
case "$moves$lines" in yes*) ;; *0000000000000000000000000000000000000000" refs/heads/"*)
    [ ! -d "$git/coord" ] || { printf '%s %s' "$PPID" "$lines" >"$git/coord/deleting"; } 2>/dev/null;;
esac"""
"""Finds out whether a protected branch may move; one that leads to another branch moves with it.

To rename a branch, git deletes it, then deletes the branch of the new name, and runs no hook for the rest.
So the stub notes each deletion with the process of git.
"""


def _only_protected(protected: Sequence[str]) -> str:
    """Return the gate inside a test whether a protected branch moves; the gate itself checks exactly."""
    cases = [f'*{_sh_pattern(f" refs/heads/{branch}")}"$end"*' for branch in protected]
    names = [quote(branch) for branch in protected if "*" not in branch]
    test = _MAY_MOVE.replace("@CASES@", "|".join([*cases, "*' refs/replace/'*"]))
    test = test.replace("@NAMES@", " ".join(names))
    inner = f'{test}\nif [ -n "$moves" ]; then\n{_indent(_GATE)}\nfi;;'
    return f'case "$1" in prepared)\n{_indent(inner)}\nesac'


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _sh_pattern(pattern: str) -> str:
    """Return a pattern for sh in which only `*` is special."""
    return "*".join(quote(part) if part else "" for part in pattern.split("*"))


def _sign_names() -> list[str]:
    """Return the variables that are signs of an agent."""
    names = ["COORD_SESSION_ID"]
    for tool in (*TOOLS, GENERIC):
        names += [name for name in (tool.session, *tool.signs) if name]
    return names
