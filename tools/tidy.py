"""Habits no other tool checks: sizes, names, leftovers, tests that assert nothing, traces of a machine.

Reads what git tracks or would track. Prints `path:line: message` and exits 1 if there is anything to say.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.vocabulary import unused_words

ROOT = Path(__file__).resolve().parent.parent

FILE_LINES, SRC_FILE_LINES = 600, 400
FUNCTION_LINES, SRC_FUNCTION_LINES = 80, 60
WRITTEN_BY_HAND = {"", ".css", ".html", ".js", ".md", ".py", ".sh", ".sql", ".toml"}

# Names that say nothing about what is inside.
EMPTY_WORDS = {"common", "helper", "manager", "misc", "util"}
# A call to one of these proves something, and so does a call to a function of the same file that asserts.
PROOF = re.compile(r"assert|check|expect|fail|prove|raises|require|run_state_machine|verify|warns")

# Written so that this file does not contain what it looks for.
LEFTOVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X{3})\b")
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|root)/")
REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|npmjs)\.(?:org|com)\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Finding = tuple[int, str]


def project_files() -> list[str]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    # A file that was deleted but not yet staged is still listed.
    return sorted({name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()})


def check_text(name: str, text: str) -> Iterator[Finding]:
    lines = text.splitlines()
    limit = SRC_FILE_LINES if name.startswith("src/") else FILE_LINES
    if Path(name).suffix in WRITTEN_BY_HAND and len(lines) > limit:
        yield limit + 1, f"{len(lines)} lines in one file, {limit} are enough"
    for number, line in enumerate(lines, 1):
        if found := LEFTOVER.search(line):
            yield number, f"{found[0]}: finish it, or open an issue"
        if found := MACHINE_PATH.search(line):
            yield number, f"{found[0]} is a path of one machine"
        if found := REGISTRY.search(line):
            yield number, f"{found[0]} names a package registry"


def check_function_sizes(name: str, tree: ast.Module) -> Iterator[Finding]:
    limit = SRC_FUNCTION_LINES if name.startswith("src/") else FUNCTION_LINES
    for node in functions(tree):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > limit:
            yield node.lineno, f"{node.name} has {length} lines, {limit} are enough"


def check_names(name: str, tree: ast.Module) -> Iterator[Finding]:
    module = Path(name).with_suffix("")
    for part in module.parts[1:]:
        if word := empty_word(part):
            yield 1, f"the name of {part} says only “{word}”"
    for node in ast.walk(tree):
        for identifier in introduced(node):
            if word := empty_word(identifier):
                yield getattr(node, "lineno", 1), f"the name {identifier} says only “{word}”"


def check_unfinished(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "NotImplementedError":
            yield node.lineno, "NotImplementedError: use a Protocol, or implement it"


def check_tests_assert(tree: ast.Module) -> Iterator[Finding]:
    proving: set[str] = set()
    while more := {f.name for f in functions(tree) if f.name not in proving and proves(f, proving)}:
        proving |= more
    for node in functions(tree):
        if node.name.startswith("test_") and node.name not in proving:
            yield node.lineno, f"{node.name} asserts nothing"


def functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def introduced(node: ast.AST) -> Iterator[str]:
    """The identifiers that a node brings into being; mere uses are their author's business."""
    match node:
        case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word):
            yield word
        case (
            ast.Name(id=word, ctx=ast.Store()) | ast.Attribute(attr=word, ctx=ast.Store()) | ast.arg(arg=word)
        ):
            yield word
        case ast.alias(asname=str(word)):
            yield word


def empty_word(identifier: str) -> str | None:
    for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier):
        singular = word.lower().removesuffix("s")
        if singular in EMPTY_WORDS:
            return singular
    return None


def proves(function: Function, proving: set[str]) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = node.func
            word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if word in proving or PROOF.search(word):
                return True
    return False


def findings(name: str) -> Iterator[Finding]:
    try:
        text = (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    yield from check_text(name, text)
    if not name.endswith(".py"):
        return
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield error.lineno or 1, f"not Python: {error.msg}"
        return
    yield from check_function_sizes(name, tree)
    if name.startswith("src/"):
        yield from check_names(name, tree)
        yield from check_unfinished(tree)
    if name.startswith("tests/"):
        yield from check_tests_assert(tree)


def words(name: str) -> Iterator[Finding]:
    """What the vocabulary says about a file of the product."""
    if name.startswith("src/") and name.endswith(".py"):
        yield from unused_words((ROOT / name).read_text(encoding="utf-8"))


def main() -> int:
    names = project_files()
    look = words if "--words" in sys.argv else findings
    count = 0
    for name in names:
        for line, message in sorted(look(name)):
            print(f"{name}:{line}: {message}")
            count += 1
    print(f"tidy: {count} findings in {len(names)} files" if count else f"tidy: {len(names)} files are tidy")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
