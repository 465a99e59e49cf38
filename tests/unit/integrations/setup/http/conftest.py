"""A repository of its own for each test."""

from tests.support.cli import repository

__all__ = ["repository"]
