"""Finds the definition that a mutant names, and changes the source inside it."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

Lines = tuple[int, int]


class LostAnchorError(Exception):
    """The source no longer has the place that a mutant names."""


def module_file(module: str, package: Path) -> Path:
    """Return the file of a dotted module inside the package `coord`."""
    path = package.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def changed(anchor: str, old: str, new: str, package: Path) -> tuple[Path, str]:
    """Return the file of an anchor and its source with `new` in place of `old`."""
    module, _, name = anchor.partition(":")
    file = module_file(module, package)
    found = definitions(file.read_text()).get(name, []) if file.is_file() else []
    if len(found) != 1:
        raise LostAnchorError(f"{anchor} has {len(found)} definitions; {_elsewhere(name, package)}")
    source = file.read_text()
    lines = source.splitlines(keepends=True)
    first, last = found[0]
    before, inside, after = lines[: first - 1], "".join(lines[first - 1 : last]), lines[last:]
    if inside.count(old) != 1:
        raise LostAnchorError(f"{anchor} has {old!r} {inside.count(old)} times, and not once")
    return file, "".join([*before, inside.replace(old, new), *after])


@functools.cache
def definitions(source: str) -> dict[str, list[Lines]]:
    """Return the first and last lines of every function, class and constant, by dotted name."""
    found: dict[str, list[Lines]] = {}
    for name, lines in _defined(ast.parse(source), ""):
        found.setdefault(name, []).append(lines)
    return found


def _defined(scope: ast.AST, prefix: str) -> Iterator[tuple[str, Lines]]:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield prefix + node.name, (first, node.end_lineno or first)
            yield from _defined(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield prefix + target.id, (node.lineno, node.end_lineno or node.lineno)
        elif isinstance(node, ast.stmt):
            yield from _defined(node, prefix)


def _elsewhere(name: str, package: Path) -> str:
    """Say which modules define a name: a function that was moved is found there."""
    modules = [
        ".".join(["coord", *file.relative_to(package).with_suffix("").parts])
        for file in sorted(package.rglob("*.py"))
        if name in definitions(file.read_text())
    ]
    return f"{name} is in {', '.join(modules)}" if modules else f"no module has {name}"
