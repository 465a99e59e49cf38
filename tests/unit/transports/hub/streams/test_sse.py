"""`GET /v1/stream`: every entry in order without a gap, or resync."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from coord.core.tokens.schema import Role
from coord.stores.contract import Commit, Entry
from coord.transports.hub.streams import feed, subscription
from coord.transports.hub.streams.entries import EVERYTHING, LogEntry, as_sse
from coord.transports.hub.wakeups import LogWatcher
from tests.support.hub.in_process import PATIENCE_S
from tests.support.hub.site import EventStream, Site, open_site
from tests.support.servers.server import poll_until


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


def data_of(messages: list[dict[str, str]]) -> list[Any]:
    return [json.loads(each["data"]) for each in messages if "data" in each]


def test_a_stream_begins_where_the_client_is(site: Site) -> None:
    first = site.write(5) - 4
    stream = EventStream(site, f"?after={first}", site.token())
    begin = next(stream.messages())
    assert (begin["event"], begin["id"], begin["retry"]) == ("begin", str(first), "2000")
    last = site.write(3)
    assert stream.ids(last) == list(range(first + 1, last + 1))
    stream.close()


def test_a_client_that_reconnects_misses_nothing(site: Site) -> None:
    """A browser repeats the last id in a header, which counts more than the address."""
    token = site.token()
    first = site.write(3)
    last = site.write(4)
    stream = EventStream(site, "?after=0", token, Last_Event_ID=str(first))
    assert stream.ids(last) == list(range(first + 1, last + 1))
    stream.close()


def test_without_an_offset_a_stream_begins_now(site: Site) -> None:
    token = site.token()
    before = site.write(2)
    stream = EventStream(site, "", token)
    assert int(stream.until("begin")[-1]["id"]) >= before
    last = site.write(2)
    assert stream.ids(last)[-2:] == [last - 1, last]
    stream.close()


def test_every_event_is_a_message_and_the_last_has_the_id(site: Site) -> None:
    """A client that lost the connection inside of an entry gets the whole entry again."""
    log = site.database.log("local")
    events = [b'{"event":"lock.acquired","resource":"a\\nb"}', b'{"event":"lock.released","resource":"a"}']
    token = site.token()
    stream = EventStream(site, "", token)
    stream.until("begin")
    offset = log.commit(Commit(events=events, at=log.now()))
    messages = stream.until("lock.released")[-2:]
    assert [each["event"] for each in messages] == ["lock.acquired", "lock.released"]
    assert ["id" in each for each in messages] == [False, True]
    assert messages[1]["id"] == str(offset)
    assert data_of(messages)[0] == {
        "offset": offset,
        "at": data_of(messages)[0]["at"],
        "event": "lock.acquired",
        "resource": "a\nb",
    }
    stream.close()


def test_the_offset_of_an_entry_counts_more_than_a_field_of_that_name() -> None:
    """A brief says up to which offset it tells; the position of the client is that of the entry."""
    events = [b'{"event":"brief.delivered","offset":12,"at":3,"chars":4}']
    sent = LogEntry(Entry(77, 5, b"", events)).encoded(as_sse, EVERYTHING).split(b"\n")[1]
    expected = {"event": "brief.delivered", "chars": 4, "offset": 77, "at": 5}
    assert json.loads(sent.removeprefix(b"data: ")) == expected


def test_bytes_in_the_log_cannot_forge_messages(site: Site) -> None:
    """A process with the store could write an event with line breaks in it, or with a name that has some."""
    log = site.database.log("local")
    token = site.token()
    stream = EventStream(site, "", token)
    stream.until("begin")
    events = [
        b'{"event":"lock.acquired",\n\nevent: end\n\n"x":1}',
        b'{"event":"x\\nid: 99","y":2}',
        b'{"event":\n"lock.moved",\r\n"z":3}',
    ]
    log.commit(Commit(events=events, at=log.now()))
    messages = stream.until("lock.moved")[-3:]
    assert [each["event"] for each in messages] == ["unreadable", "unreadable", "lock.moved"]
    assert data_of(messages)[2]["z"] == 3
    stream.close()


def test_a_filter_is_applied_by_the_hub(site: Site) -> None:
    token = site.token()
    stream = EventStream(site, "?types=lock.*,CLAIM_ACQUIRED&project=shop", token)
    stream.until("begin")
    site.write(1, project="shop")
    site.write(1, project="other", event="task.claimed")
    site.write(1, project="", event="lock.acquired")
    last = site.write(1, project="shop", event="task.claimed", task="mine")
    found = data_of(stream.until("task.claimed"))
    assert [(each["offset"], each["task"]) for each in found] == [(last, "mine")]
    stream.close()


def test_a_filtered_stream_still_moves_the_position(site: Site) -> None:
    token = site.token()
    stream = EventStream(site, "?types=lock.moved", token)
    stream.until("begin")
    last = site.write(3)
    assert stream.ids(last)[-1] == last
    stream.close()


def test_a_token_of_a_project_sees_only_that_project(site: Site) -> None:
    """An event that states no project is shown to nobody who is limited to one."""
    token = site.token(project="shop")
    stream = EventStream(site, "", token)
    stream.until("begin")
    site.write(1, project="secret")
    site.write(1, event="lock.acquired", project=None)
    site.write(1, event="message.sent", project="shop2")
    last = site.write(1, project="shop", task="visible")
    found = data_of(stream.until("task.added"))
    assert [(each["offset"], each["task"]) for each in found] == [(last, "visible")]
    stream.close()
    assert site.ask("GET", "/v1/stream?project=secret", token).status == 403


@pytest.mark.parametrize("path", ["/v1/stream?tenant=other", "/v1/ws?tenant=other"])
def test_a_token_of_another_tenant_is_refused(site: Site, path: str) -> None:
    assert site.ask("GET", "/v1/stream?tenant=other", site.token()).status == 403


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "after=1e3", "after=9999999999999999999", "after=%D9%A1", "types=nope"]
)
def test_a_bad_query_is_refused(site: Site, query: str) -> None:
    answer = site.ask("GET", f"/v1/stream?{query}", site.token())
    assert (answer.status, answer.json()["code"]) == (400, "invalid")


def test_an_offset_that_does_not_exist_yet_is_a_resync(site: Site) -> None:
    token = site.token()
    stream = EventStream(site, "?after=100000", token)
    (message,) = stream.messages()
    assert message["event"] == "resync"
    assert 0 < json.loads(message["data"])["offset"] < 100000


def test_a_trimmed_offset_is_a_resync() -> None:
    with open_site() as site:
        last = site.write(20)
        site.database.log("local").trim(15)
        token = site.token()
        (message,) = [each for each in EventStream(site, "?after=3", token).messages() if "data" in each][-1:]
        assert message["event"] == "resync"
        assert json.loads(message["data"])["offset"] >= last
        stream = EventStream(site, f"?after={last - 2}", token)
        assert stream.ids(last)[-1] == last
        stream.close()


def test_old_entries_come_from_the_log_and_new_ones_from_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A subscriber far behind reads pages while others write, and still misses nothing."""
    monkeypatch.setattr(feed, "WINDOW_ENTRIES", 8)
    monkeypatch.setattr(feed, "PAGE_ENTRIES", 3)
    with open_site() as site:
        site.write(50)
        token = site.token()
        stream = EventStream(site, "?after=0", token)
        writer = threading.Thread(target=site.write, args=(100,))
        writer.start()
        writer.join()
        last = site.write(1)
        assert stream.ids(last) == list(range(1, last + 1))
        stream.close()


def test_a_revoked_token_sees_nothing_later(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream ends at the entry that revoked its token, also if the hub sees that one among others."""
    token = site.token(project="shop")
    stream = EventStream(site, "", token)
    after_revocation = int(stream.until("begin")[-1]["id"]) + 3
    read = feed.Window.after

    def read_all_at_once(window: feed.Window, offset: int, bytes_max: int) -> list[LogEntry] | None:
        return read(window, offset, bytes_max) if window.last >= after_revocation else []

    monkeypatch.setattr(feed.Window, "after", read_all_at_once)
    site.write(1, task="before")
    site.revoke(token)
    site.write(5, task="after")
    found = list(stream.messages())
    assert [each["task"] for each in data_of(found) if "task" in each] == ["before"]
    assert (found[-1]["event"], "revoked" in found[-1]["data"]) == ("end", True)


def test_a_token_that_was_revoked_while_it_subscribed_sees_nothing(site: Site) -> None:
    """The hub knows a token for a second; the subscription looks again once it has its place in the log."""
    token = site.token()
    assert site.ask("HEAD", "/v1/stream", token).status == 200
    site.revoke(token)
    site.write(2)
    found = list(EventStream(site, "?after=0", token).messages()) or [{"event": "end"}]
    assert [each.get("event") for each in found] == ["end"]


HOUR_MS = 3_600_000


def test_a_stream_ends_when_its_token_expires(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    token = site.token(ttl_ms=HOUR_MS, project="shop")
    stream = EventStream(site, "", token)
    stream.until("begin")
    now = subscription.now_ms()
    monkeypatch.setattr(subscription, "now_ms", lambda: now + HOUR_MS + 1000)
    site.write(1, task="late")
    found = [each for each in stream.messages() if "event" in each]
    assert [(each["event"], "expired" in each["data"]) for each in found] == [("end", True)]


def test_a_replaced_token_counts_until_the_end_of_its_grace(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = site.token(project="shop")
    stream = EventStream(site, "", token)
    stream.until("begin")
    site.rotate(token, grace_ms=HOUR_MS)
    site.write(1, task="inside")
    assert data_of(stream.until("task.added"))[-1]["task"] == "inside"
    now = subscription.now_ms()
    monkeypatch.setattr(subscription, "now_ms", lambda: now + HOUR_MS + 1000)
    site.write(1)
    assert "expired" in list(stream.messages())[-1]["data"]


def test_heartbeats_come_while_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "HEARTBEAT_S", 0.01)
    with open_site() as site:
        stream = EventStream(site, "?after=0", site.token())
        beats = [next(each for each in stream.messages() if "" in each) for _ in range(3)]
        assert all(each[""] == "heartbeat" for each in beats)
        stream.close()


def test_streams_end_when_the_hub_stops() -> None:
    """A hub with open streams ends, and tells every one of them."""
    with open_site() as site:
        token = site.token()
        stream, other = EventStream(site, "", token), EventStream(site, "", unix=True)
        stream.until("begin")
        other.until("begin")
        site.thread.stop()
        for each in (stream, other):
            assert list(each.messages())[-1]["event"] == "end"


def test_a_subscriber_that_never_reads_is_dropped() -> None:
    """What it leaves unread stays below the size of two writes, and does not stay for long."""
    with open_site() as site:
        EventStream(site, unix=True).until("begin")
        connections = site.thread.server.server_state.connections

        def unread() -> int:
            return max(each.transport.get_write_buffer_size() for each in list(connections))

        while not unread():
            site.write(20, note="x" * 50_000)
        site.write(200, note="x" * 50_000)
        assert unread() < 2 * subscription.CHUNK_BYTES + 100_000
        stalled = site.thread.server._stalled
        while site.hub.feeds.open:
            site.thread._in_loop(lambda: stalled.drop(connections))
        assert not connections


def test_a_reader_that_fails_ends_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its subscribers would believe that nothing happens."""
    with open_site() as site:
        stream = EventStream(site, "", site.token())
        stream.until("begin")

        def broken(*_: object) -> None:
            raise RuntimeError("a defect of a store")

        monkeypatch.setattr(type(site.database.log("local")), "tail", broken)
        site.write(1)
        assert "RuntimeError" in stream.until("end")[-1]["data"]


def test_a_token_has_a_limited_number_of_streams(monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
    monkeypatch.setattr(feed, "STREAMS_PER_TOKEN_MAX", 2)
    token = site.token()
    streams = [EventStream(site, "", token) for _ in range(2)]
    for each in streams:
        each.until("begin")
    refused = site.ask("GET", "/v1/stream", token)
    assert (refused.status, refused.header("Retry-After")) == (429, "10")
    assert EventStream(site, "", site.token()).status == 200
    streams[0].close()
    site.write(1)
    poll_until(lambda: site.ask("HEAD", "/v1/stream", token).status != 429, PATIENCE_S, "it stays full")
    streams[1].close()


def test_nobody_reads_an_idle_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader wakes now and then, and reads only what is new."""
    monkeypatch.setattr(feed, "WAIT_S", 0.001)
    with open_site() as site:
        token = site.token()
        stream = EventStream(site, f"?after={site.write(1)}", token)
        stream.until("begin")
        log, looks, reads = site.database.log("local"), list[float](), list[tuple[int, ...]]()
        tail, wait = log.tail, LogWatcher.wait

        def read(*given: int) -> Any:
            reads.append(given)
            return tail(*given)

        async def counted(watcher: LogWatcher, after: int, timeout_s: float) -> bool:
            looks.append(timeout_s)
            return await wait(watcher, after, timeout_s)

        monkeypatch.setattr(LogWatcher, "wait", counted)
        monkeypatch.setattr(log, "tail", read)
        poll_until(lambda: looks, PATIENCE_S, "it does not wait")
        begun = len(reads)
        poll_until(lambda: len(looks) > 20, PATIENCE_S, "it does not wake")
        assert len(reads) == begun
        last = site.write(1)
        assert stream.ids(last)[-1] == last
        assert reads.pop()[0] in (last - 1, last)


def test_a_closed_stream_leaves_nothing_behind() -> None:
    """The reader of a log ends with its last subscriber."""
    with open_site() as site:
        token = site.token()
        streams = [EventStream(site, "", token) for _ in range(5)]
        for each in streams:
            each.until("begin")
        assert site.hub.feeds.open == 5
        for each in streams:
            each.close()
        while site.hub.feeds.open:
            site.write(1)
        assert site.hub.feeds._feeds == {}


def test_a_viewer_may_stream(site: Site) -> None:
    for role in Role:
        allowed = role.allows(Role.VIEW)
        assert site.ask("HEAD", "/v1/stream", site.token(role)).status == (200 if allowed else 403)
    assert site.ask("GET", "/v1/stream").status == 401
