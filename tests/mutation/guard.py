"""A pytest plugin: the tests import the copy with the mutant, and fail because of the mutant alone."""

import os
import re
from pathlib import Path

import pytest

import coord

WRONG_PACKAGE = 99
WRONG_REASON = 98
NO_PROGRAM = (ImportError, NameError, SyntaxError)
IN_WORDS = re.compile(r"\b(Import|ModuleNotFound|Name|UnboundLocal)Error\(")
"""The engine reports an exception of a rule as text."""


def pytest_configure() -> None:
    root = Path(os.environ["COORD_MUTANT_ROOT"])
    if not Path(coord.__file__).is_relative_to(root):
        pytest.exit(f"{coord.__file__} is not in {root}", returncode=WRONG_PACKAGE)


def pytest_exception_interact(call: pytest.CallInfo) -> None:
    """Stop at an error that any test would notice: the mutant does not run at all."""
    error = call.excinfo.value if call.excinfo else None
    while error is not None:
        if isinstance(error, NO_PROGRAM) or IN_WORDS.search(str(error)):
            pytest.exit(f"the mutant does not run: {error!r}", returncode=WRONG_REASON)
        error = error.__cause__
