"""Followers without a hub: in the commands that change something, and as `coord follow`."""

import asyncio
import json
from pathlib import Path

import pytest

import coord
from coord.core.errors import NotFound
from coord.followers.direct import caught_up, log_source
from coord.followers.follower import LogSource
from coord.followers.registry import FOLLOWERS, follower_class
from coord.host.runtime.switched_on import FILE, switch, switched_on
from coord.sdk.client.client import Client
from coord.transports.cli.main import main
from coord.transports.hub.followers.run import LOOK_S, LogFollowers
from tests.support import counting_follower
from tests.support.counting_follower import Counts


class Written(Counts):
    """Writes its counts to a file beside the pin."""

    name = "written"
    fails = False

    def act(self, now: int) -> int:
        del now
        if self.fails:
            raise OSError("the disk is full")
        Path(self.source.location.folder, "counts").write_bytes(self.dump())
        return 0

    @classmethod
    def wanted(cls, source: LogSource) -> bool:
        return cls.name in switched_on(source.location.folder)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(FOLLOWERS):
        monkeypatch.delitem(FOLLOWERS, name)
    monkeypatch.setitem(FOLLOWERS, "counts", counting_follower.TARGET)
    monkeypatch.setitem(FOLLOWERS, "written", f"{__name__}:Written")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COORD_SESSION_ID", "ada-1")
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Written.fails = False
    return folder


def connected() -> Client:
    return coord.connect(session="ada-1", agent="ada")


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    code = main(list(words))
    out = capsys.readouterr().out
    assert code == 0, out
    found: dict = json.loads(out)
    return found


@pytest.mark.usefixtures("shop")
def test_a_command_leaves_switched_on_followers_current() -> None:
    """Without a hub they are current when the command that changed something ends; others are not run."""
    with connected() as client:
        folder = Path(client.location.folder)
        client.acquire("name:build")
    assert not (folder / "counts").exists()
    switch(str(folder), "written", on=True)
    with connected() as client:
        client.unlock("name:build")
    assert json.loads((folder / "counts").read_bytes())["lock.released"] == 1
    assert switch(str(folder), "written", on=False)
    assert not (folder / FILE).exists()


@pytest.mark.usefixtures("shop")
def test_a_follower_that_fails_does_not_fail_the_command() -> None:
    with connected() as client:
        folder = client.location.folder
    switch(folder, "written", on=True)
    switch(folder, "gone", on=True)
    with connected() as client:
        assert client.acquire("name:build").ok
    switch(folder, "gone", on=False)
    Written.fails = True
    with connected() as client:
        assert client.acquire("name:other").ok


@pytest.mark.usefixtures("shop")
def test_follow_runs_one_and_list_shows_all(capsys: pytest.CaptureFixture[str]) -> None:
    main(["lock", "name:build"])
    capsys.readouterr()
    ran = answer(capsys, "follow", "counts", "--once")
    assert (ran["ran"], ran["offset"] > 0) == (True, True)
    rows = {row["name"]: row for row in answer(capsys, "follow", "list")["followers"]}
    assert rows["counts"]["offset"] == ran["offset"]
    assert (rows["counts"]["state"], rows["counts"]["lag"]) == ("saved", 1)
    assert (rows["written"]["state"], rows["written"]["lag"]) == ("off", 0), "nobody switched it on"
    again = answer(capsys, "follow", "counts", "--once", "--rebuild")
    assert again["offset"] > ran["offset"]


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(("words", "code"), [(("follow", "nobody"), 4), (("follow", "list", "--once"), 2)])
def test_bad_input_is_refused(words: tuple[str, ...], code: int) -> None:
    main(["lock", "name:build"])
    assert main(list(words)) == code


@pytest.mark.usefixtures("shop")
def test_a_follower_can_be_asked_for_its_state() -> None:
    with connected() as client:
        client.acquire("name:build")
        found = caught_up(log_source(client), "counts")
        assert isinstance(found, Counts)
        assert found.counts["lock.acquired"] == 1
        Written.fails = True
        with pytest.raises(OSError, match="the disk is full"):
            caught_up(log_source(client), "written")
        with pytest.raises(NotFound, match="no follower 'nobody'"):
            follower_class("nobody")


@pytest.mark.usefixtures("shop")
def test_a_hub_runs_what_is_wanted_now() -> None:
    """A follower that a person switches on runs with the next entry, and without a restart."""
    with connected() as client:
        folder = client.location.folder
        source = LogSource(client.engine, client.log, client.location, {})
        followers = LogFollowers(source, asyncio.Event())
        assert followers.step() == LOOK_S
        assert [run.name for run in followers.runner.runs] == ["counts"]
        switch(folder, "written", on=True)
        followers.step()
        assert [run.name for run in followers.runner.runs] == ["counts", "written"]
        Written.fails = True
        assert 0 < followers.step() < LOOK_S, "it is tried again soon"
