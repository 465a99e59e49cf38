"""A stand-in for a hook program: writes down what it was given, denies one path, tells the model something.

Run by the agents, as `hooks_for` tells them: `python stand_in_hook.py <tool> <journal> <denied text>`.
"""

import json
import os
import sys

EVENTS = {
    "claude": (
        *(
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PostToolBatch",
        ),
        *("SubagentStart", "SubagentStop", "Stop", "SessionEnd"),
    ),
    "codex": (
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest"),
        *("SubagentStart", "SubagentStop", "Stop", "SessionEnd"),
    ),
    "gemini": ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"),
}
REASON = "the stand-in says no"
CONTEXT = "the stand-in was here after"
GREETING = "the stand-in greets you"
TIMEOUT_S = 20


def hooks_for(tool, command, events=None, **fields):
    """The hook settings of a tool that call one command on every event, of every tool the agent has."""
    timeout = TIMEOUT_S * 1000 if tool == "gemini" else TIMEOUT_S
    handler = {"type": "command", "command": command, "timeout": timeout, **fields}
    return {event: [{"matcher": "*", "hooks": [handler]}] for event in events or EVENTS[tool]}


def answer_to(tool, event, denied):
    """What the hook says to an event, in the form that its tool understands."""
    name = event["hook_event_name"]
    if name in {"PreToolUse", "BeforeTool"} and denied in json.dumps(event["tool_input"]):
        if tool == "gemini":
            return {"decision": "deny", "reason": REASON}
        verdict = {"permissionDecision": "deny", "permissionDecisionReason": REASON}
        return {"hookSpecificOutput": {"hookEventName": name, **verdict}}
    context = {"SessionStart": GREETING, "PostToolUse": CONTEXT, "AfterTool": CONTEXT}.get(name)
    if context is None:
        return {}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}


def main():
    tool, journal, denied = sys.argv[1:]
    event = json.load(sys.stdin)
    names = sorted(n for n in os.environ if n.startswith(("CLAUDE", "CODEX", "GEMINI")))
    line = json.dumps({"event": event, "environment": {name: os.environ[name] for name in names}})
    # One write call to a file opened for appending: hooks may run at the same time.
    with open(journal, "ab", buffering=0) as file:
        file.write(line.encode() + b"\n")
    answer = answer_to(tool, event, denied)
    if answer:
        sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
