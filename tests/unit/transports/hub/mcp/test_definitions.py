"""The tools as clients list them: few words, always the same, and what the calls really take."""

from typing import Any, get_args

import msgspec
import pytest

from coord.transports.hub.mcp import definitions
from coord.transports.hub.mcp.definitions import INSTRUCTIONS, RESOURCES, TEMPLATES, TOOLS
from coord.transports.hub.mcp.tools import CALLS, Write

TOKENS_MAX = 1_500
CHARACTERS_PER_TOKEN = 3.5
"""A low estimate: JSON of English words has about 4 with the tokenizers of today."""
TOOLS_MAX = 8


def test_all_definitions_together_cost_few_tokens() -> None:
    """Every agent reads them in every conversation; without a tokenizer, we count characters."""
    listed = {
        "tools": TOOLS,
        "resources": RESOURCES,
        "resourceTemplates": TEMPLATES,
        "instructions": INSTRUCTIONS,
    }
    assert len(msgspec.json.encode(listed)) / CHARACTERS_PER_TOKEN < TOKENS_MAX
    assert len(TOOLS) <= TOOLS_MAX


def test_the_order_is_that_of_the_calls() -> None:
    assert [tool["name"] for tool in TOOLS] == list(CALLS)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["name"])
def test_a_schema_and_the_type_of_its_call_agree(tool: dict[str, Any]) -> None:
    fields = {field.name: field for field in msgspec.structs.fields(CALLS[tool["name"]])}
    schema = tool["inputSchema"]
    assert set(schema["properties"]) == set(fields)
    assert set(schema.get("required", ())) == {name for name, field in fields.items() if field.required}
    for name, property_ in schema["properties"].items():
        if "enum" in property_:
            assert property_["enum"] == [each for each in get_args(fields[name].type) if each], name


def test_every_write_takes_a_session_and_a_command_id() -> None:
    for tool in TOOLS:
        given = tool["inputSchema"]["properties"]
        assert "session" in given
        writes = issubclass(CALLS[tool["name"]], Write)
        assert ("command_id" in given) == writes
        assert tool["annotations"] == ({"destructiveHint": False} if writes else {"readOnlyHint": True})


def test_a_description_fits_where_clients_cut_it() -> None:
    assert len(INSTRUCTIONS) < 2_000
    assert all(len(tool["description"]) < 2_000 for tool in TOOLS)
    assert definitions.WAIT_S_MAX == 60
