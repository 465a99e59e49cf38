"""Agents at work in any order on a real repository, and the books that tell what must be true after a step.

Every agent has a worktree made by coord. An honest one locks, writes a line of its own, commits and merges;
it may be killed anywhere and come back under a new session. `rex` never locks anything: no line of his may
get in.
"""

import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from coord.integrations.git.merge.merge import MergeStatus
from coord.integrations.git.worktree import clean as worktree_clean
from coord.integrations.git.worktree import worktree
from tests.support.git_harness import GitHarness

FILES = ("a.txt", "b.txt", "c.txt")
AGENTS = ("ann", "ben", "cyd")
ROGUE = "rex"
STEPS = (
    *(("write", 6), ("commit", 5), ("unlock", 3), ("merge", 4), ("merge_all", 1), ("update", 3)),
    *(("crash", 1), ("pass_time", 1), ("clean", 2), ("rogue", 1)),
)


class Line(NamedTuple):
    """A line that somebody wrote: no other one is like it."""

    file: str
    text: str


class Agent:
    """An agent, the session and process it has now, and what it wrote that is nowhere but in its worktree."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.life = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.dirty: list[Line] = []
        self.committed: list[Line] = []

    @property
    def session(self) -> str:
        """The id of its session; a crash ends it."""
        return f"{self.name}-{self.life}"

    def begin(self) -> int:
        """Begin a life: a process that does nothing but live; return its pid."""
        self.life += 1
        self.process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        return self.process.pid

    def end(self) -> None:
        """End it without a word."""
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process = None


class Interleaving:
    """One run of a seed: `step` does something, `check` compares the repository with the books."""

    def __init__(self, harness: GitHarness, seed: int) -> None:
        self.harness = harness
        self.random = random.Random(seed)
        self.written = 0
        self.accepted: set[Line] = set()
        self.states = [harness.tip()]
        self.agents = {name: Agent(name, harness.top / name) for name in (*AGENTS, ROGUE)}
        self.counts: Counter[str] = Counter()
        for agent in self.agents.values():
            self._begin(agent)

    def _begin(self, agent: Agent) -> bool:
        """Begin a session, in the worktree that it had before, or a new one if that was taken away."""
        client = self.harness.client(f"{agent.name}-{agent.life + 1}", agent.begin())
        entered = worktree.add(client, agent.name, branch=agent.name, path=str(agent.folder), start="main")
        assert entered.path == str(agent.folder)
        return True

    def end(self) -> None:
        """End all processes."""
        for agent in self.agents.values():
            agent.end()

    def step(self) -> None:
        """Let one agent do one thing."""
        names, weights = zip(*STEPS, strict=True)
        (name,) = self.random.choices(names, weights)
        agent = self.agents[self.random.choice(AGENTS)]
        self.harness.now += 1000
        done = getattr(self, name)(agent) if agent.process else self._begin(agent)
        self.counts[name] += done

    def write(self, agent: Agent) -> bool:
        """Insert a line somewhere into a file, if the lock on it is granted."""
        file = self.random.choice(FILES)
        if not self.harness.client(agent.session).acquire(f"file:{file}").ok:
            return False
        agent.dirty.append(self._insert(agent, file))
        return True

    def _insert(self, agent: Agent, file: str) -> Line:
        self.written += 1
        line = Line(file, f"{agent.name} {self.written}")
        lines = (agent.folder / file).read_text().splitlines()
        lines.insert(self.random.randrange(len(lines) + 1), line.text)
        (agent.folder / file).write_text("".join(f"{each}\n" for each in lines))
        return line

    def commit(self, agent: Agent) -> bool:
        """Commit what is written, under locks: those from before may have run out, or died with a session."""
        held = {f"file:{line.file}" for line in agent.dirty}
        if not held or not self.harness.client(agent.session).acquire(held).ok:
            return False
        files = {line.file: (agent.folder / line.file).read_text() for line in agent.dirty}
        self.harness.commit(agent.session, dict(files), where=agent.name)
        agent.committed += agent.dirty
        agent.dirty = []
        return True

    def unlock(self, agent: Agent) -> bool:
        """Give all locks back; what is written and not committed stays where it is."""
        return bool(self.harness.client(agent.session).unlock().released)

    def merge(self, agent: Agent) -> bool:
        """Merge the own branch."""
        return self._merge(agent, agent.name)

    def merge_all(self, agent: Agent) -> bool:
        """Merge the branches of all in any order, the rogue's too, as one queue with a check."""
        names = [each.name for each in self.agents.values() if each.folder.exists()]
        self.random.shuffle(names)
        return self._merge(agent, *names, check=("sh", "-c", "! grep '>>>>' *.txt"))

    def _merge(self, agent: Agent, *branches: str, check: tuple[str, ...] = ()) -> bool:
        done = self.harness.merge(agent.session, *branches, check=check)
        merged = [each for each in done.outcomes if each.status is MergeStatus.MERGED]
        for outcome in merged:
            of_branch = self.agents[outcome.branch]
            self.accepted.update(of_branch.committed)
            of_branch.committed = []
        if merged:
            self.states.append(done.after)
        return bool(merged)

    def update(self, agent: Agent) -> bool:
        """Bring main into the own branch; of what conflicts keep the lines of both, under locks."""
        if agent.dirty:
            return False
        harness, where = self.harness, agent.name
        if not harness.try_git(where, "merge", "-q", "--no-edit", "main"):
            files = harness.git(where, "diff", "--name-only", "--diff-filter=U").splitlines()
            if not harness.client(agent.session).acquire([f"file:{file}" for file in files]).ok:
                harness.git(where, "merge", "--abort")
                return False
            for file in files:
                text = (agent.folder / file).read_text().splitlines()
                kept = [line for line in text if not line.startswith(("<<<<<<<", "=======", ">>>>>>>"))]
                (agent.folder / file).write_text("".join(f"{line}\n" for line in kept))
            harness.commit(
                agent.session, {file: (agent.folder / file).read_text() for file in files}, where=where
            )
        return True

    def crash(self, agent: Agent) -> bool:
        """Kill an agent, wherever it is in its work."""
        agent.end()
        return True

    def pass_time(self, agent: Agent) -> bool:
        """Let leases run out, or not."""
        self.harness.now += self.random.choice((1_000, 100_000, 400_000))
        return True

    def clean(self, agent: Agent) -> bool:
        """Take away the worktrees of those who are gone, if nothing is lost by it."""
        return bool(worktree_clean.clean(self.harness.client(agent.session), [], into="main").removed)

    def rogue(self, agent: Agent) -> bool:
        """Let the rogue write without a lock, commit, signed or not, and try to merge."""
        rex = self.agents[ROGUE]
        line = self._insert(rex, self.random.choice(FILES))
        text = (rex.folder / line.file).read_text()
        self.harness.commit(
            rex.session, {line.file: text}, where=ROGUE, sign_message=self.random.random() < 0.5
        )
        assert not self._merge(self.random.choice((agent, rex)), ROGUE), "the rogue got in"
        return True

    def check(self) -> None:
        """Compare main and all worktrees with the books."""
        assert self.harness.tip() == self.states[-1], "main is no state that an accepted merge produced"
        assert self.harness.clean(), "the worktree of main is not as main is"
        texts = {file: (self.harness.shop / file).read_text().splitlines() for file in FILES}
        lost = [line for line in self.accepted if line.text not in texts[line.file]]
        assert not lost, f"accepted and lost: {lost}"
        assert not any(ROGUE in line for lines in texts.values() for line in lines)
        for agent in self.agents.values():
            unmerged = [*agent.dirty, *agent.committed]
            assert agent.folder.exists() or not unmerged, f"the worktree of {agent.name} is gone"
            for line in unmerged:
                there = (agent.folder / line.file).read_text().splitlines()
                assert line.text in there, f"{line} is gone from the worktree of {agent.name}"
