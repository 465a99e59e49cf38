"""A repository for each test, and `coord` to call in it."""

from tests.support.cli import coord, repository

__all__ = ["coord", "repository"]
