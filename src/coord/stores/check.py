"""What `coord doctor` learns from a store about the place it lives in."""

from typing import NamedTuple


class Check(NamedTuple):
    """One thing looked at; `hint` names the next step where it is not well."""

    name: str
    well: bool
    text: str
    hint: str = ""
