"""The settings of the ledger: none that is not understood is passed over."""

from typing import Any

import pytest

from coord.core.activity.settings import ENTRIES_MAX, LedgerSettings, ledger_settings
from coord.core.errors import Invalid


def settings_in(**table: object) -> LedgerSettings:
    return ledger_settings({"ledger": table}, "coord.toml")


@pytest.mark.parametrize("entries", [0, -1, ENTRIES_MAX + 1, True, "many", 1.5, None])
def test_a_bound_that_means_nothing_is_refused(entries: object) -> None:
    with pytest.raises(Invalid, match=r"ledger\.entries"):
        settings_in(entries=entries)


def test_the_bound_is_a_setting() -> None:
    """AUD-8."""
    assert ledger_settings({}, "").entries == 10_000
    assert settings_in(entries=50) == LedgerSettings(50, reads=True)
    assert settings_in(entries=ENTRIES_MAX, reads=False) == LedgerSettings(ENTRIES_MAX, reads=False)


@pytest.mark.parametrize("table", [1, [], {"reads": 1}, {"reads": "false"}, {"read": True}, {"reads": None}])
def test_other_settings_are_refused(table: Any) -> None:
    with pytest.raises(Invalid, match="ledger") as caught:
        ledger_settings({"ledger": table}, "coord.toml")
    assert caught.value.hint
