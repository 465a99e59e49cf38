"""The check of `coord doctor` for hooks that Claude Code sends by HTTP."""

import http.client
import json
import time
from collections.abc import Mapping
from statistics import median
from urllib.parse import urlsplit

from coord.core.errors import CoordError
from coord.integrations.hooks.http_hooks import PATH
from coord.integrations.setup.http.token_file import read_token, token_path
from coord.integrations.setup.tools import CLAUDE, HttpForm
from coord.sdk.reports.doctor import BAD, OK, WARN, Finding

ANSWER_S = 5.0
PROBES = 5
RENEW = "coord init --hub=http --yes, then start claude again"


def check_http(form: HttpForm, root: str, environ: Mapping[str, str]) -> list[Finding]:
    """Check that the hub answers hooks by HTTP with the token of this repository."""
    try:
        token = read_token(environ, form.variable)
    except CoordError as error:
        return [_bad(error.message, error.hint)]
    where = urlsplit(form.hub)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 80, timeout=ANSWER_S)
    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request("GET", PATH, headers=head)
        answer = connection.getresponse()
        answer.read()
        if answer.status != http.client.OK:
            return [_refused(answer.status, form, environ)]
        times = [_probe(connection, head, root) for _ in range(PROBES)]
    except (OSError, http.client.HTTPException) as error:
        problem = f"no hub answers at {form.hub} ({error}), so Claude Code cannot change files"
        return [_bad(problem, f"coord serve --listen {where.netloc}; or coord init --yes: hooks as commands")]
    finally:
        connection.close()
    if None in times:
        return [_bad(f"the hub at {form.hub} does not refuse a forbidden call", "coord serve --stop")]
    took_ms = median(each for each in times if each is not None) * 1000
    message = f"{CLAUDE.title}: hooks by HTTP, the hub answers in {took_ms:.1f} ms (p50 of {PROBES})"
    found = [Finding(CLAUDE.name, OK, message)]
    if environ.get(form.variable) != token:
        state = "has another value" if environ.get(form.variable) else "is not set"
        text = f"{form.variable} {state} in this shell: Claude Code started here cannot change files"
        found.append(Finding("hook token", WARN, text, 'eval "$(coord token export)"'))
    return found


def _probe(connection: http.client.HTTPConnection, head: Mapping[str, str], root: str) -> float | None:
    """Return how long the hub takes to refuse a forbidden call; None if it does not."""
    event = {
        "hook_event_name": CLAUDE.before,
        "session_id": "coord-doctor",
        "cwd": root,
        "tool_name": "Write",
        "tool_use_id": "coord-doctor",
        "tool_input": {"file_path": f"{root}/{CLAUDE.shared}", "content": ""},
    }
    began = time.monotonic()
    connection.request("POST", PATH, json.dumps(event), dict(head))
    answer = connection.getresponse()
    body = answer.read()
    took = time.monotonic() - began
    return took if answer.status == http.client.OK and b'"deny"' in body else None


def _refused(status: int, form: HttpForm, environ: Mapping[str, str]) -> Finding:
    path = token_path(environ, form.variable)
    if status == http.client.UNAUTHORIZED:
        return _bad(f"the hub does not know the token in {path}: it was revoked, or has expired", RENEW)
    if status == http.client.FORBIDDEN:
        return _bad(f"the token in {path} may not act (it needs role operate)", RENEW)
    return _bad(f"{form.hub} answers {status} and is no hub of this coord", "coord serve --stop; coord serve")


def _bad(message: str, hint: str) -> Finding:
    return Finding(CLAUDE.name, BAD, f"{CLAUDE.title}: {message}", hint)
