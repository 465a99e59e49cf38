"""The caller of a command, its process, and evidence about whether a process is alive."""

from enum import StrEnum

import msgspec


class Process(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One process, distinct from a later one with the same pid and from those of other machines."""

    pid: int
    start: int
    machine: str = ""
    boot: str = ""
    namespace: str = ""


class ProcessState(StrEnum):
    """What a probe found out about a process.

    A foreign process is alive, but no agent runs in it: `init`, for example. A session that names it may be
    ended by anybody, but is not dead: only its heartbeats show whether it is alive.
    """

    ALIVE = "alive"
    DEAD = "dead"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"


class Evidence(msgspec.Struct, frozen=True):
    """The result of a probe, and the reason in a few words (kept in events)."""

    life: ProcessState
    detail: str = ""

    @property
    def refutes(self) -> bool:
        """Whether the session does not run in the process that it names."""
        return self.life in (ProcessState.DEAD, ProcessState.FOREIGN)


NO_EVIDENCE = Evidence(ProcessState.UNKNOWN, "not probed")


class Caller(msgspec.Struct, frozen=True, omit_defaults=True):
    """The session in whose name a command comes. The caller has checked the ids.

    `session` is empty if only signs of an agent tool were found; the nearest registered ancestor then
    decides. `process` is the session's own process, never that of a one-shot command.
    `process_ancestors` are the ancestors of the process that asks, nearest first. `tenant` is
    empty if no limit on sessions applies. `max_agents` is the limit that the environment states (0: none);
    a `person` does not count against it. `terminal`: nothing names a session, so the caller is the user of
    its terminal, unless an agent runs above it. `token` is the id of the token with which a request came over
    the network; only a hub sets it, after it has checked the token.
    """

    session: str
    agent: str = ""
    role: str = ""
    user: str = ""
    project: str = ""
    parent: str = ""
    host: str = ""
    cwd: str = ""
    repository: str = ""
    tool: str = ""
    process: Process | None = None
    process_ancestors: tuple[Process, ...] = ()
    tenant: str = ""
    max_agents: int = 0
    person: bool = False
    terminal: bool = False
    token: str = ""
