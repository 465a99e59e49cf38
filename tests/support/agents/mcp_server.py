"""A small MCP server over standard input: one tool writes, with names that no hook knows, and one reads."""

import json
import sys
from pathlib import Path
from typing import Any

TOOL, READER = "put_words", "read_words"
PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
SCHEMA = {"type": "object", "properties": {"whither": {"type": "string"}, "words": {"type": "string"}}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        version = params.get("protocolVersion", "2025-03-26")
        info = {"name": "files", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        write = {"name": TOOL, "description": "Write a file.", "inputSchema": SCHEMA}
        return {"tools": [write, {"name": READER, "description": "Read a file.", "inputSchema": PATH}]}
    if method == "tools/call" and params["name"] == READER:
        return {"content": [{"type": "text", "text": Path(params["arguments"]["path"]).read_text()}]}
    if method == "tools/call":
        Path(params["arguments"]["whither"]).write_text(params["arguments"]["words"])
        return {"content": [{"type": "text", "text": "written"}]}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = answer(request["method"], request.get("params", {}))
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
            sys.stdout.flush()
