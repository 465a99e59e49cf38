"""Who asks: a session, the process it lives in, and what is known about a process being alive."""

from enum import StrEnum

import msgspec


class Process(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One process, told apart from a later one with the same pid, and from those of other machines."""

    pid: int
    start: int
    machine: str = ""
    boot: str = ""
    namespace: str = ""


class ProcessState(StrEnum):
    """What could be found out about a process from where the question was asked."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class Evidence(msgspec.Struct, frozen=True):
    """The answer of a probe, and in a few words what it rests on (it is kept in events)."""

    life: ProcessState
    detail: str = ""


NO_EVIDENCE = Evidence(ProcessState.UNKNOWN, "nobody looked")


class Caller(msgspec.Struct, frozen=True, omit_defaults=True):
    """In whose name a command comes. Ids are checked by the shell that fills this in.

    `session` is empty where only signs of an agent tool were found: then the nearest ancestor that
    registered decides. `process` is the session's own process, never that of a one-shot command.
    `process_ancestors` are the ancestors of the process that asks, nearest first. `tenant` is
    empty where no limit applies to one more session.
    """

    session: str
    agent: str = ""
    role: str = ""
    user: str = ""
    project: str = ""
    parent: str = ""
    host: str = ""
    cwd: str = ""
    tool: str = ""
    process: Process | None = None
    process_ancestors: tuple[Process, ...] = ()
    tenant: str = ""
