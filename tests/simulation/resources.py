"""What the agents of a lock run ask for, and what it covers: told by hand, not by the code under test."""

import re
from functools import lru_cache

REPOSITORY = "repo"

_WHERE = {
    "file:src": r"src(/.*)?",
    "file:src/a.py": r"src/a\.py(/.*)?",
    "file:SRC/A.py": r"src/a\.py(/.*)?",
    "file:src/b.py": r"src/b\.py(/.*)?",
    "file:src/*.py": r"src/[^/]*\.py",
    "file:src/**": r"src/.+",
    "file:**/*.py": r"(.*/)?[^/]*\.py",
    "file:src/lib": r"src/lib(/.*)?",
    "file:src/lib/c.txt": r"src/lib/c\.txt(/.*)?",
    "file:docs/x.md": r"docs/x\.md(/.*)?",
    "file:docs/y.md": r"docs/y\.md(/.*)?",
    "file:docs/?.md": r"docs/[^/]\.md",
    "file:docs/[a-x].md": r"docs/[a-x]\.md|docs/\[a-x]\.md(/.*)?",
    "name:main-push": "name main-push",
    "name:Main-Push": "name main-push",
    "name:deploy": "name deploy",
    "project:shop": "project shop",
    "project:shop:checkout": "project shop:checkout",
}
"""Every resource of the runs, as the names that belong to it."""

_NAMES = (
    *("src", "src/a.py", "src/a.py/z.py", "src/b.py", "src/b.py/z.py", "src/lib", "src/lib/c.py"),
    *("src/lib/c.txt", "src/lib/c.txt/z.py", "docs/x.md", "docs/x.md/z.py", "docs/y.md", "docs/y.md/z.py"),
    *("docs/[a-x].md", "docs/[a-x].md/z.py", "docs/{x,y}.md", "docs/{x,y}.md/z.py"),
    *(f"name ring-{n}" for n in range(8)),
    *("name main-push", "name deploy", "project shop", "project shop:checkout"),
)
"""At least one name for every two resources that have one in common."""

RESOURCES = tuple(_WHERE)
RING = tuple(f"name:ring-{n}" for n in range(8))
"""Resources that have nothing in common, for scenes."""
_WHERE |= {resource: f"name {resource[5:]}" for resource in RING}
BRACES = "file:docs/{x,y}.md"
"""Asks for two resources at once, and for the file that is spelled so."""
_WHERE[r"file:docs/\{x,y\}.md"] = r"docs/\{x,y\}\.md(/.*)?"
FILES = ("file:src/a.py", "file:src/b.py", "file:src/lib/c.txt", "file:docs/x.md")
"""Said to be single files by whoever asks for nothing else; together with others they are paths."""

Thing = tuple[str, bool]
"""A resource, and whether it is a single file."""


def files_of(resources: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the resources that are said to be single files."""
    return resources if len(resources) == 1 and resources[0] in FILES else ()


@lru_cache
def covers(resource: str) -> frozenset[str]:
    """The names that belong to a resource."""
    return frozenset(name for name in _NAMES if re.fullmatch(_WHERE[resource], name))


@lru_cache
def overlap(one: Thing, other: Thing) -> bool:
    """Whether something belongs to both; that a path is a single file counts between it and a glob."""
    if is_path(one[0]) and is_path(other[0]):
        return not covers(one[0]).isdisjoint(covers(other[0]))
    mine, theirs = (
        covers(name) & {name[5:].lower()} if exact else covers(name) for name, exact in (one, other)
    )
    return not mine.isdisjoint(theirs)


def is_path(resource: str) -> bool:
    """Whether this is no glob and no name."""
    return resource.startswith("file:") and not set("*?[") & set(resource)


def default_mode(resource: str, profile: str) -> str:
    """The mode of whoever names none."""
    return "write" if profile == "ticket" or resource.startswith("file:") else "exclusive"
