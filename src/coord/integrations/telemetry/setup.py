"""What to set in each agent tool so that it reports its usage to the hub. Nothing of it is on by default."""

from collections.abc import Mapping

from coord.core.errors import NotFound
from coord.sdk.remote.address import read_state

VARIABLE = "COORD_TELEMETRY_TOKEN"
SESSION_ATTRIBUTE = "coord.session.id"
RESOURCE = "OTEL_RESOURCE_ATTRIBUTES"

CLAUDE = f"""\
# Claude Code: in the shell that starts it, or as "env" in ~/.claude/settings.json
export CLAUDE_CODE_ENABLE_TELEMETRY=1
export OTEL_LOGS_EXPORTER=otlp
export OTEL_METRICS_EXPORTER=otlp
export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
export OTEL_EXPORTER_OTLP_ENDPOINT=URL
export OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer ${VARIABLE}"
"""
CODEX = """\
# Codex: in ~/.codex/config.toml, with the token itself for TOKEN
[otel]
log_user_prompt = false
[otel.exporter.otlp-http]
endpoint = "URL/v1/logs"
protocol = "binary"
headers = { "Authorization" = "Bearer TOKEN" }
"""
GEMINI = f"""\
# Gemini CLI: in the shell that starts it. Without the last line it sends your prompts, which the hub drops.
export GEMINI_TELEMETRY_ENABLED=true
export GEMINI_TELEMETRY_TARGET=local
export GEMINI_TELEMETRY_OTLP_ENDPOINT=URL
export GEMINI_TELEMETRY_OTLP_PROTOCOL=http
export OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer ${VARIABLE}"
export GEMINI_TELEMETRY_LOG_PROMPTS=false
"""
TEXTS = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI}


def lines_for(tool: str, url: str) -> str:
    """Return what to set for a tool that shall report to a hub."""
    return TEXTS[tool].replace("URL", url)


def hub_url(environ: Mapping[str, str]) -> str:
    """Return the address at which the hub of this user takes telemetry."""
    state = read_state(environ)
    if state is None or not state.listen:
        raise NotFound(
            "no hub listens on a TCP address", hint="start one: coord serve --listen 127.0.0.1:7420"
        )
    return state.listen


def with_session(environ: Mapping[str, str], session: str) -> str:
    """Return the resource attributes of a program that works for a session of coord.

    >>> with_session({"OTEL_RESOURCE_ATTRIBUTES": "team=a"}, "work-1")
    'team=a,coord.session.id=work-1'
    """
    parts = [part for part in environ.get(RESOURCE, "").split(",") if part.strip()]
    kept = [part for part in parts if part.partition("=")[0].strip() != SESSION_ATTRIBUTE]
    return ",".join((*kept, f"{SESSION_ATTRIBUTE}={session}"))
