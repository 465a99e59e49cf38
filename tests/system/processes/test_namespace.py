"""A process in another pid namespace: from outside nothing proves its death, so only time ends its hold."""

import pytest

from tests.support.process_group import Crew, refusal

NAMESPACES = {
    "without a /proc of its own": ("unshare", "--pid", "--fork", "--kill-child"),
    "with a /proc of its own": ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
}
LEASE_MS = 300_000


@pytest.mark.parametrize("under", NAMESPACES.values(), ids=NAMESPACES)
def test_a_death_in_another_namespace_is_never_proven(crew: Crew, under: tuple[str, ...]) -> None:
    """DESIGN 5: unknown never frees. An auto lease ends by time; a theft from the dead is refused."""
    crew.stop_time()
    (inside,) = crew.players("inside", under=under)
    (outside,) = crew.players("outside")
    assert inside.ask("acquire", "src/a.py", ttl_s=LEASE_MS // 1000)["outcome"] == "granted"
    assert inside.ask("acquire", "name:release")["outcome"] == "granted"
    inside.kill()
    crew.clock.move(LEASE_MS - 1)
    assert outside.ask("acquire", "src/a.py")["outcome"] == "held"
    assert refusal(outside.ask("steal", "src/a.py", dead_owner=True)) == "NotStealable"
    (peer,) = outside.ask("peers")
    assert (peer["session_id"], peer["liveness"]) == ("inside", "suspect")
    crew.clock.move(1)
    assert outside.ask("acquire", "src/a.py")["outcome"] == "granted"
    assert crew.story.until("lock.released", session="inside")["ending"] == "expired"
    assert refusal(outside.ask("steal", "name:release", dead_owner=True)) == "NotStealable"
    assert not crew.story.told("session.ended", session="inside")
