"""A holder that stands still past its lease and comes back: nothing it does counts any more."""

from tests.support.process_group import ProcessGroup, refusal


def test_a_holder_stopped_past_its_lease_is_refused_everything(group: ProcessGroup) -> None:
    """DESIGN 2.3: after SIGSTOP, expiry and SIGCONT its renew, release and fence check are refused."""
    holder, other = group.scripted_sessions("holder", "other")
    fence = holder.ask("hold", "src/a.py", ttl_s=1)
    holder.pause()
    granted = other.ask("acquire", "src/*", ttl_s=3_600, wait_s=60)
    assert granted["outcome"] == "granted"
    assert granted["locks"][0]["fence"] > fence
    holder.resume()
    assert group.log.until("lock.released", session="holder")["end_reason"] == "expired"
    for attempt in ("renew", "unlock"):
        assert refusal(holder.ask(attempt, "src/a.py", fence=fence)) in ("NotFound", "NotOwner", "LockLost")
    checked = holder.ask("check", "src/a.py", fence=fence)
    assert checked["free"] is False
    assert [lock["owner"] for lock in checked["holders"]] == ["other"]
    assert refusal(holder.ask("leave")) == "LockLost"
    assert other.ask("renew", "src/*", fence=granted["locks"][0]["fence"])["locks"]
