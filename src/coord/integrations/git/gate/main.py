"""The program that git's hooks start: `<python> -I gate_client.py <hook> <arguments of git>`.

It ends with 0, or refuses with 1 and says why. People are told and never refused, except by a shared
repository; sessions are refused, also where nothing can be judged: a gate that fails is no way through.
"""

import gc
import os
import sys

_STRICT = "pre-receive"


def main(arguments: list[str]) -> int:
    """Judge one call of a hook."""
    hook, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    try:
        from coord.host.startup import import_msgspec

        import_msgspec()
        from coord.integrations.git.gate.hooks import run_hook

        return run_hook(hook, rest)
    except Exception as error:  # noqa: BLE001 - whatever it is: a person must be able to go on, an agent not
        strict = hook == _STRICT or _shows_agent()
        hint = getattr(error, "hint", "") or "coord doctor says what stands in the way"
        sys.stderr.write(f"coord: {hook} cannot be judged: {error}\n")
        sys.stderr.write(f"coord: {hint}\n" if strict else "coord: it goes on, because you are a person\n")
        return 1 if strict else 0


def _shows_agent() -> bool:
    """Whether there are signs of an agent; where even that cannot be found out, there are."""
    try:
        from coord.host.caller import shows_agent
    except Exception:  # noqa: BLE001 - as above
        return True
    return shows_agent(os.environ)


if __name__ == "__main__":
    gc.set_threshold(50_000)  # modules that are being imported are no garbage
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # the store is closed: taking all modules apart would only take time
