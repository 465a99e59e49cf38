"""A crew on a memory store: agents with roles and models, a plan, and the brief of each."""

from typing import Any

from coord.core.brief.commands import Brief, GetBrief
from coord.core.identity import Caller, Process
from coord.core.lifecycle.commands import Register
from coord.core.plans.commands import AddTasks, ClaimNamed, NewTask, SkipTask
from coord.core.questions.commands import AnswerQuestion, AskQuestion
from coord.core.tasks.commands import ReleaseClaim, SubmitResult
from coord.core.tasks.types import ReleaseReason
from tests.support.lock_harness import REPOSITORY, LockHarness

PROJECT = "p"


class BriefHarness(LockHarness):
    """Sessions of one project; `people` are persons, `projects` those of other projects."""

    def __init__(self) -> None:
        super().__init__()
        self.roles: dict[str, str] = {}
        self.projects: dict[str, str] = {}
        self.people: set[str] = set()

    def who(self, name: str) -> Caller:
        return Caller(
            name,
            agent=f"agent-{name}"[:20],
            role=self.roles.get(name, ""),
            project=self.projects.get(name, PROJECT),
            parent=self.parents.get(name, ""),
            person=name in self.people,
            process=Process(self.pids[name], 1) if name in self.pids else None,
        )

    def join(self, name: str, role: str = "", *, model: str = "", parent: str = "", task: str = "") -> None:
        self.roles[name] = role
        self.parents[name] = parent
        command = Register(
            caller=self.who(name), model=model or None, task=task or None, role=role or None, peers=False
        )
        self.engine.call(command)

    def add(self, name: str, *depends_on: str, **fields: Any) -> None:
        task = NewTask(task_id=name, depends_on=depends_on, retries_max=0, **fields)
        self.engine.call(AddTasks(PROJECT, (task,)))

    def claim(self, name: str, task: str) -> None:
        command = ClaimNamed(
            caller=self.who(name),
            tenant="local",
            project=PROJECT,
            task=task,
            lease_ms=600_000,
            repository=REPOSITORY,
        )
        assert self.engine.call(command).locks is not None

    def finish(self, name: str, task: str) -> None:
        assert self.engine.call(SubmitResult("local", PROJECT, task, name, 1, b"{}", "wp")).accepted

    def fail(self, name: str, task: str) -> None:
        self.engine.call(ReleaseClaim("local", PROJECT, task, name, 1, ReleaseReason.ERROR))

    def skip(self, task: str) -> None:
        self.engine.call(SkipTask("local", PROJECT, task, "not needed"))

    def ask(self, name: str, text: str) -> str:
        """Ask a person; return the id of the question."""
        return str(self.engine.call(AskQuestion(caller=self.who(name), text=text)).id)

    def decide(self, question: str, answer: str) -> None:
        """Answer a question as a person."""
        caller = Caller("pat", project=PROJECT, person=True)
        self.engine.call(AnswerQuestion(caller=caller, id=question, answer=answer))

    def brief(self, name: str, **options: Any) -> Brief:
        found: Brief = self.engine.call(GetBrief(self.who(name), **options))
        return found
