"""Makes the tables in docs/reference that follow from the code.

`python -m tests.support.docs.tables` writes them again; a test fails when a page and the code differ.
"""

import inspect
import re
from collections.abc import Callable, Iterator

import msgspec

from coord.core import events
from coord.core.limits import PROFILES, RATIONALE
from coord.sdk.claim_repository import ClaimRepository
from coord.sdk.client.agents import AgentCalls
from coord.sdk.client.client import Client
from coord.sdk.client.locks import LockCalls
from coord.sdk.client.messages import MessageCalls
from coord.sdk.client.sessions import SessionCalls
from coord.sdk.client.tasks import TaskCalls
from coord.sdk.coordinator import TaskCoordinator
from tests.support.docs.pages import ROOT

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


def limits_table() -> Iterator[str]:
    yield from _row("limit", *PROFILES, "because", "when reached")
    yield from _row("---", *("---:" for _ in PROFILES), "---", "---")
    for name, because in RATIONALE.items():
        values = [f"{getattr(limits, name):,}" for limits in PROFILES.values()]
        reached = f"`{REASONS[name]}`" if name in REASONS else ""
        yield from _row(f"`{name}`", *values, because, reached)


def events_table() -> Iterator[str]:
    yield from _row("event", "means", "fields", "in the specification")
    yield from _row("---", "---", "---", "---")
    for kind in event_kinds(events.Event):
        name = str(kind.__struct_config__.tag)
        fields = ", ".join(f"`{field}`" for field in kind.__struct_fields__)
        seed_name = events.SEED_NAMES.get(name)
        yield from _row(f"`{name}`", kind.__doc__ or "", fields, f"`{seed_name}`" if seed_name else "")


def event_kinds(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """Yield the events in the order of the code; bases have no tag of their own."""
    for kind in base.__subclasses__():
        if "." in str(kind.__struct_config__.tag):
            yield kind
        yield from event_kinds(kind)


def api_table() -> Iterator[str]:
    yield from _methods(TaskCoordinator)


def repository_table() -> Iterator[str]:
    yield from _methods(ClaimRepository)


def client_table() -> Iterator[str]:
    yield from _methods(Client, SessionCalls, LockCalls, MessageCalls, TaskCalls, AgentCalls)


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
    "events": events_table,
    "api": api_table,
    "repository": repository_table,
    "client": client_table,
}


def page_of(name: str) -> str:
    return f"docs/reference/{'api' if name == 'repository' else name}.md"


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
