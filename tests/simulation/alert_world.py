"""Two hundred agents that think, build, lose their network, and sometimes hang: who is stuck?

The world knows who hangs. The rules see what they see in reality: commands and tool calls of a session, and
samples of its processes once a minute. Everything follows from a seed.

    think      a call of a model: it reads its answer, with pauses; some think for long, and read little
    build      a tool call: processes compute, and pause for downloads
    write      short tool calls, one after the other
    offline    the network is gone; the agent goes on when it is back
    hang       nothing happens any more, besides timers, until somebody ends the agent
"""

import math
import random
from collections import Counter
from typing import NamedTuple

from coord.core.alerts.commands import ListWatched
from coord.core.alerts.schema import Sample
from tests.support.alert_harness import MINUTE, AlertHarness

AGENTS = 200
PERSON_MINUTES = 45
"""After this time a person ends an agent that hangs, whatever the alerts say."""
OFFLINE_MINUTES = 3.0
"""The median time without a network. Nobody can tell a long one from a hang."""
WEIGHTS = {"think": 50.0, "build": 14.0, "write": 34.0, "offline": 0.6, "hang": 0.22}


class Score(NamedTuple):
    """Right and wrong alerts of one run, and real hangs that raised none."""

    right: int
    wrong: int
    missed: int
    causes: Counter[str]
    delays: list[int]

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)


class Agent:
    """One agent: what it does now, until when, and what its processes have used."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name, self.rng = name, rng
        self.doing, self.until, self.began = "write", 0, 0
        self.cpu, self.read, self.written, self.processes, self.newest = 0.0, 0.0, 0.0, 2, 1
        self.deep = False
        self.reported = False

    @property
    def sample(self) -> Sample:
        return Sample(int(self.cpu), int(self.read), int(self.written), self.processes, self.newest)

    def choose(self, minute: int) -> None:
        """Begin something else."""
        rng = self.rng
        self.doing = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        self.began = minute
        median, spread, most = {
            "think": (1.5, 1.0, 28.0),
            "build": (3.0, 1.1, 90.0),
            "write": (3.0, 0.6, 15.0),
            "offline": (OFFLINE_MINUTES, 0.9, 40.0),
            "hang": (1e9, 0.0, 1e9),
        }[self.doing]
        minutes = min(most, median * math.exp(rng.gauss(0.0, spread)))
        self.until = minute + max(1, round(minutes))
        self.deep = self.doing == "think" and rng.random() < 0.3

    def live_a_minute(self) -> None:
        """Use what a minute of this activity uses; a terminal that draws a spinner always uses a little."""
        rng = self.rng
        self.cpu += rng.uniform(0, 2200)
        self.read += rng.uniform(0, 12_000)
        match self.doing:
            case "think":
                streams = rng.random() < (0.45 if self.deep else 0.85)
                self.read += rng.uniform(80_000, 900_000) if streams else rng.uniform(500, 3000)
            case "build":
                if rng.random() < 0.9:
                    self.cpu += rng.uniform(8_000, 115_000)
                    self.written += rng.uniform(0, 4_000_000)
            case "write":
                self.cpu += rng.uniform(1000, 9000)
                self.written += rng.uniform(4096, 60_000)


class AlertWorld:
    """All agents, and the rules that watch them."""

    def __init__(self, seed: int, agents: int = AGENTS, *, one_signal: bool = False) -> None:
        """With `one_signal` nobody looks at processes, and the last command alone counts."""
        self.harness = AlertHarness()
        self.rng = random.Random(f"alerts {seed}")
        self.one_signal = one_signal
        if one_signal:
            self.harness.set(alert_prompting_seconds=600)
        self.minute = 0
        self.agents = [self._agent(number) for number in range(agents)]
        self.hangs: dict[str, int] = {}
        self.score = Score(0, 0, 0, Counter(), [])

    def _agent(self, number: int) -> Agent:
        agent = Agent(f"s{number:04d}", random.Random(self.rng.random()))
        self.harness.start(agent.name)
        return agent

    def run(self, minutes: int) -> Score:
        """Let time pass; return what became of the alerts."""
        for _ in range(minutes):
            self.minute += 1
            self.harness.pass_time(MINUTE)
            for agent in self.agents:
                self._live(agent)
            self._look()
        return self.score

    def _live(self, agent: Agent) -> None:
        agent.live_a_minute()
        if agent.doing == "hang":
            if self.minute - agent.began >= PERSON_MINUTES:
                self._end(agent)
            return
        if agent.doing == "write" or self.minute >= agent.until:
            self._command(agent)
        if self.minute >= agent.until:
            agent.choose(self.minute)
            if agent.doing == "build":
                self.harness.begin(agent.name, lease_ms=2 * 3_600_000)
            if agent.doing == "hang":
                self.hangs[agent.name] = self.minute

    def _command(self, agent: Agent) -> None:
        if agent.doing == "build":
            self.harness.end(agent.name)
        else:
            self.harness.beat(agent.name)
        agent.reported = False

    def _end(self, agent: Agent) -> None:
        """A person ends an agent that hangs, and starts another one in its place."""
        if not agent.reported:
            self.score = self.score._replace(missed=self.score.missed + 1)
        del self.hangs[agent.name]
        self.harness.leave(agent.name)
        successor = Agent(f"{agent.name}x", agent.rng)
        self.agents[self.agents.index(agent)] = successor
        self.harness.start(successor.name)

    def _look(self) -> None:
        watched = {each.session_id for each in self.harness.engine.call(ListWatched())}
        by_name = {agent.name: agent for agent in self.agents}
        self.harness.samples = {} if self.one_signal else {name: by_name[name].sample for name in watched}
        raised = set(self.harness.look().raised)
        for alert in self.harness.listed().alerts if raised else ():
            if alert.id in raised and alert.rule == "stuck_agent":
                self._compare(by_name[alert.session_id])

    def _compare(self, agent: Agent) -> None:
        """Compare an alert with what the agent really does."""
        if agent.doing == "hang":
            if not agent.reported:
                self.score.delays.append(self.minute - self.hangs[agent.name])
                self.score = self.score._replace(right=self.score.right + 1)
            agent.reported = True
            return
        self.score.causes[agent.doing] += 1
        self.score = self.score._replace(wrong=self.score.wrong + 1)
