"""The shells of people, which the project's set-up installs."""

import shutil

import pytest


def installed_shell(name: str) -> str:
    """Return the path of a shell."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (tools/setup servers)")
    return found
