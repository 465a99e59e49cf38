"""Other locks, each as its documentation says to use it, and ours, all behind one face.

filelock and the advisory lock keep nothing: they are gone with their process or connection, and neither has
a fence, a line or a reason. Redis and etcd here sync every write, as a store of coord does.
"""

import base64
import json
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bench.repository import PATH, PATIENCE_S, open_client

REDIS_TTL_S = 300.0
ETCD_TTL_S = 300


class Peer(Protocol):
    """A lock that one process takes and gives back, again and again."""

    def acquire(self) -> None:
        """Wait until it is held."""

    def release(self) -> None: ...
    def close(self) -> None: ...


class CoordPeer:
    """Our own, through the library."""

    def __init__(self, url: str, repository: Path, session: str) -> None:
        self._client = open_client(url, repository, session)

    def acquire(self) -> None:
        assert self._client.acquire(PATH, wait_s=PATIENCE_S).ok, "whoever waits is granted in the end"

    def release(self) -> None:
        self._client.unlock(PATH)

    def close(self) -> None:
        self._client.close()


class FileLockPeer:
    """filelock.FileLock: flock, and a poll every 50 ms."""

    def __init__(self, url: str, _repository: Path, _session: str) -> None:
        import filelock  # noqa: PLC0415 - each process imports its own lock alone

        self._lock = filelock.FileLock(url)

    def acquire(self) -> None:
        self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def close(self) -> None:
        """Nothing is open between two locks."""


class RedisPeer:
    """redis-py's Lock: SET NX with a lifetime, a script to release, and a poll every 100 ms."""

    def __init__(self, url: str, _repository: Path, _session: str) -> None:
        import redis  # noqa: PLC0415 - each process imports its own lock alone

        self._client = redis.from_url(url)
        self._lock = self._client.lock(PATH, timeout=REDIS_TTL_S)

    def acquire(self) -> None:
        assert self._lock.acquire(), "without a limit it waits as long as it takes"

    def release(self) -> None:
        self._lock.release()

    def close(self) -> None:
        self._client.close()


class AdvisoryPeer:
    """A Postgres advisory lock of the session: the server wakes the next one itself."""

    def __init__(self, url: str, _repository: Path, _session: str) -> None:
        import psycopg  # noqa: PLC0415 - each process imports its own lock alone

        self._connection = psycopg.connect(url, autocommit=True)

    def acquire(self) -> None:
        self._connection.execute("SELECT pg_advisory_lock(1)")

    def release(self) -> None:
        self._connection.execute("SELECT pg_advisory_unlock(1)")

    def close(self) -> None:
        self._connection.close()


class EtcdPeer:
    """etcd's lock, as its own library uses it: a key under the lease of a session, in line by revision."""

    def __init__(self, url: str, _repository: Path, _session: str) -> None:
        self._connection = HTTPConnection(url.removeprefix("http://"))
        self._key = ""
        self._lease = self.grant()

    def acquire(self) -> None:
        name = base64.b64encode(PATH.encode()).decode()
        self._key = self._ask("lock/lock", name=name, lease=self._lease)["key"]

    def release(self) -> None:
        self._ask("lock/unlock", key=self._key)

    def close(self) -> None:
        self._ask("lease/revoke", ID=self._lease)
        self._connection.close()

    def grant(self) -> str:
        """Return the id of a new lease."""
        return str(self._ask("lease/grant", TTL=ETCD_TTL_S)["ID"])

    def _ask(self, what: str, **fields: object) -> dict[str, Any]:
        self._connection.request("POST", f"/v3/{what}", json.dumps(fields))
        response = self._connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
        assert response.status == 200, answer
        return answer


class EtcdLeasePeer(EtcdPeer):
    """etcd's lock with a lease of its own each time, as a lock of coord has one."""

    def acquire(self) -> None:
        self._lease = self.grant()
        super().acquire()

    def release(self) -> None:
        super().release()
        self._ask("lease/revoke", ID=self._lease)

    def close(self) -> None:
        self._connection.close()


PEERS: dict[str, Callable[[str, Path, str], Peer]] = {
    "coord": CoordPeer,
    "filelock": FileLockPeer,
    "redis-py Lock": RedisPeer,
    "Postgres advisory": AdvisoryPeer,
    "etcd": EtcdPeer,
    "etcd, lease each": EtcdLeasePeer,
}


class Rival(NamedTuple):
    """A lock to compare with, and where it is found."""

    name: str
    url: str

    def open(self, repository: Path, session: str) -> Peer:
        return PEERS[self.name](self.url, repository, session)
