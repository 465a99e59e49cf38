"""`coord metrics`: numbers for Prometheus."""

from types import SimpleNamespace

from coord.sdk.client.client import Client
from coord.sdk.reports.metrics import metrics as as_text


def metrics(client: Client, _given: SimpleNamespace) -> str:
    """Return the metrics of the tenant."""
    return as_text(client)
