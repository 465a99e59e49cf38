"""A stand-in for the model behind a coding agent: speaks the three APIs on loopback and plays a script.

Which answer is due is told by the conversation itself, by counting the answers already in it; so a repeated
request gets the same answer. Everything that the model was shown is kept.
"""

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.support.agents.script import MAIN, STARTED_AGENT, Answer, Call, Play, Say

Json = dict[str, Any]
Event = tuple[str, Json]
PAUSE_S = 60
USAGE = {"input_tokens": 1, "output_tokens": 1}


class Shown(NamedTuple):
    """A piece of text that the model was shown: the result of a tool, or anything else it was told."""

    kind: str
    text: str


class Model:
    """Plays the answers and remembers what it was shown, conversation by conversation."""

    def __init__(self, play: Play) -> None:
        self.shown: dict[str, list[Shown]] = {}
        self.requests: list[Json] = []
        self._play = play
        self._guard = threading.Lock()

    def results(self, marker: str = MAIN) -> list[str]:
        """What the tools answered, one text per call."""
        return [text for kind, text in self.shown.get(marker, []) if kind == "result"]

    def was_told(self, marker: str = MAIN) -> str:
        """Everything that was shown in one conversation, in order."""
        return "\n".join(text for _, text in self.shown.get(marker, []))

    def answer(self, request: Json, given: int, shown: list[Shown]) -> tuple[Answer, str]:
        """Return the next answer of the conversation that a request belongs to, and an id for it.

        A side question of the program, which is none of them, gets a polite nothing.
        """
        marker = next((m for _, text in shown for m in self._play if m in text), None)
        with self._guard:
            self.requests.append(request)
            if marker is None:
                return Say("{}"), f"side_{len(self.requests)}"
            self.shown[marker] = max(self.shown.get(marker, []), shown, key=len)
        turns = self._play[marker]
        number = f"{marker.removeprefix('script-')}_{given}"
        if given >= len(turns):
            return Say("done"), number
        pauses, answer = turns[given]
        for pause in pauses:
            pause.reached.set()
            pause.go.wait(PAUSE_S)
        return _with_started_agent(answer, shown), number


def _with_started_agent(answer: Answer, shown: list[Shown]) -> Answer:
    if isinstance(answer, Say) or STARTED_AGENT not in str(answer.arguments):
        return answer
    started = re.findall(r'"agent_id":\s*"([^"]+)"', "\n".join(shown_one.text for shown_one in shown))
    arguments = json.loads(json.dumps(answer.arguments).replace(STARTED_AGENT, started[-1]))
    return Call(answer.tool, arguments, answer.namespace)


def texts_in(value: Any) -> Iterator[str]:
    """Every string in a piece of JSON, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_in(part)


# --- Anthropic: POST /v1/messages -------------------------------------------------------------------------


def anthropic_heard(request: Json) -> tuple[int, list[Shown]]:
    given, shown = 0, []
    for message in request["messages"]:
        if message["role"] == "assistant":
            given += 1
            continue
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            kind = "result" if block["type"] == "tool_result" else "told"
            told = block.get("content", "") if kind == "result" else block.get("text", "")
            shown.append(Shown(kind, "\n".join(_without_types(told))))
    return given, shown


def _without_types(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for block in value:
            yield from texts_in({name: part for name, part in block.items() if name != "type"})
    else:
        yield str(value)


def anthropic_events(answer: Answer, number: str) -> list[Event]:
    if isinstance(answer, Call):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": answer.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
        reason = "tool_use"
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": answer.text}
        reason = "end_turn"
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    rest: Json = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": USAGE}
    end = {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": USAGE}
    return [
        ("message_start", {"message": {**head, **rest}}),
        ("content_block_start", {"index": 0, "content_block": block}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", end),
        ("message_stop", {}),
    ]


# --- OpenAI: POST /v1/responses ---------------------------------------------------------------------------


def openai_heard(request: Json) -> tuple[int, list[Shown]]:
    given, shown = 0, []
    for item in request["input"]:
        kind = item.get("type", "message")
        if kind.endswith("_call") or item.get("role") == "assistant":
            given += 1
        elif kind.endswith("_output"):
            shown.append(Shown("result", "\n".join(texts_in(item.get("output", item)))))
        elif kind == "message":
            shown.append(Shown("told", "\n".join(part.get("text", "") for part in item["content"])))
    return given, shown


def openai_events(answer: Answer, number: str) -> list[Event]:
    response = {"id": f"resp_{number}", "usage": {**USAGE, "total_tokens": 2}}
    return [
        ("response.created", {"response": {"id": f"resp_{number}"}}),
        ("response.output_item.done", {"item": _openai_item(answer, number)}),
        ("response.completed", {"response": response}),
    ]


def _openai_item(answer: Answer, number: str) -> Json:
    if isinstance(answer, Say):
        spoken = [{"type": "output_text", "text": answer.text}]
        return {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": spoken}
    call = {"call_id": f"call_{number}", "name": answer.tool}
    if answer.namespace:
        call["namespace"] = answer.namespace
    if isinstance(answer.arguments, str):
        return {"type": "custom_tool_call", **call, "input": answer.arguments}
    return {"type": "function_call", **call, "arguments": json.dumps(answer.arguments)}


# --- Gemini: POST …:streamGenerateContent -----------------------------------------------------------------


def gemini_heard(request: Json) -> tuple[int, list[Shown]]:
    given, shown = 0, []
    for content in request["contents"]:
        if content.get("role") == "model":
            given += 1
            continue
        for part in content["parts"]:
            if "functionResponse" in part:
                shown.append(Shown("result", "\n".join(texts_in(part["functionResponse"]["response"]))))
            else:
                shown.append(Shown("told", part.get("text", "")))
    return given, shown


def gemini_reply(answer: Answer) -> Json:
    if isinstance(answer, Call):
        part: Json = {"functionCall": {"name": answer.tool, "args": answer.arguments}}
    else:
        part = {"text": answer.text}
    content = {"role": "model", "parts": [part]}
    counts = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": counts}


# --- the server -------------------------------------------------------------------------------------------


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        for ending, reply in ROUTES.items():
            if path.endswith(ending):
                reply(self, json.loads(body))
                return
        self.send_json({})

    def do_GET(self) -> None:
        self.send_json({"data": [], "models": []})

    def do_HEAD(self) -> None:
        self.send_json({})

    def count_tokens(self, request: Json) -> None:
        self.send_json({"input_tokens": 1, "totalTokens": 1})

    def anthropic(self, request: Json) -> None:
        given, shown = anthropic_heard(request)
        events = anthropic_events(*self.model.answer(request, given, shown))
        if request.get("stream"):
            self.send_events([{"type": name, **data} for name, data in events])
        else:
            text = {"type": "text", "text": "{}"}
            self.send_json({**events[0][1]["message"], "content": [text], "stop_reason": "end_turn"})

    def openai(self, request: Json) -> None:
        given, shown = openai_heard(request)
        events = openai_events(*self.model.answer(request, given, shown))
        self.send_events([{"type": name, **data} for name, data in events])

    def gemini(self, request: Json) -> None:
        given, shown = gemini_heard(request)
        # Without tools it is a side question of the program, which wants JSON.
        answer = self.model.answer(request, given, shown)[0] if request.get("tools") else Say("{}")
        reply = gemini_reply(answer)
        if "stream" in self.path:
            self.send_events([reply])
        else:
            self.send_json(reply)

    def send_events(self, events: list[Json]) -> None:
        named = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
        text = "".join(
            f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(named, events, strict=True)
        )
        self._send("text/event-stream", text.encode())

    def send_json(self, value: Json) -> None:
        self._send("application/json", json.dumps(value).encode())

    def _send(self, kind: str, body: bytes) -> None:
        with contextlib.suppress(OSError):  # the agent may be killed while the model thinks
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing: what was asked is kept in the model."""


ROUTES: dict[str, Callable[[_Handler, Json], None]] = {
    "/v1/messages": _Handler.anthropic,
    "/count_tokens": _Handler.count_tokens,
    ":countTokens": _Handler.count_tokens,
    "/v1/responses": _Handler.openai,
    ":generateContent": _Handler.gemini,
    ":streamGenerateContent": _Handler.gemini,
}


@contextlib.contextmanager
def serving(model: Model) -> Iterator[str]:
    """Serve a model on a port of its own, and yield the address."""
    handler = type("Handler", (_Handler,), {"model": model})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
