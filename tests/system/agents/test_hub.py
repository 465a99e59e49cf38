"""A real agent whose hooks a hub answers, until the hub is killed."""

import os
import tempfile
from pathlib import Path

from coord.sdk.log_reader import logged_events, pages
from tests.support.agents.drive import running_agent
from tests.support.agents.prepared import client_of, environ_of, locks, prepared
from tests.support.agents.script import Edit, Pause, Read, Script
from tests.support.hub.hooks import answered_hooks
from tests.support.hub.process import serving

MEET_S = 90


def test_an_agent_works_through_a_hub_and_without_it(tmp_path: Path) -> None:
    """SVC-2, INT-5: a held file is refused by the hub, and by the hook itself after `kill -9` of the hub.

    AUD-5: what the agent read while the hub lived is logged by the next commit, which is made without it.
    """
    place = prepared(tmp_path, "claude")
    pause = Pause()
    script: Script = (
        Edit("free.txt", "new\n"),
        Edit("held.txt", "stolen\n"),
        Read("old.txt"),
        pause,
        Edit("next.txt", "next\n"),
        Edit("held.txt", "stolen\n"),
    )
    with tempfile.TemporaryDirectory(prefix="ch-") as run, client_of(place, "bob") as bob:
        bob.acquire("held.txt", reason="rework", ttl_s=3600)
        environ = {**environ_of(place), "XDG_RUNTIME_DIR": run}
        with (
            serving(place.repository, environ) as hub,
            running_agent(
                "claude", script, place.repository, place.home, environment={"XDG_RUNTIME_DIR": run}
            ) as agent,
        ):
            assert pause.reached.wait(MEET_S), (place.home / "err").read_text()
            counts = answered_hooks(hub.socket)
            assert counts["answered"] >= 4, "its start, two edits and the end of one"
            assert counts["left"] == 0
            owner = locks(place)["file:free.txt"].owner
            with client_of(place, "eve") as eve:
                assert os.path.exists(f"/proc/{eve.show(owner).pid}"), "the process of Claude Code"
                assert eve.show(owner).pid != hub.process.pid
            hub.kill()
            pause.go.set()
            agent.wait()
        told = agent.model.was_told()
    assert [place.read(name) for name in ("free.txt", "next.txt", "held.txt")] == ["new\n", "next\n", None]
    assert told.count("held.txt is locked by session bob") >= 2
    with client_of(place, "eve") as eve:
        found = [each for page in pages(eve.log, 0) for each in logged_events(page)]
    reads = [each.details for each in found if each.event == "file.read"]
    assert [(each["session"], each["resource"]) for each in reads] == [(owner, "file:old.txt")]
