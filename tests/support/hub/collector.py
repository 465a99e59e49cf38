"""A collector of OpenTelemetry that keeps the spans it gets."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Collector:
    """A receiver of OTLP over HTTP in JSON; it refuses as often as it is told."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.refusing = 0
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                collector.paths.append(self.path)
                refused = collector.refusing > 0
                collector.refusing -= refused
                if not refused and self.headers["Content-Type"] == "application/json":
                    found = [scope for each in body["resourceSpans"] for scope in each["scopeSpans"]]
                    collector.spans += [span for scope in found for span in scope["spans"]]
                self.send_response(503 if refused else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def names(self) -> list[str]:
        return [span["name"] for span in self.spans]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector on this machine."""
    made = Collector()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
