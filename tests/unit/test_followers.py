"""Tasks that come to depend on one while another process finishes that, or opens it again."""

import pytest

from coord.core.commands import Command, ResetTask
from coord.engine.engine import Engine
from tests.stores.stand_in import StandInDatabase
from tests.unit.work_desk import WorkDesk


@pytest.mark.parametrize("before", [(), ("old",)])
@pytest.mark.parametrize(
    ("done", "command", "becomes"),
    [
        (False, WorkDesk.submission("a", "ann"), "ready"),
        (True, ResetTask("local", "p", "a"), "pending"),
    ],
)
def test_a_follower_that_is_added_meanwhile_is_not_forgotten(
    before: tuple[str, ...], done: bool, command: Command, becomes: str
) -> None:
    """TID-14, issue 6: who has looked for followers in vain looks again, whether there were others or not."""
    desk = WorkDesk()
    desk.add("a")
    for name in before:
        desk.add(name, "a")
    assert desk.take() == "a"
    assert not done or desk.submit("a")
    other = StandInDatabase(desk.database)
    other.log("local").before_commit.append(lambda _: desk.add("new", "a"))
    Engine(other, "local", clock=lambda: desk.now).call(command)
    assert desk.states("new", *before) == [becomes] * (1 + len(before))
