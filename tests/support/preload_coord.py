"""Imports coord, its drivers and the harness of processes, for a fork server."""

import contextlib
import importlib
import pkgutil

import coord
import tests.support.process_group  # noqa: F401 - most programs import something of it

PACKAGES = ("coord.core.", "coord.engine.", "coord.host.", "coord.sdk.", "coord.stores.")

for module in pkgutil.walk_packages(coord.__path__, "coord."):
    if module.name.startswith(PACKAGES):
        with contextlib.suppress(ImportError):  # a driver may be missing
            importlib.import_module(module.name)
