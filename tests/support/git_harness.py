"""A real repository in which agents work in worktrees of their own, on a clock that stands still."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coord.integrations.git.gate.sign import current_trailers
from coord.integrations.git.merge.merge import MergeReport, MergeRequest, Outcome, merge
from coord.integrations.git.run import Git
from coord.sdk.client.client import Client, connect
from coord.sdk.reports import activity
from tests.support.git_folders import PLAIN

T0 = 1_700_000_000_000
SETTINGS = {"user.name": "a", "user.email": "a@b", "core.fsync": "none"}


class GitHarness:
    """`main` is checked out in `shop`, the branch of each agent in a folder beside it."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.now = T0
        self.top = folder
        self.shop = folder / "shop"
        self.shop.mkdir(parents=True)
        self.git("shop", "init", "-q", "-b", "main")
        for path, text in files.items():
            self.write("shop", path, text)
        self.git("shop", "commit", "-q", "-m", "first")
        self._clients: dict[str, Client] = {}

    @property
    def environ(self) -> dict[str, str]:
        """What every command sees: no settings of this machine, and the clock of the yard."""
        moment = f"{self.now // 1000} +0000"
        found = {**PLAIN, "USER": "pat", "HOME": str(self.top), "XDG_STATE_HOME": str(self.top)}
        found = {name: value for name, value in found.items() if not name.startswith(("COORD_", "CLAUDE"))}
        found |= {"GIT_COMMITTER_DATE": moment, "GIT_AUTHOR_DATE": moment}
        found |= {"GIT_CONFIG_COUNT": str(len(SETTINGS))}
        for number, (key, value) in enumerate(SETTINGS.items()):
            found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return found

    def git(self, where: str, *arguments: str) -> str:
        """Run git in a worktree; it must succeed."""
        done = self._run(where, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        return os.fsdecode(done.stdout).strip()

    def try_git(self, where: str, *arguments: str) -> bool:
        """Run git in a worktree, and say whether it succeeded."""
        return self._run(where, *arguments).returncode == 0

    def _run(self, where: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        folder = self.top / where
        return subprocess.run(
            ["git", *arguments], cwd=folder, env=self.environ, capture_output=True, check=False
        )

    def client(self, name: str = "", pid: int | None = None) -> Client:
        """Return the client of a session, which may live in a process; without a name a person's."""
        if name not in self._clients:
            self._clients[name] = connect(
                session=name, pid=pid, cwd=str(self.shop), environ=self.environ, clock=lambda: self.now
            )
        return self._clients[name]

    def close(self) -> None:
        """Close all clients."""
        for client in self._clients.values():
            client.close()

    def branch(self, name: str, start: str = "main") -> None:
        """Give an agent a worktree with a branch of its own."""
        self.git("shop", "worktree", "add", "-q", "-b", name, f"../{name}", start)

    def write(self, where: str, path: str, text: str) -> None:
        """Write a file and stage it."""
        place = self.top / where / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        self.git(where, "add", "--", path)

    def commit(
        self, name: str, files: dict[str, str | None], *, where: str = "", sign_message: bool = True
    ) -> str:
        """Commit files in an agent's worktree, with the trailers that the gates would put there."""
        where = where or name
        for path, text in files.items():
            if text is None:
                self.git(where, "rm", "-q", "--", path)
            else:
                self.write(where, path, text)
        client = self.client(name)
        trailers = current_trailers(client, client.caller, list(files)).lines() if sign_message else []
        self.git(where, "commit", "-q", "-m", "\n".join(["change", "", *trailers]))
        return self.tip(where)

    def work(self, name: str, files: dict[str, str | None], *locks: str) -> str:
        """Let an agent change files in order: lock them, or what is named instead; commit; unlock."""
        if not (self.top / name).exists():
            self.branch(name)
        client = self.client(name)
        taken = [f"file:{path}" for path in locks or files]
        assert client.acquire(taken).ok
        commit = self.commit(name, files)
        client.unlock(taken)
        return commit

    def merge(self, name: str, *branches: str, check: Sequence[str] = (), **options: Any) -> MergeReport:
        """Merge branches in somebody's name."""
        wanted = MergeRequest(branches, "main", tuple(check), wait_s=0, **options)
        return merge(self.client(name), Git(str(self.shop), environ=self.environ), wanted)

    def one(self, name: str, branch: str, **options: Any) -> Outcome:
        """Merge one branch, and return what became of it."""
        (outcome,) = self.merge(name, branch, **options).outcomes
        return outcome

    def tip(self, where: str = "shop") -> str:
        """Return where a worktree stands."""
        return self.git(where, "rev-parse", "HEAD")

    def text(self, path: str, where: str = "shop") -> str | None:
        """Return a file as it is in a worktree, or None."""
        place = self.top / where / path
        return place.read_text() if place.exists() else None

    def clean(self, where: str = "shop") -> bool:
        """Return whether a worktree is as its commit."""
        return not self.git(where, "status", "--porcelain")

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return what the log tells of a kind of event."""
        which = activity.event_filter(self.client(), op=kind)
        return [happening.details for happening in activity.newest_events(self.client(), which).events]
