"""A tool that runs a hook, and the hook, which writes down whom it takes for its tool.

As a tool: `tool_with_hook.py tool OPTIONS`, where OPTIONS is JSON. The hook reads its input to the end, as
hooks do. So it goes on as soon as the tool has closed that input, or is dead. `command` and `payload` give
another hook and what it is told.
"""

import json
import os
import socket
import subprocess
import sys
from typing import Any


def run_hook(result: str, tool: str) -> None:
    """Write down what the hook finds, after its input has ended.

    It does not look at its parent before: the tool may be killed before the first line of its hook runs.
    """
    sys.stdin.read()
    from coord.integrations.hooks.identity import tool_process  # noqa: PLC0415 - the tool needs none of it

    found = tool_process(tool, os.environ)
    with open(f"{result}.new", "w") as file:
        pid = found.process.pid if found.process else 0
        json.dump({"pid": pid, "gone": found.gone, "above": [each.pid for each in found.ancestors]}, file)
    os.rename(f"{result}.new", result)


def run_tool(options: dict[str, Any]) -> None:
    """Run a hook with the given wrappers and streams; say "ready", and wait for the end of our input."""
    own = [sys.executable, __file__, "hook", options["result"], options.get("tool", "codex")]
    words = [*options.get("under", ()), *options.get("command", own)]
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    if options.get("stdout") == "file":
        streams["stdout"] = subprocess.DEVNULL
    if options.get("stdout") == "inherited":
        del streams["stdout"]
    ours, theirs = socket.socketpair()
    if options.get("stdin") == "socket":
        streams["stdin"] = theirs
    environ = {**os.environ, **options.get("env", {})}
    if options.get("names_itself"):
        environ["CLAUDE_PID"] = str(os.getpid())
    hook = subprocess.Popen(words, env=environ, start_new_session=options.get("detached", False), **streams)
    theirs.close()
    if hook.stdin is not None:
        hook.stdin.write(options.get("payload", "").encode())
        hook.stdin.flush()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()  # the test kills us here, or lets us go on
    ours.close()
    if hook.stdin is not None:
        hook.stdin.close()
    hook.wait()


if __name__ == "__main__":
    if sys.argv[1] == "hook":
        run_hook(*sys.argv[2:])
    else:
        run_tool(json.loads(sys.argv[2]))
