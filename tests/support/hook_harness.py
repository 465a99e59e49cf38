"""Sessions of agents at one repository, which tell the hook what they are about to do.

The process of the tests stands for the tool.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from coord.core.locks.commands import LockInfo
from coord.host.processes import ancestors, describe
from coord.host.tool_process import ToolProcess
from coord.integrations.hooks.events import Answer, Event
from coord.integrations.hooks.handler import HookHandler
from coord.integrations.hooks.tools import claude
from coord.sdk.client.client import Client, connect
from coord.sdk.client.open import initialise
from tests.support.git_folders import git, made_repository
from tests.support.hub.hooks import HookHub

Json = dict[str, Any]
HOOK_WAYS = ("direct", pytest.param("hub", marks=pytest.mark.long))
"""Who answers: the hook itself, or a hub. Each table of events runs both ways."""
Harness = TypeVar("Harness", bound="HookHarness")


class HookHarness:
    """A repository with coord; what the hook answers comes back as an answer."""

    def __init__(self, folder: Path, url: str = "") -> None:
        """`url` names the store, if it is not to be in the repository."""
        self.hub: HookHub | None = None
        self.root = folder / "repository"
        made_repository(self.root)
        self.environ = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"], "USER": "somebody"}
        initialise(str(self.root), self.environ, url=url)
        self._calls = 0
        self._runs = ToolProcess(describe(os.getpid()), tuple(ancestors()))

    def tell(self, name: str, session: str = "ada", **fields: Any) -> Answer:
        payload = {"session_id": session, "cwd": str(self.root), "hook_event_name": name, **fields}
        return self.answer(claude.parse(payload), payload)

    def answer(self, event: Event, payload: Json | None = None) -> Answer:
        """What the hook answers to an event of any tool."""
        shown: list[Answer] = []
        new_handler = partial(HookHandler, event, payload or {}, runs=self._runs)
        if self.hub is None:
            new_handler(self.environ, shown.append).handle()
        else:
            self.hub.handle(new_handler, self.environ, shown.append)
        (answer,) = shown
        return answer

    def edit(self, path: str, session: str = "ada", **fields: Any) -> Json:
        """The fields of an edit."""
        self._calls += 1
        given = {"file_path": str(self.root / path), "content": "x"}
        call = {"tool_name": "Write", "tool_input": given, "tool_use_id": f"call-{self._calls}"}
        return {"session": session, **call, **fields}

    def shell(self, line: str, session: str = "ada", **fields: Any) -> Json:
        """The fields of a shell command."""
        self._calls += 1
        call = {"tool_name": "Bash", "tool_input": {"command": line}, "tool_use_id": f"call-{self._calls}"}
        return {"session": session, **call, **fields}

    def before(self, call: Json) -> Answer:
        return self.tell("PreToolUse", **call)

    def after(self, call: Json) -> Answer:
        return self.tell("PostToolUse", **call)

    def write(self, path: str, session: str = "ada", text: str = "new\n", **fields: Any) -> Answer:
        """An edit as a tool makes it, if the hook lets it."""
        call = self.edit(path, session, **fields)
        answer = self.before(call)
        if not answer.deny:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
            answer = self.after(call)
        return answer

    def client(self, session: str, clock: Callable[[], int] | None = None) -> Client:
        environ = {**self.environ, "COORD_SESSION_ID": session}
        return connect(cwd=str(self.root), environ=environ, clock=clock)

    def held(self) -> dict[str, str]:
        """Who holds what."""
        with self.client("watcher") as client:
            found: list[LockInfo] = client.locks()
        return {lock.resource: lock.owner for lock in found}

    def commit(self, *paths: str) -> None:
        git(self.root, "add", *paths)
        git(self.root, "commit", "-q", "-m", "more", "--", *paths)


@contextmanager
def answered_by(way: str, harness: Harness) -> Iterator[Harness]:
    """Yield a harness whose hooks are answered in one of the ways."""
    if way == "direct":
        yield harness
        return
    with closing(HookHub(harness.environ)) as harness.hub:
        yield harness
