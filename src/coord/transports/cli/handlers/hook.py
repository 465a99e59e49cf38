"""`coord hook`: the program of the hooks, as a command."""

from types import SimpleNamespace
from typing import NoReturn

from coord.integrations.hooks.main import Hook


def hook(_options: SimpleNamespace, given: SimpleNamespace) -> NoReturn:
    """Answer an event of a coding agent, and end this process."""
    Hook(given.tool).run()
