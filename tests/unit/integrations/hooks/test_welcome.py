"""What a session is told when it starts."""

from pathlib import Path

import pytest

from coord.sdk.client.client import connect
from coord.sdk.client.open import initialise
from tests.support.git_folders import made_repository
from tests.support.hook_harness import HookHarness


@pytest.mark.parametrize("store", ["sqlite", "a server for both"])
def test_a_start_speaks_of_this_repository_only(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    """SES-21, issue 15: sessions of other repositories are not named, even if they share a store."""
    url = ""
    if store != "sqlite":
        url = request.getfixturevalue("make_url")("postgres")
    scene = HookHarness(tmp_path, url=url)
    with scene.client("bea") as bea:
        bea.register()
    other = tmp_path / "other"
    made_repository(other)
    initialise(str(other), scene.environ, url=url)
    with connect(cwd=str(other), environ={**scene.environ, "COORD_SESSION_ID": "stranger"}) as stranger:
        stranger.register()
    told = scene.tell("SessionStart", source="startup").note
    assert "there is 1 other session" in told
    assert "bea" in told
    assert "stranger" not in told
