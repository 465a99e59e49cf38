"""Processes that begin together: each says when it is ready, starts at a word, and ends with its finding."""

import json
import subprocess
import sys
from collections.abc import Iterable
from time import perf_counter
from typing import Any

from bench.fresh import ROOT


def together(module: str, of_each: Iterable[Iterable[str]]) -> tuple[float, list[Any]]:
    """Run a module once for each list of arguments; return when they began and what each found.

    The clock is the same in all processes.
    """
    children = [
        subprocess.Popen(
            [sys.executable, "-m", module, *words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for words in of_each
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n", "it says so as soon as it is connected"
        began = perf_counter()
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        return began, [json.loads(child.communicate()[0]) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()


def ready() -> None:
    """Say so, from within such a process, and wait for the word."""
    print("ready", flush=True)
    sys.stdin.readline()
