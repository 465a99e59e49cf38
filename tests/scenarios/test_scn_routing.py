"""Agents that are silent, limited, busy, new or gone, on every store."""

from coord.core.plans.commands import Runnable
from coord.core.tasks.agent_record import FAILURES_TO_BLOCK, FORGIVE_MS
from coord.sdk.client.client import Client
from tests.support.client_harness import ClientHarness
from tests.support.consent import write_configuration

API_SILENCE_S = 300


def worker(clients: ClientHarness, name: str) -> Client:
    client = clients.client(f"{name}-1", agent=name, project="shop")
    client.register()
    return client


def taken(client: Client) -> tuple[str, int]:
    reply = client.next_task()
    assert reply.task is not None, reply.waiting_for
    return reply.task.task_id, reply.task.generation


def test_scn_25_a_silent_api_sends_the_task_back_with_a_note(clients: ClientHarness) -> None:
    """After five minutes of silence Rem aborts: released, in the queue again, noted and counted.

    SCN-25, CLM-4, CLM-5, REC-5.
    """
    rem, otto = worker(clients, "rem"), worker(clients, "otto")
    rem.add_task("rates", type="api", description="Fetch the exchange rates", files=["rates.py"])
    task, generation = taken(rem)
    clients.now += API_SILENCE_S * 1000 - 1
    assert rem.fail_task(task, generation, note="the API was silent for 5 minutes").success
    shown = rem.show_task(task)
    assert (shown.state, shown.retries, shown.note) == ("pending", 1, "the API was silent for 5 minutes")
    assert rem.locks() == [], "its files are free"
    clients.now = shown.retry_ms
    assert taken(otto) == ("rates", 2)
    assert otto.submit_task("rates", 2).accepted
    past = {agent.name: agent.track_record["api"] for agent in otto.agents()}
    assert (past["rem"].failed, past["rem"].done, past["otto"].done) == (1, 0, 1)


def test_scn_28_an_api_that_is_down_is_routed_around(clients: ClientHarness) -> None:
    """Rem says what it cannot do, fails on, and is disabled; others get its tasks, or they wait.

    SCN-28, REC-12.
    """
    rem, otto = worker(clients, "rem"), worker(clients, "otto")
    for name in "abcd":
        otto.add_task(name, type="api", retries_max=9)
    assert otto.route_task("a").agent == "rem"
    for _ in range(FAILURES_TO_BLOCK):
        rem.fail_task(*taken(rem), note="no route to host")
    held = rem.next_task()
    assert (held.outcome, held.look_ms) == (Runnable.BLOCKED, clients.now + FORGIVE_MS)
    assert held.waiting_for == [f"rem gets no task: it failed {FAILURES_TO_BLOCK} times in a row"]
    assert otto.route_task("d").agent == "otto"
    rem.update(capabilities={"api": 0})
    clients.now += FORGIVE_MS
    assert rem.next_task().task is None, "no task of that type while it cannot reach the API"
    assert "cannot do api" in otto.route_task("d").choices[-1].reason
    otto.disable_agent("rem", reason="its API is down")
    assert rem.next_task().outcome is Runnable.DENIED
    for _ in "abcd":
        assert otto.submit_task(*taken(otto)).accepted, "nothing is dropped"
    otto.enable_agent("rem")
    assert rem.next_task().outcome is Runnable.DONE


def test_scn_31_a_busy_primary_leaves_new_code_to_an_idle_one(clients: ClientHarness) -> None:
    """SCN-31: Beatrice has a queue, Otto is idle: new code is for Otto; with all busy it stays queued."""
    beatrice, otto = worker(clients, "beatrice"), worker(clients, "otto")
    for name in "abc":
        otto.add_task(name, type="code_gen")
    assert otto.route_task("a").agent == "beatrice"
    hands = [taken(beatrice), taken(beatrice)]
    routing = otto.route_task("c")
    assert routing.agent == "otto"
    assert "beatrice" in routing.because
    assert routing.choices[1].wait_s > 0
    assert taken(otto)[0] == "c"
    otto.add_task("d", type="code_gen")
    assert otto.route_task("d").agent == "", "all are busy"
    otto.add_task("d", type="code_gen", priority=9)
    assert otto.route_task("d").agent == "otto", "it is urgent, and he has less to do"
    for hand in hands:
        beatrice.submit_task(*hand)
    assert otto.route_task("d").agent == "beatrice"


def test_scn_32_agents_come_and_go_and_every_task_is_done(clients: ClientHarness) -> None:
    """Mallory joins with a type of her own; scaled down to two agents all work is still done.

    SCN-32, PRB-34.
    """
    table = "[routing.types.ui]\nagents = ['mallory']\nwords = ['layout']\n"
    write_configuration(clients.repository, table, clients.environ)
    team = [worker(clients, name) for name in ("beatrice", "otto", "rem", "mallory")]
    lead = team[0]
    kinds = ("code_gen", "review", "api", "doc", "testing", "script", "")
    for number, kind in enumerate(kinds):
        lead.add_task(f"t{number}", type=kind, description="" if kind else "Rework the layout")
    routing = lead.route_task("t6")
    assert (routing.agent, routing.kind.type) == ("mallory", "ui")
    for gone in team[2:]:
        gone.dereg()
    assert lead.route_task("t6").agent == "", "nobody left declares it: it stays in the queue"
    assert lead.route_task("t2").agent == "otto"
    done = []
    for number in range(len(kinds)):
        client = team[number % 2]
        task, generation = taken(client)
        assert client.submit_task(task, generation).accepted
        done.append(task)
    assert sorted(done) == [f"t{number}" for number in range(len(kinds))]
    assert lead.next_task().outcome is Runnable.DONE
