"""The OpenAPI document: it lists every endpoint, and a client made from it alone can use the hub."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from coord.transports.hub.api.routes import document, every_endpoint
from tests.support.hub.harness import HubHarness

DOCUMENT: dict[str, Any] = json.loads(document())


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as harness:
        yield harness


class DocumentClient:
    """A client made from the document alone: operations by name, parameters placed as it says."""

    def __init__(self, hub: HubHarness) -> None:
        self.hub = hub
        self.document = hub.ask("GET", "/openapi.json", token="").body
        self.operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in self.document["paths"].items()
            for method, operation in methods.items()
        }

    def call(self, name: str, **given: Any) -> Any:
        method, path, operation = self.operations[name]
        query: dict[str, Any] = {}
        for parameter in operation["parameters"]:
            value = given.pop(parameter["name"], None)
            if value is None:
                assert not parameter.get("required"), f"{name} needs {parameter['name']}"
            elif parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", str(value))
            elif parameter["in"] == "query":
                query[parameter["name"]] = value
        answer = self.hub.ask(method, path, given if "requestBody" in operation else None, query=query)
        assert str(answer.status) in operation["responses"], f"{name}: {answer.status} is not documented"
        return answer


def test_the_document_lists_every_endpoint() -> None:
    listed = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert listed == {(each.method, each.path.replace("...}", "}")) for each in every_endpoint()}
    assert DOCUMENT["openapi"] == "3.1.0"


def test_every_reference_in_the_document_leads_somewhere() -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for each in value.values():
                yield from references(each)
        elif isinstance(value, list):
            for each in value:
                yield from references(each)

    for reference in set(references(DOCUMENT)):
        node: Any = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        assert node


def test_the_document_needs_no_token_and_shows_no_secret(hub: HubHarness) -> None:
    answer = hub.ask("GET", "/openapi.json", token="")
    assert answer.status == 200
    assert hub.token not in json.dumps(answer.body)


def test_a_client_made_from_the_document_works(hub: HubHarness) -> None:
    """It locks, claims and reads, and meets no status that the document leaves out."""
    client = DocumentClient(hub)
    assert client.call("register", session="s1", agent="ada").status == 200
    assert client.call("acquireLocks", session="s1", resources=["a.py"]).status == 201
    held = client.call("acquireLocks", session="s2", resources=["a.py"])
    assert (held.status, held.body["holder"]["owner"]) == (409, "s1")
    assert client.call("checkLocks", session="s2", resources=["a.py", "b.py"]).body["free"] is False
    assert client.call("releaseLocks", session="s1", resources=["a.py"]).body["released"] == ["file:a.py"]
    claim = {"tenant": "local", "project": "shop", "task": "A-1"}
    granted = client.call("claim_task", **claim, agent_id="ada", session_id="s1", lease_duration_seconds=60)
    assert granted.body["success"]
    submitted = client.call("submit_result", **claim, session_id="s1", generation=1, result_data={"ok": 1})
    assert submitted.body["accepted"]
    assert client.call("get_task_state", **claim).body["state"] == "done"
    assert [e["event"] for e in client.call("readEvents", after=0, limit=1000).body["events"]][
        -1
    ] == "task.completed"
