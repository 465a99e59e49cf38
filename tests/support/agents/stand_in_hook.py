"""A stand-in for a hook program: writes down what it was given, denies one path, and has something to say.

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
BEFORE_TOOL = {"PreToolUse", "BeforeTool"}
FAILURES = {
    "exit-1.txt": (1, "the stand-in failed"),
    "exit-2.txt": (2, "the stand-in failed"),
    "exit-2-in-silence.txt": (2, ""),
    "exit-3.txt": (3, "the stand-in failed"),
}
"""How the hook fails before an edit of these files."""
REASON = "the stand-in says no"
CONTEXT = "the stand-in was here after"
REMINDER = "the stand-in asks for one more turn"
GREETING = "the stand-in greets you"
TIMEOUT_S = 20


def hooks_for(tool, command, events=None, **fields):
    """The hook settings of a tool that call one command on every event, of every tool the agent has."""
    handler = {"type": "command", "command": command, **fields}
    return {
        event: [{"matcher": "*", "hooks": [{**handler, "timeout": timeout_of(tool, event)}]}]
        for event in events or EVENTS[tool]
    }


def timeout_of(tool, event):
    """In the unit of the tool; Codex allows no more than 3 s at the end."""
    if tool == "codex" and event == "SessionEnd":
        return 3
    return TIMEOUT_S * 1000 if tool == "gemini" else TIMEOUT_S


def answer_to(tool, event, denied):
    """What the hook says to an event, in the form that its tool understands."""
    name = event["hook_event_name"]
    if name in BEFORE_TOOL and denied in json.dumps(event["tool_input"]):
        if tool == "gemini":
            return {"decision": "deny", "reason": REASON}
        verdict = {"permissionDecision": "deny", "permissionDecisionReason": REASON}
        return {"hookSpecificOutput": {"hookEventName": name, **verdict}}
    if name in {"Stop", "AfterAgent"} and not event["stop_hook_active"]:
        return {"decision": "deny" if tool == "gemini" else "block", "reason": REMINDER}
    context = {"SessionStart": GREETING, "PostToolUse": CONTEXT, "AfterTool": CONTEXT}.get(name)
    if context is None:
        return {}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}


def failure_at(event):
    """The exit code and last words that the file in question stands for."""
    if event["hook_event_name"] not in BEFORE_TOOL:
        return 0, ""
    edit = json.dumps(event["tool_input"])
    return next((failure for name, failure in FAILURES.items() if name in edit), (0, ""))


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
    code, words = failure_at(event)
    sys.stderr.write(words)
    sys.exit(code)


if __name__ == "__main__":
    main()
