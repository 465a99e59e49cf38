"""A process in another pid namespace: from outside nothing proves its death, so only time ends its hold."""

import pytest

from tests.support.process_group import ProcessGroup, refusal

NAMESPACES = {
    "without a /proc of its own": ("unshare", "--pid", "--fork", "--kill-child"),
    "with a /proc of its own": ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
}
LEASE_MS = 300_000


@pytest.mark.parametrize("under", NAMESPACES.values(), ids=NAMESPACES)
def test_a_death_in_another_namespace_is_never_proven(group: ProcessGroup, under: tuple[str, ...]) -> None:
    """DESIGN 5: unknown never frees. An auto lease ends by time; a theft from the dead is refused."""
    group.stop_time()
    (inside,) = group.scripted_sessions("inside", under=under)
    (outside,) = group.scripted_sessions("outside")
    assert inside.ask("acquire", "src/a.py", ttl_s=LEASE_MS // 1000)["outcome"] == "granted"
    assert inside.ask("acquire", "name:release")["outcome"] == "granted"
    inside.kill()
    group.clock.move(LEASE_MS - 1)
    assert outside.ask("acquire", "src/a.py")["outcome"] == "held"
    assert refusal(outside.ask("steal", "src/a.py", dead_owner=True)) == "NotStealable"
    (peer,) = outside.ask("peers")
    assert (peer["session_id"], peer["liveness"]) == ("inside", "suspect")
    group.clock.move(1)
    assert outside.ask("acquire", "src/a.py")["outcome"] == "granted"
    assert group.log.until("lock.released", session="inside")["end_reason"] == "expired"
    assert refusal(outside.ask("steal", "name:release", dead_owner=True)) == "NotStealable"
    assert not group.log.events_of("session.ended", session="inside")
