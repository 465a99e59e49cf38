"""What real processes were told about overlapping locks has one order that explains it all."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SOAK
from tests.linearizability.lock_model import Op, explained
from tests.linearizability.test_histories import THROUGH_HUBS
from tests.support.hub.fleet import hubs_of, new_token
from tests.support.process_group import ProcessGroup, finish, process_group, release

ACTORS = 4
ROUNDS = 300 if SOAK else 80
SEEDS = range(10 if SOAK else 1)


def read_history(path: Path) -> list[Op]:
    """Return what a process wrote down; the last operation of a killed one has no answer."""
    ops: list[Op] = []
    for text in path.read_text().splitlines():
        line = json.loads(text)
        if "op" in line:
            ops.append(Op(**line["op"]))
        elif "nothing" in line:
            ops.pop()
        else:
            ops[-1].answer, ops[-1].end = line["answer"], line["end"]
    return ops


def record(group: ProcessGroup, seed: int, ways: Sequence[dict[str, Any]] = ()) -> list[list[Op]]:
    """Let processes work on the same files at once, kill one towards the end; return what each wrote down.

    `ways` are those of hubs, whose clock is that of the store: the processes take them in turn.
    """
    if not ways:
        group.stop_time()
    paths = [group.folder / f"history-{number}" for number in range(ACTORS)]
    options = [
        group.options(
            f"actor-{number}",
            {
                "seed": seed,
                "rounds": ROUNDS,
                "history": str(path),
                **(ways[number % len(ways)] if ways else {}),
            },
            own_pid=False,
        )
        for number, path in enumerate(paths)
    ]
    actors = group.start("lock_actor", options)
    release(actors)
    for actor in actors:
        assert actor.receive() == "nearly"
        if actor is actors[0]:
            actor.kill()
        else:
            finish(actor)
    return [read_history(path) for path in paths]


def assert_worked(histories: list[list[Op]]) -> None:
    """A history in which little happened would prove little."""
    answers = Counter(str(op.answer[0]) for history in histories for op in history if op.answer)
    assert min(answers["granted"], answers["held"]) >= 10, answers
    assert answers["done"] >= 5, answers
    assert answers["NotOwner"] + answers["NotFound"] + answers["LockLost"] >= 5, answers
    assert min(answers["True"], answers["False"]) >= 1, answers


def check(group: ProcessGroup, histories: list[list[Op]]) -> None:
    """One order explains all answers, and the log has every grant."""
    assert_worked(histories)
    assert explained(histories)
    granted = {
        (event["offset"], event["resource"], event["session"])
        for event in group.log.events_of("lock.acquired")
    }
    for op in (op for history in histories for op in history if op.answer and op.answer[0] == "granted"):
        for resource, fence in op.answer[1].items():
            assert (fence, f"file:{resource}", op.session) in granted


@pytest.mark.parametrize("seed", SEEDS)
def test_one_order_explains_what_processes_were_told(group: ProcessGroup, seed: int) -> None:
    """DESIGN 2.2, 2.3: grants, refusals, renewals, releases and checks are linearizable, and fences rise."""
    check(group, record(group, seed))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "transports"), THROUGH_HUBS)
def test_one_order_explains_what_hubs_answered(
    make_url: Callable[[str], str], tmp_path: Path, seed: int, kind: str, transports: tuple[str, ...]
) -> None:
    """Issue 16, Proof: clients of one hub, or of two hubs on one server, over HTTP and sockets."""
    with (
        process_group(make_url(kind), tmp_path) as group,
        hubs_of(group.repository, tmp_path, len(transports)) as hubs,
    ):
        token = new_token(group.repository)
        ways = [hub.way(transport, token) for hub, transport in zip(hubs, transports, strict=True)]
        check(group, record(group, seed, ways))


def made(session: str, kind: str, begin: int, end: int, answer: object, mode: str = "write") -> Op:
    return Op(session, kind, "src/a.py", mode, 0, begin, end, answer)


def test_the_search_knows_a_double_hold_from_a_lawful_order() -> None:
    """The search itself: two grants that overlap, a falling fence, and a refusal by nobody have no order."""
    taken = made("a", "acquire", 1, 2, ["granted", {"src/a.py": 5}])
    freed = made("a", "unlock", 3, 6, ["done"])
    after = made("b", "acquire", 4, 5, ["granted", {"src/a.py": 7}])
    assert explained([[taken, freed], [after]])
    assert not explained([[taken], [after]])
    for fence in (3, 5):
        assert not explained([[taken, freed], [made("b", "acquire", 4, 5, ["granted", {"src/a.py": fence}])]])
    readers = [[made(name, "acquire", 1, 2, ["granted", {"src/a.py": 5}], "read")] for name in "ab"]
    assert explained(readers), "one commit may let several read"
    assert not explained([[taken, freed], [made("b", "acquire", 7, 8, ["held", "a"])]])
    unanswered = made("b", "acquire", 1, 1 << 62, None)
    assert explained([[made("a", "acquire", 3, 4, ["held", "b"])], [unanswered]])
    assert explained([[taken], [unanswered]])
