"""coord keeps AI coding agents that share a codebase from overwriting each other's work.

`__all__` lists the public names. Each is imported on first use, so `import coord` takes almost no time.
"""

TYPE_CHECKING = False  # as type checkers know it; `typing` takes as long as the start of Python
if TYPE_CHECKING:
    from typing import Any

    from coord.core.errors import (
        Busy,
        ClaimLost,
        CoordError,
        Corrupt,
        Dead,
        Denied,
        Gone,
        Impostor,
        Invalid,
        LimitReached,
        LockLost,
        NotFound,
        NotOwner,
        NotStealable,
        Refused,
        Trimmed,
        Unavailable,
        Unknown,
        Unreachable,
        Unsupported,
    )
    from coord.core.ids import TaskIdentifier
    from coord.core.tasks.types import ClaimKey, ClaimTemplate
    from coord.sdk.claim_repository import ClaimRepository
    from coord.sdk.client.client import Client, connect
    from coord.sdk.coordinator import TaskCoordinator
    from coord.sdk.scheduler import Scheduler
    from coord.sdk.worker.work import CannotBeDone, GiveBack, RateLimited, Work, WorkFailed
    from coord.sdk.worker.worker import Worker
    from coord.stores.open import install, open_store

__version__ = "0.1.0"

_MODULES = {
    "Client": "coord.sdk.client.client",
    "connect": "coord.sdk.client.client",
    "TaskCoordinator": "coord.sdk.coordinator",
    "Worker": "coord.sdk.worker.worker",
    "Work": "coord.sdk.worker.work",
    "WorkFailed": "coord.sdk.worker.work",
    "CannotBeDone": "coord.sdk.worker.work",
    "GiveBack": "coord.sdk.worker.work",
    "RateLimited": "coord.sdk.worker.work",
    "Scheduler": "coord.sdk.scheduler",
    "TaskIdentifier": "coord.core.ids",
    "ClaimKey": "coord.core.tasks.types",
    "ClaimRepository": "coord.sdk.claim_repository",
    "ClaimTemplate": "coord.core.tasks.types",
    "install": "coord.stores.open",
    "open_store": "coord.stores.open",
    "CoordError": "coord.core.errors",
    "Busy": "coord.core.errors",
    "Corrupt": "coord.core.errors",
    "NotStealable": "coord.core.errors",
    "NotOwner": "coord.core.errors",
    "LockLost": "coord.core.errors",
    "ClaimLost": "coord.core.errors",
    "Impostor": "coord.core.errors",
    "Gone": "coord.core.errors",
    "Denied": "coord.core.errors",
    "Dead": "coord.core.errors",
    "Invalid": "coord.core.errors",
    "LimitReached": "coord.core.errors",
    "NotFound": "coord.core.errors",
    "Refused": "coord.core.errors",
    "Trimmed": "coord.core.errors",
    "Unavailable": "coord.core.errors",
    "Unreachable": "coord.core.errors",
    "Unknown": "coord.core.errors",
    "Unsupported": "coord.core.errors",
}

__all__ = [
    "Busy",
    "CannotBeDone",
    "ClaimKey",
    "ClaimLost",
    "ClaimRepository",
    "ClaimTemplate",
    "Client",
    "CoordError",
    "Corrupt",
    "Dead",
    "Denied",
    "GiveBack",
    "Gone",
    "Impostor",
    "Invalid",
    "LimitReached",
    "LockLost",
    "NotFound",
    "NotOwner",
    "NotStealable",
    "RateLimited",
    "Refused",
    "Scheduler",
    "TaskCoordinator",
    "TaskIdentifier",
    "Trimmed",
    "Unavailable",
    "Unknown",
    "Unreachable",
    "Unsupported",
    "Work",
    "WorkFailed",
    "Worker",
    "__version__",
    "connect",
    "install",
    "open_store",
]


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        raise AttributeError(f"module 'coord' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
