"""The program that the stubs of git hooks start: `<python> -I main.py <hook> <arguments of git>`.

Exit code 0 allows, 1 refuses with a reason. People are warned and never refused, except by a shared
repository. Agents are refused, also if the check itself fails: a broken gate must not let them through.
"""

import gc
import os
import sys

_SHARED = "COORD_GATE_SHARED"
"""Set by the stubs of a shared repository; the same as in stubs.py, which is not imported before an error."""


def main(arguments: list[str]) -> int:
    """Check one call of a git hook."""
    hook, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    try:
        from coord.host.startup import import_msgspec

        import_msgspec()
        from coord.integrations.git.gate.hooks import run_hook

        return run_hook(hook, rest)
    except Exception as error:  # noqa: BLE001 - after any error a person may go on, an agent may not
        strict = bool(os.environ.get(_SHARED)) or _shows_agent()
        hint = getattr(error, "hint", "") or "run coord doctor to see what is wrong"
        sys.stderr.write(f"coord: the check of {hook} failed: {error}\n")
        sys.stderr.write(f"coord: {hint}\n" if strict else "coord: git continues, because you are a person\n")
        return 1 if strict else 0


def _shows_agent() -> bool:
    """Whether there are signs of an agent; True if that cannot be checked."""
    try:
        from coord.host.caller import shows_agent
    except Exception:  # noqa: BLE001 - as above
        return True
    return shows_agent(os.environ)


if __name__ == "__main__":
    gc.set_threshold(50_000)  # imports create no garbage
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # the store is closed, so an orderly shutdown would only take time
