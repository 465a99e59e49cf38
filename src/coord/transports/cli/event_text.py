"""An event as a line for people."""

from typing import Any

from coord.sdk.log_reader import LoggedEvent
from coord.transports import arguments
from coord.transports.cli.output import timestamp

TIMES_FROM_MS = 10**11
"""A larger number of milliseconds is a time, a smaller one a duration."""


def event_text(logged: LoggedEvent) -> str:
    """Return the details of an event: `session=s-ann resource=file:a.py lease=5m`."""
    return " ".join(detail_text(name, value) for name, value in logged.details.items())


def detail_text(name: str, value: Any) -> str:
    """Return a detail for people: `lease=5m`, `expires=in 4m30s`, and others as they are."""
    if name.endswith("_ms") and isinstance(value, int) and value:
        from coord.transports.cli.table import ago

        time_or_span = ago(timestamp(value) or "") if value > TIMES_FROM_MS else arguments.span(value / 1000)
        return f"{name.removesuffix('_ms')}={time_or_span}"
    return f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}"
