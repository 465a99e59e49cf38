"""Makes the tables in docs/reference that follow from the code.

`python -m tests.support.docs.tables` writes them again; a test fails when a page and the code differ.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import closing

from coord.core.events import SEED_NAMES, every_event
from coord.core.identity import Caller
from coord.core.limits import PROFILES, RATIONALE
from coord.core.settings import SETTINGS, UNLIMITED, Settings
from coord.engine.engine import Engine
from coord.followers.follower import LogSource
from coord.followers.metrics.counts import Counts
from coord.followers.metrics.families import FAMILIES, PREFIX
from coord.followers.metrics.gauges import gauges
from coord.host.store_location import StoreLocation
from coord.sdk.claim_repository import ClaimRepository
from coord.sdk.client.agents import AgentCalls
from coord.sdk.client.client import Client
from coord.sdk.client.locks import LockCalls
from coord.sdk.client.messages import MessageCalls
from coord.sdk.client.questions import QuestionCalls
from coord.sdk.client.sessions import SessionCalls
from coord.sdk.client.tasks import TaskCalls
from coord.sdk.client.tokens import TokenCalls
from coord.sdk.coordinator import TaskCoordinator
from coord.stores.open import open_store
from coord.transports.hub.api.routes import every_endpoint
from tests.support.docs.pages import ROOT, rows_of

BEGIN = "<!-- made by: python -m tests.support.docs.tables ({name}) -->\n"
END = "<!-- end -->"
REASONS = {
    "max_concurrent_claims": "DENIED_LIMIT_CONCURRENT_CLAIMS",
    "max_lease_duration_seconds": "DENIED_LIMIT_LEASE_DURATION",
    "min_lease_duration_seconds": "DENIED_LIMIT_LEASE_DURATION",
    "max_generations_per_task": "DENIED_LIMIT_GENERATIONS",
    "max_result_size_bytes": "DENIED_LIMIT_RESULT_SIZE",
    "max_active_sessions": "DENIED_LIMIT_ACTIVE_SESSIONS",
}
"""What is answered when a limit is reached; the retention refuses nothing."""
INDEX_KEYS = ("due", "ready")
"""Built in `core/keys.py`, but no keys of records."""


def limits_table() -> Iterator[str]:
    yield from _row("limit", *PROFILES, "because", "when reached")
    yield from _row("---", *("---:" for _ in PROFILES), "---", "---")
    for name, because in RATIONALE.items():
        values = [f"{getattr(limits, name):,}" for limits in PROFILES.values()]
        reached = f"`{REASONS[name]}`" if name in REASONS else ""
        yield from _row(f"`{name}`", *values, because, reached)


def settings_table() -> Iterator[str]:
    yield from _row("setting", "values", "default", "because")
    yield from _row("---", "---", "---", "---")
    for name, known in SETTINGS.items():
        values = ", ".join(f"`{choice}`" for choice in known.choices) or f"{known.low:,} to {known.high:,}"
        default = getattr(Settings(), name, UNLIMITED)
        yield from _row(
            f"`{name}`", values, f"{default:,}" if isinstance(default, int) else default, known.because
        )


def events_table() -> Iterator[str]:
    yield from _row("event", "means", "fields", "in the specification")
    yield from _row("---", "---", "---", "---")
    for kind in every_event():
        name = str(kind.__struct_config__.tag)
        fields = ", ".join(f"`{field}`" for field in kind.__struct_fields__)
        seed_name = SEED_NAMES.get(name)
        yield from _row(f"`{name}`", kind.__doc__ or "", fields, f"`{seed_name}`" if seed_name else "")


def api_table() -> Iterator[str]:
    yield from _methods(TaskCoordinator)


def repository_table() -> Iterator[str]:
    yield from _methods(ClaimRepository)


def client_table() -> Iterator[str]:
    yield from _methods(
        *(Client, SessionCalls, LockCalls, MessageCalls, QuestionCalls, TaskCalls, AgentCalls, TokenCalls)
    )


def keyspace_table() -> Iterator[str]:
    """Yield each key as `core/keys.py` builds it; the page keeps the words about it, row by row."""
    words = {row[1]: row[2:] for row in rows_of(page_of("keyspace"))}
    yield from _row("key", "built by", "holds", "written by", "index key")
    yield from _row("---", "---", "---", "---", "---")
    for name, pattern in keys_in_code().items():
        if name not in INDEX_KEYS:
            yield from _row(f"`{pattern}`", f"`keys.{name}`", *words.get(f"`keys.{name}`", ("", "", "")))


def keys_in_code() -> dict[str, str]:
    """Return the keys of `core/keys.py` by name: `task` is `task/<project>/<task_id>`; no prefixes."""
    tree = ast.parse((ROOT / "src/coord/core/keys.py").read_text(encoding="utf-8"))
    built: dict[str, str] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                built[name] = text
            case ast.FunctionDef(name=name, body=[*_, ast.Return(value=ast.JoinedStr() as text)]):
                built[name] = _pattern(text, {argument.arg for argument in node.args.args})
    return {name: text for name, text in built.items() if not name.lower().endswith("_prefix")}


def _pattern(text: ast.JoinedStr, arguments: set[str]) -> str:
    """Return an f-string with each value named: by its argument, or by the attribute of it."""
    parts = []
    for part in text.values:
        match part:
            case ast.Constant(value=value):
                parts.append(str(value))
            case ast.FormattedValue(value=ast.Attribute(attr=name)):
                parts.append(f"<{name}>")
            case _:
                (name,) = {n.id for n in ast.walk(part) if isinstance(n, ast.Name)} & arguments
                parts.append(f"<{name}>")
    return "".join(parts)


def http_table() -> Iterator[str]:
    yield from _row("route", "role", "does")
    yield from _row("---", "---", "---")
    for endpoint in sorted(every_endpoint(), key=lambda each: (each.path, each.method)):
        yield from _row(f"`{endpoint.method} {endpoint.path}`", str(endpoint.role), endpoint.summary)


def metrics_table() -> Iterator[str]:
    yield from _row("metric", "type", "labels", "says")
    yield from _row("---", "---", "---", "---")
    for name, family in FAMILIES.items():
        shown = f"`{PREFIX}_{name}`" if family.seed else f"`{name}`"
        yield from _row(shown, family.kind, _codes(family.labels), family.about)
    with closing(open_store("memory:")) as database:
        location = StoreLocation("memory:", "", None, database.store_id, 0, "/nowhere")
        source = LogSource(Engine(database, "local"), database.log("local"), location, {})
        for gauge in gauges(source, Caller("docs"), Counts("local")):
            shown = f"`{PREFIX}_{gauge.name}`" if gauge.seed else f"`{gauge.name}`"
            yield from _row(shown, "gauge", _codes(gauge.labels), gauge.about)


def _codes(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _methods(*kinds: type) -> Iterator[str]:
    yield from _row("method", "returns", "does")
    yield from _row("---", "---", "---")
    for name, method in (item for kind in kinds for item in vars(kind).items()):
        function = method.__func__ if isinstance(method, classmethod) else method
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        signature = inspect.signature(function)
        _, *parameters = (each.replace(annotation=each.empty) for each in signature.parameters.values())
        shown = signature.replace(parameters=parameters, return_annotation=signature.empty)
        does = (function.__doc__ or "").split("\n", 1)[0]
        yield from _row(f"`{name}{shown}`", f"`{_type_name(signature.return_annotation)}`", does)


def _type_name(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b\w+\.(?:\w+\.)*(?=\w)", "", text)


def _row(*cells: str) -> Iterator[str]:
    yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "limits": limits_table,
    "settings": settings_table,
    "events": events_table,
    "api": api_table,
    "repository": repository_table,
    "client": client_table,
    "keyspace": keyspace_table,
    "http": http_table,
    "metrics": metrics_table,
}


def page_of(name: str) -> str:
    page = {"repository": "api", "settings": "limits"}.get(name, name)
    return f"docs/reference/{page}.md"


def with_table(text: str, name: str) -> str:
    """Return a page's text with the table as it should be."""
    before, begin, rest = text.partition(BEGIN.format(name=name))
    _, end, after = rest.partition(END)
    assert begin, f"no place is marked for the table {name}"
    assert end, f"the place for the table {name} has no end"
    table = "\n".join(TABLES[name]())
    return f"{before}{begin}{table}\n{end}{after}"


def main() -> None:
    for name in TABLES:
        path = ROOT / page_of(name)
        path.write_text(with_table(path.read_text(encoding="utf-8"), name), encoding="utf-8")


if __name__ == "__main__":
    main()
