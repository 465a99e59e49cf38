"""A session's connection to a store whose server comes and goes."""

from typing import Any

import pytest

import coord
from coord.core.errors import Unreachable
from coord.stores.memory import MemoryDatabase


@pytest.mark.parametrize(("timeout", "opens"), [(60.0, True), (0.0, False)])
def test_a_server_lost_between_the_store_and_its_log(
    monkeypatch: pytest.MonkeyPatch, timeout: float, opens: bool
) -> None:
    """REC-20: the log of the tenant is opened by a second question, which is retried like the first."""
    asked: list[str] = []
    open_log = MemoryDatabase.log

    def log(self: MemoryDatabase, tenant: str) -> Any:
        asked.append(tenant)
        if len(asked) == 1:
            raise Unreachable("the server restarts")
        return open_log(self, tenant)

    monkeypatch.setattr(MemoryDatabase, "log", log)
    if opens:
        with coord.connect("memory:", session="s", timeout=timeout) as client:
            assert client.locks() == []
    else:
        with pytest.raises(Unreachable, match="restarts"):
            coord.connect("memory:", session="s", timeout=timeout)
    assert asked[0] == "local"
