"""A stretch of records in the order of their keys or lines: what rules ask for, and stores read."""

from typing import Literal, NamedTuple

By = Literal["key", "line"]


class Range(NamedTuple):
    """Records whose key, or line, begins with a prefix: so many, strictly after a line and key."""

    prefix: str
    by: By
    limit: int
    after: tuple[str, str] = ("", "")
