"""A pytest plugin: the package under test is the copy that was meant, and fails for what was broken in it."""

import os
import re
from pathlib import Path

import pytest

import coord

WRONG_PACKAGE = 99
WRONG_REASON = 98
NO_PROGRAM = (ImportError, NameError, SyntaxError)
IN_WORDS = re.compile(r"\b(Import|ModuleNotFound|Name|UnboundLocal)Error\(")
"""The engine answers a defect of a rule in words."""


def pytest_configure() -> None:
    meant = Path(os.environ["COORD_MUTANT_ROOT"])
    if not Path(coord.__file__).is_relative_to(meant):
        pytest.exit(f"{coord.__file__} is not in {meant}", returncode=WRONG_PACKAGE)


def pytest_exception_interact(call: pytest.CallInfo) -> None:
    """A mutant that is no program is noticed by anybody: no test has shown anything."""
    error = call.excinfo.value if call.excinfo else None
    while error is not None:
        if isinstance(error, NO_PROGRAM) or IN_WORDS.search(str(error)):
            pytest.exit(f"the mutant is no program: {error!r}", returncode=WRONG_REASON)
        error = error.__cause__
