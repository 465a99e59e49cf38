"""Resources that can be locked, and the key of each lock on them.

    file:<path or glob>     in one repository, the same from each of its worktrees
    name:<free>             in one repository (`main-push`), or on the host outside of any
    project:<p>[:<area>]    in the tenant; a project covers its areas only if the setting
                            `project_lock_nesting` is on

Locks *at* a directory have keys under `<directory>//`, and all locks at or *below* it under
`<directory>/`. So a request reads the range below itself and one range for each ancestor, however
many locks there are.

A path covers itself and everything below it, because it may be a directory. If the caller knows
that it is a file, it sets `exact`; a glob then conflicts with it only if the glob matches it.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from coord.core import keys
from coord.core.errors import Invalid
from coord.core.ids import check_id, short_repr
from coord.core.locks.paths import Pattern, covers, fold, overlaps, parse_pattern

NAME_CHARS_MAX = 100
PATH_BYTES_MAX = 440
TENANT_WIDE = "-"
"""Replaces the repository if there is none."""

REQUEST_RESOURCES_MAX = 64
"""How many resources one command acquires, steals or preempts."""
NAMED_RESOURCES_MAX = 256
"""How many resources one command releases, renews or checks: the most that any command may name."""


class Resource(msgspec.Struct, frozen=True):
    """Something that can be locked; one guard covers everything in its `space`."""

    kind: str
    space: str
    text: str
    prefix: str
    pattern: Pattern | None
    exact: bool = False
    nested: bool = False
    """A project that covers its areas, or an area that its project covers."""

    @property
    def guard(self) -> str:
        """The key of the record that every change to a lock in this space writes."""
        return keys.guard(self.space)

    def lock_key(self, session: str) -> str:
        """Return the key of a session's lock on this."""
        return f"{self.prefix}={session}"

    @property
    def ranges(self) -> list[str]:
        """The key prefixes of every lock that can overlap this."""
        if self.nested:
            whole = self.whole_project
            areas = f"{whole[:-2]}:"
            return [f"{self.prefix}=", areas if self.prefix == whole else f"{whole}="]
        if self.pattern is None:
            return [f"{self.prefix}="]
        base = keys.locks(self.space)
        directory = self.pattern.directory
        ancestors = ["/".join((base, *directory[:depth])) + "//" for depth in range(len(directory))]
        return [*ancestors, "/".join((base, *directory)) + "/"]

    @property
    def whole_project(self) -> str:
        """The key prefix of the project that an area belongs to; that of a project is its own."""
        return self.prefix[:-2].partition(":")[0] + "//"

    def overlaps(self, other: "Resource") -> bool:
        """Whether two resources have something in common."""
        if self.space != other.space:
            return False
        if self.nested or other.nested:
            return self.prefix in (other.prefix, other.whole_project) or other.prefix == self.whole_project
        if self.pattern is None or other.pattern is None:
            return self.prefix == other.prefix
        if self.exact and not other.pattern.literal:
            return covers(other.pattern, self.pattern)
        if other.exact and not self.pattern.literal:
            return covers(self.pattern, other.pattern)
        return overlaps(self.pattern, other.pattern)


def prefetch_keys(texts: Iterable[str], repository: str) -> list[Resource]:
    """Return the resources of a command; none if the rule will reject them as invalid or too many."""
    try:
        found = [resource for text in texts for resource in parse_resource(text, repository)]
    except Invalid:
        return []
    return found if len(found) <= NAMED_RESOURCES_MAX else []


@lru_cache(maxsize=4096)
def parse_resource(
    text: str, repository: str, exact: bool = False, nested: bool = False
) -> tuple[Resource, ...]:
    """Return the resources of a text like `file:src/{a,b}.py`, each a single file if `exact`.

    With `nested`, a project covers its areas.
    """
    if exact:
        return tuple(map(_exact, parse_resource(text, repository)))
    kind, colon, rest = text.partition(":")
    if colon and kind == "file":
        return tuple(_file(pattern, repository) for pattern in parse_pattern(rest))
    if colon and kind == "name":
        return (_name(rest, repository or TENANT_WIDE),)
    if colon and kind == "project":
        return (_project(rest, nested),)
    raise Invalid(
        f"{short_repr(text)} is not a resource", hint="use file:<path>, name:<name> or project:<project>"
    )


def _file(pattern: Pattern, repository: str) -> Resource:
    if not repository:
        raise Invalid("files are locked inside a repository", hint="run this inside one (git init makes one)")
    if len(pattern.folded.encode()) > PATH_BYTES_MAX:
        raise Invalid(f"the path has more than {PATH_BYTES_MAX} bytes", hint="lock a directory above it")
    space = f"file/{repository}"
    directory = "/".join((keys.locks(space), *pattern.directory))
    own = "" if pattern.literal else "*" + "/".join(pattern.folded.split("/")[len(pattern.directory) :]) + "/"
    return Resource("file", space, f"file:{pattern.spelled}", f"{directory}//{own}", pattern)


def _exact(resource: Resource) -> Resource:
    pattern = resource.pattern
    if pattern is None or not pattern.literal or not pattern.directory:
        raise Invalid(
            f"{short_repr(resource.text)} is not a single file", hint="only the path of a file can be exact"
        )
    return msgspec.structs.replace(resource, exact=True)


def _name(name: str, repository: str) -> Resource:
    normal = unicodedata.normalize("NFC", name)
    escaped = fold(normal).replace("%", "%25").replace("/", "%2F")
    valid = normal.isprintable() and normal == normal.strip() and len(escaped.encode()) <= PATH_BYTES_MAX
    if not 0 < len(normal) <= NAME_CHARS_MAX or not valid:
        raise Invalid(
            f"{short_repr(name)} is not a name to lock",
            hint=f"1 to {NAME_CHARS_MAX} printable characters, no space at the ends",
        )
    space = f"name/{repository}"
    return Resource("name", space, f"name:{normal}", f"{keys.locks(space)}/{escaped}//", None)


def _project(rest: str, nested: bool) -> Resource:
    project, colon, area = rest.partition(":")
    check_id("project id", project)
    if ":" in area or (colon and not area):
        raise Invalid(f"{short_repr(rest)} is not a project with an area", hint="use project:shop:checkout")
    if area:
        check_id("area", area)
    space = f"project/{TENANT_WIDE}"
    prefix = f"{keys.locks(space)}/{rest.casefold()}//"
    return Resource("project", space, f"project:{rest}", prefix, None, nested=nested)


def parse_resources(
    texts: tuple[str, ...], repository: str, limit: int, exact: tuple[str, ...] = (), nested: bool = False
) -> list[Resource]:
    """Return the resources of a request, each once, in an order that is the same for everybody.

    `exact` are those of the texts that name single files. With `nested`, projects cover their areas.
    """
    if not texts:
        raise Invalid("no resource given", hint="for example file:src/app.py or name:main-push")
    if not set(exact) <= set(texts):
        stray = min(set(exact) - set(texts))
        raise Invalid(f"{short_repr(stray)} is exact but is not requested", hint="name it as a resource too")
    found: dict[str, Resource] = {}
    for text in sorted(texts, key=exact.__contains__, reverse=True):  # what is also named as a path is one
        found.update((each.prefix, each) for each in parse_resource(text, repository, text in exact, nested))
    limit += sum("{" in text for text in texts)  # the name with these braces, beside its alternatives
    if len(found) > limit:
        raise Invalid(
            f"{len(found)} resources in one request", hint=f"at most {limit}; a glob may cover them"
        )
    return [found[prefix] for prefix in sorted(found)]
