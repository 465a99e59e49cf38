"""Habits no other tool checks: sizes, names, words, leftovers, tests that assert and mirror the source.

Reads what git tracks or would track. Prints `path:line: message` and exits 1 if there is anything to say.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tools.vocabulary import unused_words

ROOT = Path(__file__).resolve().parent.parent

FILE_LINES = 600
FUNCTION_LINES, SRC_FUNCTION_LINES = 80, 60
FOLDER_MODULES = 16
# A subject may be longer than the guide; its reason stands here.
LONG_FILES = {
    "docs/reference/cli.md": "generated: one section for each command",
    "docs/reference/cli-tasks.md": "generated: one section for each command",
    "docs/requirements.md": "one line for each requirement of the founding documents",
}
LONG_FUNCTIONS: dict[str, str] = {}
WRITTEN_BY_HAND = {"", ".css", ".html", ".js", ".md", ".py", ".sh", ".sql", ".toml"}

# The packages whose modules have rules: `src/coord/core/locks/acquire.py` is tested by
# `tests/unit/core/locks/test_acquire.py`, or by several files whose names begin so.
WITH_RULES = ("core",)
# Modules of these packages without a rule.
WITHOUT_RULE = {
    "commands.py": "commands and their replies: definitions",
    "schema.py": "records and events: definitions",
    "errors.py": "error classes: definitions",
    "events.py": "the base class of events",
    "identity.py": "types that describe a caller",
    "ranges.py": "the type that the core shares with stores",
}

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
    if Path(name).suffix in WRITTEN_BY_HAND and len(lines) > FILE_LINES and name not in LONG_FILES:
        yield (
            FILE_LINES + 1,
            f"{len(lines)} lines, the guide is {FILE_LINES}: split it by subject or explain it in LONG_FILES",
        )
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
        if length > limit and f"{name}:{node.name}" not in LONG_FUNCTIONS:
            yield node.lineno, f"{node.name} has {length} lines, the guide is {limit}"


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


def check_mirror(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield modules with a rule that have no test under their name."""
    tests = [name for name in names if name.startswith("tests/unit/")]
    for name in names:
        module = Path(name)
        if not name.startswith(tuple(f"src/coord/{package}/" for package in WITH_RULES)):
            continue
        if module.name == "__init__.py" or module.name in WITHOUT_RULE or module.suffix != ".py":
            continue
        wanted = Path("tests/unit", *module.parts[2:-1], f"test_{module.stem}").as_posix()
        if not any(test == f"{wanted}.py" or test.startswith(f"{wanted}_") for test in tests):
            yield name, f"no test under its name: {wanted}.py"


def check_folders(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield folders with more modules than a reader takes in at a glance."""
    modules = [Path(name) for name in names if name.startswith("src/coord/") and name.endswith(".py")]
    count = Counter(module.parent.as_posix() for module in modules if module.name != "__init__.py")
    for folder, size in count.items():
        if size > FOLDER_MODULES:
            yield folder, f"{size} modules in one folder, at most {FOLDER_MODULES}"


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
        yield from unused_words(name, text)
    if name.startswith("tests/"):
        yield from check_tests_assert(tree)


def main() -> int:
    names = project_files()
    count = 0
    for name in names:
        for line, message in sorted(findings(name)):
            print(f"{name}:{line}: {message}")
            count += 1
    for name, message in [*check_mirror(names), *check_folders(names)]:
        print(f"{name}: {message}")
        count += 1
    print(f"tidy: {count} findings in {len(names)} files" if count else f"tidy: {len(names)} files are tidy")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
