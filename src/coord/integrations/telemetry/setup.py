"""What to set in each agent tool so that it reports its usage to the hub. Nothing of it is on by default."""

from collections.abc import Mapping

from coord.core.errors import NotFound
from coord.sdk.remote.address import read_state

VARIABLE = "COORD_TELEMETRY_TOKEN"
SESSION_ATTRIBUTE = "coord.session.id"
RESOURCE = "OTEL_RESOURCE_ATTRIBUTES"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
URL, TOKEN = "URL", "TOKEN"
CLAUDE = {
    "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
    "OTEL_LOGS_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "otlp",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    ENDPOINT: URL,
    HEADERS: f"Authorization=Bearer {TOKEN}",
}
GEMINI = {
    "GEMINI_TELEMETRY_ENABLED": "true",
    "GEMINI_TELEMETRY_TARGET": "local",
    "GEMINI_TELEMETRY_OTLP_ENDPOINT": URL,
    "GEMINI_TELEMETRY_OTLP_PROTOCOL": "http",
    HEADERS: f"Authorization=Bearer {TOKEN}",
    "GEMINI_TELEMETRY_LOG_PROMPTS": "false",
}
CODEX = """\
[otel]
log_user_prompt = false
[otel.exporter.otlp-http]
endpoint = "URL/v1/logs"
protocol = "binary"
headers = { "Authorization" = "Bearer TOKEN" }
"""
COMMENTS = {
    "claude": '# Claude Code: in the shell that starts it, or as "env" in ~/.claude/settings.json',
    "codex": "# Codex: in ~/.codex/config.toml, with the token itself for TOKEN",
    "gemini": "# Gemini CLI: in the shell that starts it. "
    "Without the last line it sends your prompts, which the hub drops.",
}
TOOLS = tuple(COMMENTS)


def variables(url: str, token: str, *tools: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which tools report to a hub."""
    merged = {name: value for each in tools for name, value in each.items()}
    return {name: value.replace(URL, url).replace(TOKEN, token) for name, value in merged.items()}


def exports(found: Mapping[str, str]) -> str:
    """Return variables as lines for a shell."""
    return "".join(
        f'export {name}="{value}"\n' if " " in value else f"export {name}={value}\n"
        for name, value in found.items()
    )


def codex_config(url: str, token: str) -> str:
    """Return the piece of Codex' configuration that reports to a hub."""
    return CODEX.replace(URL, url).replace(TOKEN, token)


def lines_for(tool: str, url: str) -> str:
    """Return what to set for a tool that shall report to a hub; the token is left to the reader."""
    if tool == "codex":
        return f"{COMMENTS[tool]}\n{codex_config(url, TOKEN)}"
    return (
        f"{COMMENTS[tool]}\n{exports(variables(url, f'${VARIABLE}', CLAUDE if tool == 'claude' else GEMINI))}"
    )


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
