"""The private folder for sockets: one rule, for hubs and for waking others."""

import os
import tempfile
from pathlib import Path

import pytest

from coord.host.runtime.hub_socket import runtime_folder
from coord.stores.local.wakeup import NOWHERE, Wakeup


def folder_of_wakeup(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_RUNTIME_DIR", environ["XDG_RUNTIME_DIR"])
    found = os.path.dirname(Wakeup("/some/store")._folder)
    return "" if found == NOWHERE else found


@pytest.mark.parametrize("chars", [20, 59, 60, 61, 90])
def test_hubs_and_waiters_use_one_folder(monkeypatch: pytest.MonkeyPatch, chars: int) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="r-") as short:
        base = f"{short}/".ljust(chars, "x")
        Path(base).mkdir(mode=0o700)
        environ = {"XDG_RUNTIME_DIR": base}
        found = folder_of_wakeup(environ, monkeypatch)
        assert found == runtime_folder(environ)
        assert found.startswith(base) == (chars < 60)


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707])
def test_a_folder_that_others_can_enter_is_not_used(monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="r-") as base:
        Path(base, "coord").mkdir()
        Path(base, "coord").chmod(mode)
        environ = {"XDG_RUNTIME_DIR": base}
        assert folder_of_wakeup(environ, monkeypatch) == runtime_folder(environ, make=True) == ""
