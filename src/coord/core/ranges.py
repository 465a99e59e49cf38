"""A range of records in the order of their keys or index keys: rules ask for it, stores read it."""

from typing import Literal, NamedTuple

By = Literal["key", "index_key"]


class Range(NamedTuple):
    """Records whose key, or index key, begins with `prefix`: up to `limit`, after an index key and key."""

    prefix: str
    by: By
    limit: int
    after: tuple[str, str] = ("", "")
