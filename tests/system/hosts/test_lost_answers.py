"""The network breaks in the middle of a commit: the sender finds out what became of it; it counts once."""

from pathlib import Path

import pytest

from coord.core.plans.commands import NewTask
from tests.conftest import SOAK
from tests.support.network import Network
from tests.support.process_group import PATIENCE_S, process_group
from tests.support.programs.client import connect_as
from tests.support.servers.server import poll_until

PATIENCE = {"postgresql": "tcp_user_timeout=2000", "redis": "socket_timeout=2", "mysql": "", "nats": ""}
"""How the url of a store says that a silent server is given up soon; where it cannot, that takes longer."""


def impatient(url: str) -> str:
    """Return the same url for clients that do not wait long for an answer."""
    said = PATIENCE[url.partition("+")[0].partition(":")[0]]
    return f"{url}{'&' if '?' in url else '?'}{said}" if said else url


@pytest.mark.parametrize("lost", ["lose_answers", "lose_questions"] if SOAK else ["lose_answers"])
def test_a_commit_whose_answer_is_lost_counts_once(
    far_url: str, network: Network, tmp_path: Path, lost: str
) -> None:
    """DESIGN 4: the connection dies after the commit was sent; the sender looks it up by its id in the log,
    is told what happened, and so is whoever asks again under the same command id."""
    east, west = network.hosts
    with process_group(impatient(far_url), tmp_path) as group:
        with connect_as(group.options("planner", own_pid=False)) as client:
            client.add_tasks([NewTask(task_id="t1")])
        (ada,) = group.scripted_sessions("ada", under=east.enter)
        (bob,) = group.scripted_sessions("bob", under=west.enter)
        assert ada.ask("next_task", lease_s=600)["claim"]["generation"]["generation"] == 1
        ada.ask("stop_at_commit")
        ada.send("submit_task", "t1", 1, {"by": "ada"}, command_id="c1")
        assert ada.receive() == "committing"
        connected = east.connections()
        assert connected
        getattr(east, lost)()
        ada.send("go")
        if lost == "lose_answers":
            group.log.until("task.completed")
            assert bob.ask("task_state", "t1")["state"] == "done", "all others see it"
        poll_until(lambda: connected - east.connections(), PATIENCE_S, "the client does not give up")
        assert ada.has_no_output()
        east.heal()
        answer = ada.receive()
        assert (answer["accepted"], answer["reason"]) == (True, "ACCEPTED")
        assert ada.ask("submit_task", "t1", 1, {"by": "ada"}, command_id="c1") == answer
        (done,) = group.log.events_of("task.completed")
        assert (done["session"], done["generation"]) == ("ada", 1)
        assert not group.log.events_of("task.result_rejected")
