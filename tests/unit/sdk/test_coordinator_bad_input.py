"""Bad input of every argument: Invalid, with a hint, and nothing has changed."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from coord import CoordError, Invalid, TaskCoordinator

TASK: dict[str, Any] = {"tenant_id": "acme", "project_id": "shop", "task_id": "t1"}
AGENT: dict[str, Any] = {"agent_id": "agent-a", "session_id": "session-1"}
GOOD: dict[str, dict[str, Any]] = {
    "claim_task": {**TASK, **AGENT, "lease_duration_seconds": 60, "metadata": {}, "command_id": "c1"},
    "force_claim": {**TASK, **AGENT, "lease_duration_seconds": 60, "reason": "x", "metadata": {}},
    "renew_lease": {**TASK, "session_id": "session-1", "expected_generation": 1, "command_id": "c2"},
    "release_claim": {**TASK, "session_id": "session-1", "expected_generation": 1, "reason": "x"},
    "submit_result": {
        **TASK,
        "session_id": "session-1",
        "generation": 1,
        "result_data": {},
        "command_id": "c3",
    },
    "reset_task": {**TASK, "reason": "x", "command_id": "c4"},
    "get_task_state": {**TASK},
    "get_claim_history": {**TASK},
    "get_active_claims_for_session": {"tenant_id": "acme", "session_id": "session-1"},
    "list_expired_claims": {"tenant_id": "acme", "before": 0},
    "batch_claim": {"keys": [], "claim_template": ("agent-a", "session-1", 60)},
    "batch_get_states": {"keys": []},
    "set_limits": {
        "tenant_id": "acme",
        "profile": "",
        "by": "ada",
        "max_concurrent_claims": 5,
        "max_active_sessions": 5,
    },
    "get_limits": {"tenant_id": "acme"},
    "get_session_memory": {"tenant_id": "acme", "session_id": "session-1", "project_id": "shop"},
}

IDS = [
    "",
    " ",
    "a/b",
    "..",
    "-x",
    "a\n",
    "\u0430",
    "x" * 129,
    None,
    5,
    10**5_000,
    True,
    b"a",
    ["a"],
    {"a": 1},
]
KEYS = [
    None,
    5,
    "abc",
    [5],
    ["abc"],
    [("acme", "shop")],
    [["acme", "shop", "t1"]],
    [("acme", "shop", "t1", "x")],
    [("acme", "shop", "t1"), ("acme", "shop", "a/b")],
    [("acme", ["shop"], "t1")],
    {"acme": 1},
]
GENERATIONS = [-1, 2**53, 10**5_000, 1.0, "1", None, True, [1]]
BAD: dict[str, list[Any]] = {
    "tenant_id": [*IDS, "a:b", "a,b", "a#b"],
    "project_id": IDS,
    "task_id": IDS,
    "agent_id": IDS,
    "session_id": IDS,
    "command_id": [value for value in IDS if value],
    "lease_duration_seconds": [
        0, -1, 366 * 86_400 + 1, 10**5_000, float("nan"), float("inf"), "60", None, True, [60]
    ],
    "metadata": [[], 0, "x", [("a", 1)], {"a": {1}}, {1: 2}, {"a": float("nan")}, {"a": "x" * 5_000}],
    "expected_generation": GENERATIONS,
    "generation": GENERATIONS,
    "reason": [None, 5, "a\nb", "\0", "\ud800", "x" * 501, ["x"]],
    "result_data": [None, [], "{}", {"a": float("inf")}, {1: 2}, {"a": b"x"}, {"a": 2**64}, {"a": "\ud800"}],
    "before": [-1, 1.5, "yesterday", True, [0]],
    "keys": KEYS,
    "claim_template": [
        None, 5, "ab", (), ("a",), ("a", "s", 60, 1), ["a", "s"], ("a/b", "s"), ("a", None), ("a", "s", 0)
    ],
    "by": [None, 5, "a\nb", "x" * 501],
    "profile": ["gold", "DEFAULT", 5, None, ["default"]],
    "max_concurrent_claims": [0, -1, 1.5, "5", None, True, 2**53, 10**5_000, [5]],
    "max_active_sessions": [0, 10**5_000],
}  # fmt: skip

CASES = [
    pytest.param(method, name, value, id=f"{method}-{name}-{number}")
    for method, arguments in GOOD.items()
    for name in arguments
    for number, value in enumerate(BAD[name])
]


@pytest.fixture(scope="module")
def holding() -> Any:
    """A coordinator with a claimed task, so that every good call would change something."""
    with TaskCoordinator.open("memory:", clock=lambda: 1_767_506_400_000) as coordinator:
        coordinator.claim_task(**TASK, **AGENT)
        yield coordinator


def changes(coordinator: TaskCoordinator) -> list[Any]:
    return list(coordinator.database.log("acme").tail(0, 1_000))


@pytest.mark.parametrize(("method", "name", "value"), CASES)
def test_bad_argument(holding: TaskCoordinator, method: str, name: str, value: Any) -> None:
    """DESIGN §7: what comes from outside is checked before anything is touched, and the error helps."""
    before = changes(holding)
    with pytest.raises(Invalid) as raised:
        getattr(holding, method)(**{**GOOD[method], name: value})
    assert raised.value.hint
    assert len(str(raised.value)) < 400
    assert changes(holding) == before


def test_every_argument_of_every_operation_is_tried() -> None:
    """The tables above name every argument that exists."""
    for method, arguments in GOOD.items():
        parameters = set(inspect.signature(getattr(TaskCoordinator, method)).parameters)
        assert parameters - {"self", "limits", "command_id"} <= arguments.keys()


WRONG_WHOLES: dict[str, Callable[[TaskCoordinator], object]] = {
    "forced without a reason": lambda c: c.force_claim(**TASK, **AGENT, reason=""),
    "an unknown limit": lambda c: c.set_limits("acme", max_widgets=5),
    "the unlimited tenant": lambda c: c.set_limits("local", max_active_sessions=5),
    "a shortest lease over the longest": lambda c: c.set_limits("acme", min_lease_duration_seconds=3601),
    "a longest lease under the shortest": lambda c: c.set_limits("acme", max_lease_duration_seconds=29),
    "one bad key among good ones": lambda c: c.batch_claim(
        [("acme", "shop", "free"), ("acme", "shop", "../etc")], ("agent-a", "session-1")
    ),
}


@pytest.mark.parametrize("call", WRONG_WHOLES.values(), ids=WRONG_WHOLES.keys())
def test_bad_call(coordinator: TaskCoordinator, call: Callable[[TaskCoordinator], object]) -> None:
    """DESIGN §7: on every store, a call that makes no sense is Invalid and leaves the log as it was."""
    coordinator.claim_task(**TASK, **AGENT)
    before = changes(coordinator)
    with pytest.raises(Invalid) as raised:
        call(coordinator)
    assert raised.value.hint
    assert changes(coordinator) == before


def test_invalid_is_also_a_value_error() -> None:
    """Errors are of coord's own family, and of the standard kind that fits."""
    with pytest.raises(ValueError, match="task id") as raised, TaskCoordinator.open("memory:") as coordinator:
        coordinator.get_task_state("acme", "shop", "a b")
    assert isinstance(raised.value, CoordError)
    assert raised.value.code == "invalid"


@pytest.mark.parametrize(
    "url", ["", "x", "memory", "oracle://x", "sqlite://", "file://other-host/x", "ftp://x"]
)
def test_bad_url(url: str) -> None:
    """A url that names no store is refused with those that do."""
    with pytest.raises(Invalid, match=r"url|path") as raised:
        TaskCoordinator.open(url)
    assert "sqlite" in raised.value.hint
