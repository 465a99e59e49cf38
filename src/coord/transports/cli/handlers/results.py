"""Commands about what came of tasks."""

import sys
from types import SimpleNamespace

from coord.sdk.client.client import Client
from coord.transports.cli.output import is_terminal, safe_json


def result(client: Client, given: SimpleNamespace) -> str:
    """Print a result as it was handed in."""
    text = client.task_result(given.task).decode()
    return (safe_json(text) if is_terminal(sys.stdout) else text) + "\n"
