"""The same script with coord and without it: what agents lose to each other."""

import random
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from coord.integrations.git.commit.commit import commit
from coord.integrations.git.merge.merge import MergeRequest, merge
from coord.integrations.git.run import Git
from coord.sdk.client.client import connect
from tests.conftest import SOAK
from tests.support.git_harness import GitHarness

pytestmark = pytest.mark.long

AGENTS = ("ann", "ben", "cyd")
FILES = ("a.txt", "b.txt")
ROUNDS = 4
SEEDS = range(50) if SOAK else range(1)


def change(harness: GitHarness, agent: str, file: str, line: str, *, coord: bool) -> Iterator[str]:
    """Change a file of the shared tree as an agent does, with pauses for others; yield its line."""
    place = harness.shop / file
    client = harness.client(agent)
    while coord and not client.acquire(f"file:{file}").ok:
        yield ""
    text = place.read_text()
    yield ""
    place.write_text(f"{text}{line}\n")
    yield ""
    if coord:
        commit(client, line)
        client.unlock()
    else:
        harness.try_git("shop", "commit", "-q", "-a", "-m", line)  # fails if another's commit took it along
    yield line


def play(harness: GitHarness, seed: int, *, coord: bool) -> int:
    """Let all agents work in an order that only the seed decides; return how many of their lines are lost."""
    chance = random.Random(seed)
    scripts = {
        agent: [
            change(harness, agent, chance.choice(FILES), f"{agent} {number}", coord=coord)
            for number in range(ROUNDS)
        ]
        for agent in AGENTS
    }
    lines: list[str] = []
    while any(scripts.values()):
        agent = chance.choice([name for name, left in scripts.items() if left])
        said = next(scripts[agent][0])
        if said:
            lines.append(said)
            scripts[agent].pop(0)
    there = {line for file in FILES for line in harness.git("shop", "show", f"main:{file}").splitlines()}
    assert len(lines) == len(AGENTS) * ROUNDS
    return len([line for line in lines if line not in there])


@pytest.mark.parametrize("seed", SEEDS)
def test_without_coord_lines_are_lost_and_with_it_none(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PRB-1, PRF-7: A witness: on the same script, 0 overwrites with coord and more than 0 without it."""
    lost = {}
    for coord in (True, False):
        harness = GitHarness(tmp_path / f"coord-{coord}", dict.fromkeys(FILES, "first\n"))
        for name, value in harness.environ.items():
            monkeypatch.setenv(name, value)
        lost[coord] = play(harness, seed, coord=coord)
        harness.close()
    assert lost[True] == 0
    assert lost[False] > 0


def test_merges_at_the_same_time_all_get_in(harness: GitHarness) -> None:
    """GIT-27: agents that merge at once wait in line for each other, and nothing of any of them is lost."""
    for name in AGENTS:
        harness.work(name, {f"{name}.txt": f"{name}\n"})
    found: dict[str, bool] = {}

    def run(name: str) -> None:
        git, wanted = (
            Git(str(harness.shop), environ=harness.environ),
            MergeRequest((name,), "main", wait_s=60),
        )
        with connect(
            session=name, cwd=git.folder, environ=harness.environ, clock=lambda: harness.now
        ) as client:
            found[name] = merge(client, git, wanted).ok

    threads = [Thread(target=run, args=(name,)) for name in AGENTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(AGENTS, True)
    assert [harness.text(f"{name}.txt") for name in AGENTS] == [f"{name}\n" for name in AGENTS]
