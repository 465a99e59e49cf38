"""A connection: an open store in the name of one session, and the store that each resource belongs to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from coord.core.commands import Command, SessionCommand
from coord.core.dispatch import TARGETS
from coord.core.errors import CoordError, Invalid, NotFound
from coord.core.events import Origin
from coord.core.identity import Caller
from coord.core.ids import check_id
from coord.core.limits import UNLIMITED_TENANT
from coord.core.locks.paths import fold
from coord.engine.engine import Engine
from coord.host.caller import hops_in
from coord.host.consent import Configuration, read_consented
from coord.host.processes import probe
from coord.host.runtime.switched_on import switched_on
from coord.host.store_location import StoreLocation, user_location
from coord.sdk.client.open import open_for_use
from coord.stores.contract import Store
from coord.stores.database import Database
from coord.stores.open import OPEN_TIMEOUT_S, retry_unreachable

if TYPE_CHECKING:
    from coord.host.words import Words
    from coord.sdk.remote.database import RemoteDatabase


class Connection:
    """An open store in the name of one session; base of all client methods."""

    project_given = False
    """Whether the caller named its project, by flag, argument or environment."""
    reads_only = False
    """Whether coord is not in use here yet, and this connection may not change that."""

    def __init__(
        self,
        database: Database[Any],
        location: StoreLocation,
        caller: Caller,
        *,
        tenant: str,
        cwd: str,
        environ: Mapping[str, str],
        clock: Callable[[], int] | None = None,
        timeout: float = OPEN_TIMEOUT_S,
        engine: Engine | None = None,
    ) -> None:
        """`timeout`: for how many seconds it retries to reach a server, the user's store included.

        `engine`: one of the database that others use too, so that both stay open.
        """
        self.database = database
        self.location = location
        self.caller = caller if tenant == UNLIMITED_TENANT else msgspec.structs.replace(caller, tenant=tenant)
        self.tenant = tenant
        self._cwd = cwd
        self._environ = environ
        self._clock = clock
        self._timeout = timeout
        self._shared = engine is not None
        self.engine = engine or self._new_engine(database, clock)
        self._host: Connection | None = None
        self.on_wait: Callable[[Any], None] | None = None
        """Called with each reply that a waiting call gets, and with None when a lock's queue is left."""

    def _new_engine(self, database: Database[Any], clock: Callable[[], int] | None) -> Engine:
        """Return the engine of this connection's tenant, or one in a hub: it has the calls of an engine."""

        hops = hops_in(self._environ)
        origin = Origin(hops=hops).as_field() if hops else b""

        def local(database: Database[Any], tenant: str) -> Engine:
            return Engine(database, tenant, clock=clock, probe=probe, origin=origin)

        if database.is_remote:
            remote = cast("RemoteDatabase", database)
            remote.new_engine = local
            return cast("Engine", remote.engine(self.tenant, hops))
        return retry_unreachable(lambda: local(database, self.tenant), self._timeout)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of the caller."""
        return self._environ

    @property
    def clock(self) -> Callable[[], int] | None:
        """The clock of a test, in milliseconds; None for that of the store."""
        return self._clock

    @property
    def log(self) -> Store:
        """The log of this connection's tenant."""
        log: Store = self.database.log(self.tenant)
        return log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for running commands and close the store; locks are kept."""
        if self._host is not None:
            self._host.close()
        if not (self._shared or self.database.is_remote) and (names := switched_on(self.location.folder)):
            TARGETS["coord.followers.direct:catch_up"](self, names)  # layers above the sdk, by name
        if not self._shared:
            self.engine.close()
            self.database.close()

    def call(self, command: Command, command_id: str = "") -> Any:
        """Run a command in this store."""
        if command_id:
            check_id("command id", command_id)
        if self.reads_only and not command.reads_only:
            raise NotFound("coord is not in use here yet", hint="coord init sets it up")
        return self.engine.call(command, command_id=command_id)

    @property
    def configuration(self) -> Configuration:
        """The `coord.toml` of the repository; its tables are empty before a person has confirmed it."""
        return read_consented(self.location.repository, self._environ)

    def resolve(self, resources: str | Iterable[str]) -> tuple[str, ...]:
        """Return resources as the core names them: paths relative to the repository, links resolved."""
        return self.read_words(resources).texts

    def read_words(self, resources: str | Iterable[str], *, names: bool = True) -> "Words":
        """Return what words mean here; without `names`, a bare word like `LICENSE` is only a file."""
        from coord.host.words import no_resource, read_words  # hooks name no words

        try:
            words = [resources] if isinstance(resources, str) else list(resources)
        except TypeError as error:
            raise no_resource(resources) from error
        return read_words(words, self.location, self._cwd, names=names)

    def resolve_paths(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return paths as the core names them, without what the links in a folder lead to."""
        from coord.host.words import paths_of

        return paths_of(paths, self.location, self._cwd)

    def read_words_or_all(self, resources: str | Iterable[str] | None) -> "Words":
        """Return what words mean; None means all and gives no texts, an empty list is refused."""
        from coord.host.words import Words

        words = Words(()) if resources is None else self.read_words(resources)
        if resources is not None and not words.texts:
            raise Invalid("no resource given", hint="omit the list to mean all")
        return words

    def are_of_host(self, resources: Sequence[str]) -> list[bool]:
        """Return whether each of these resources belongs to the machine and not to the repository."""
        return [fold(text) in self.location.host_locks for text in resources]

    def store_for(self, resources: Sequence[str]) -> "Connection":
        """Return the connection for these resources: locks of the machine are in the user's store."""
        of_host = self.are_of_host(resources)
        if not any(of_host) or self.location.repository is None:
            return self
        if not all(of_host):
            raise Invalid(
                f"{', '.join(self.location.host_locks)} belong to this machine, the others to the repository",
                hint="use two commands",
            )
        host = self.user_store(make=True)
        assert host is not None, "created if missing"
        return host

    def user_store(self, *, make: bool) -> "Connection | None":
        """Return a connection to the user's store; None if it does not exist and `make` is false."""
        if self._host is None:
            location = self.user_location
            if not make and not location.pinned:
                return None
            self._host = self.open_other(location)
        self._host.on_wait = self.on_wait
        return self._host

    @property
    def user_location(self) -> StoreLocation:
        """The location of the user's store."""
        return user_location(self._environ)

    def open_other(self, location: StoreLocation) -> "Connection":
        """Return a connection of the same caller to another store; the caller of this method closes it."""
        database, location = open_for_use(location, self._timeout, self._environ, self.tenant)
        return Connection(
            database,
            location,
            msgspec.structs.replace(self.caller, max_agents=0),  # the limit is that of a repository
            tenant=self.tenant,
            cwd=self._cwd,
            environ=self._environ,
            clock=self._clock,
            timeout=self._timeout,
        )

    @property
    def in_user_store(self) -> bool:
        """Whether this is the user's store, where sessions of repositories are only stubs."""
        if self.location.repository is not None:
            return False
        return self.location.url == self.user_location.url

    def mirror_to_user_store(self, command: SessionCommand, *, make: bool = False) -> None:
        """Repeat a session command in the user's store, so that other repositories see the session.

        `make` creates that store if the user has none. Errors are ignored: the command has already
        succeeded in the repository's store.
        """
        if self.location.repository is None or not self.location.pinned:
            return
        try:
            host = self.user_store(make=make)
            if host is not None:
                caller = msgspec.structs.replace(command.caller, max_agents=0)
                host.engine.call(msgspec.structs.replace(command, caller=caller))
        except CoordError:
            return
