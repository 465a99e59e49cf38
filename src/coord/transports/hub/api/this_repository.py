"""The repository of a request, for what reads its files: code, hooks, mirrors, configuration."""

from coord.core.errors import NotFound
from coord.core.limits import UNLIMITED_TENANT
from coord.host.repository import Repository
from coord.transports.hub.api.endpoint import Asking
from coord.transports.hub.identity import forbidden


def repository_of(asking: Asking) -> Repository:
    """Return the repository of a request; refuse tokens with limits, other tenants and other repositories."""
    if _is_limited(asking):
        raise forbidden("the files of a repository belong to no project and to no session")
    repository = _here(asking)
    if repository is None:
        raise NotFound("the hub has no repository of this request", hint="ask the hub of the repository")
    return repository


def sees_files(asking: Asking) -> bool:
    """Whether `repository_of` returns a repository."""
    return not _is_limited(asking) and _here(asking) is not None


def _is_limited(asking: Asking) -> bool:
    token = asking.identity.token
    return token is not None and bool(token.project or token.session)


def _here(asking: Asking) -> Repository | None:
    location = asking.store.location
    own = asking.tenant == UNLIMITED_TENANT and asking.repository == location.repository_id
    return location.repository if own else None
