"""A pytest plugin: stop at once unless the package under test is the copy that was meant."""

import os
from pathlib import Path

import pytest

import coord

WRONG_PACKAGE = 99


def pytest_configure() -> None:
    meant = Path(os.environ["COORD_MUTANT_ROOT"])
    if not Path(coord.__file__).is_relative_to(meant):
        pytest.exit(f"{coord.__file__} is not in {meant}", returncode=WRONG_PACKAGE)
