"""The full check of a log reads every page of it, also of a log that was trimmed."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from coord.stores import full_check
from coord.stores.contract import Put
from coord.stores.full_check import read_everything
from coord.stores.open import open_store
from tests.support.stores.steps import write


def test_every_page_of_a_log_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records by key, the same by index key, and the entries that a trim left."""
    monkeypatch.setattr(full_check, "PAGE", 2)
    with closing(open_store("memory:")) as database:
        log: Any = database.log("local")
        for number in range(5):
            write(log, {f"key-{number}": Put(b"x", f"due/{number}" if number < 3 else "")}, events=[b"e"])
        log.trim(2)
        seen: list[str] = []
        scan = log.scan

        def noted(*args: Any, **named: Any) -> Sequence[Any]:
            page: Sequence[Any] = scan(*args, **named)
            seen.extend(f"{named['by']} {record.key}" for record in page)
            return page

        monkeypatch.setattr(log, "scan", noted)
        assert read_everything(log) == (5, 4)
    by_key = [f"key key-{number}" for number in range(5)]
    assert seen == [*by_key, *(f"index_key key-{number}" for number in range(3))]
