"""A token of one project, and one of another tenant, never see a word that somebody else wrote into a task.

Locks, sessions and messages belong to no project (decision 0060), so a token of a project sees those of its
tenant. What another tenant has it never sees.
"""

import json
from collections.abc import Iterator

import pytest

from coord.core.plans.commands import AddTasks, NewTask
from coord.core.tokens.schema import Role
from coord.transports.hub.api.routes import every_endpoint
from tests.support.hub import samples
from tests.support.hub.site import EventStream, Site, open_site

OF_PROJECT, OF_TENANT = "qxwproject", "qxwtenant"
SHARED = (
    *("/v1/sessions", "/v1/sessions/{session}", "/v1/sessions/{session}/brief"),
    *("/v1/sessions/{session}/memory", "/v1/sessions/{session}/status", "/v1/projects/{project}/overview"),
)
"""Routes of sessions, which name the task that a session works on."""
END = "settings.changed"


def ask(site: Site, method: str, path: str, token: str, body: object = None) -> None:
    data = json.dumps(body).encode() if body is not None else b""
    answer = site.ask(method, path, token, data, Content_Type="application/json")
    assert answer.status < 300, (path, answer.body)


def plant(site: Site, tenant: str, project: str, word: str) -> None:
    """Write a word into every field of what belongs to a project."""
    token = site.token(Role.ADMIN, tenant=tenant)
    session = f"s-{tenant}-{project}"
    tasks = [
        NewTask(
            task_id=f"{word}-{number}",
            description=word,
            track=word,
            role=word,
            type=word,
            files=(f"{word}.py",) if number == 1 else (),
            needs=(word,) if number == 1 else (),
            depends_on=(f"{word}-0",) if number == 1 else (),
        )
        for number in range(4)
    ]
    site.run(AddTasks(project, tuple(tasks)), tenant)
    of_task, of_project = f"/v1/projects/{project}/tasks/{word}", f"/v1/projects/{project}"
    who = {"session": session, "agent": "eve"}
    ask(site, "POST", "/v1/sessions", token, {**who, "project": project})
    ask(site, "PUT", f"{of_project}/tracks/{word}", token, {"agents_max": 3})
    for number in (0, 2):
        ask(site, "POST", f"{of_task}-{number}/claim", token, {**who, "lease_ms": 60_000})
    done = {"session_id": session, "generation": 1, "result_data": {word: word}}
    ask(site, "POST", f"/v1/tenants/{tenant}/projects/{project}/tasks/{word}-2/submit", token, done)
    ask(site, "POST", f"{of_task}-3/skip", token, {"reason": word})
    ask(site, "PUT", f"{of_project}/agents/{word}", token, {"enabled": False, "reason": word})
    ask(site, "POST", "/v1/questions", token, {**who, "text": word, "options": [word]})


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        token = found.token(Role.ADMIN)
        ask(found, "POST", "/v1/sessions", token, {"session": "s1", "agent": "ann", "project": "shop"})
        ask(
            found,
            "POST",
            "/v1/projects/shop/tasks",
            token,
            {"tasks": [{"task_id": "x1", "description": "a"}]},
        )
        plant(found, "local", "other", OF_PROJECT)
        plant(found, "second", "shop", OF_TENANT)
        yield found


@pytest.mark.parametrize("role", [Role.VIEW, Role.ADMIN])
@pytest.mark.parametrize("limits", [{}, {"session": "s1"}], ids=["project", "project and session"])
def test_no_read_shows_another_project_or_tenant(site: Site, role: Role, limits: dict[str, str]) -> None:
    """Every route that reads, asked about the own project, and about sessions of others."""
    token, answered = site.token(role, project="shop", **limits), 0
    for endpoint in every_endpoint():
        for session in ("s1", "s-local-other") if endpoint.method == "GET" else ():
            path = samples.path_of(endpoint, project="shop", task="x1", session=session)
            for query in ("", "?at=12", "?branch=main&into=main", "?buckets=400", "?limit=1000"):
                answer = site.ask("GET", path + query, token, Accept_Encoding="identity")
                answered += answer.status == 200
                assert OF_TENANT.encode() not in answer.body, path
                assert endpoint.path in SHARED or OF_PROJECT.encode() not in answer.body, path
    assert answered > 20


def test_the_same_reads_show_the_words_to_whoever_may_see_them(site: Site) -> None:
    """Otherwise the test above proves nothing."""
    token, shown = site.token(), set()
    for endpoint in every_endpoint():
        if endpoint.method == "GET":
            path = samples.path_of(endpoint, project="other", task="x1", session="s-local-other")
            if OF_PROJECT.encode() in site.ask("GET", path, token).body:
                shown.add(endpoint.path)
    assert {"/v1/page", "/v1/events", "/v1/needs", "/v1/questions"} <= shown
    assert {"/v1/sessions", "/v1/sessions/{session}/claims"} <= shown
    assert len(shown) > 12


def test_another_project_named_is_refused(site: Site) -> None:
    token = site.token(Role.ADMIN, project="shop")
    for endpoint in every_endpoint():
        if "project" in endpoint.variables:
            path = samples.path_of(endpoint, project="other", task=f"{OF_PROJECT}-0")
            body, query = samples.sample(endpoint)
            words = "&".join(f"{name}={value}" for name, value in query.items() if isinstance(value, str))
            data = b"" if body is None else json.dumps(body).encode()
            answer = site.ask(
                endpoint.method, f"{path}?{words}", token, data, Content_Type="application/json"
            )
            assert answer.status in (400, 403), (endpoint.method, path, answer.body)
            assert OF_PROJECT.encode() not in answer.body.replace(path.encode(), b"")


def test_no_stream_shows_another_project_or_tenant(site: Site) -> None:
    """Both kinds of stream, from the first entry to one that is for the reader."""
    for project, words in (("shop", (OF_PROJECT, OF_TENANT)), ("", (OF_TENANT,))):
        token = site.token(project=project)
        offset = site.write(1, project="shop", event=END)
        stream = EventStream(site, "?after=0", token)
        told = json.dumps(stream.until(END))
        stream.close()
        with site.websocket("/v1/ws?after=0", token) as socket:
            while True:
                text = str(socket.recv(timeout=60))
                told += text
                found = json.loads(text)
                if found["type"] == "entry" and found["offset"] >= offset:
                    break
        assert [word for word in words if word in told] == []
        assert (OF_PROJECT in told) is not bool(project)
