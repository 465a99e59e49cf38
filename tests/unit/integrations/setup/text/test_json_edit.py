"""Adding and removing hooks leaves the rest of the settings unchanged."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.integrations.setup.text.json_edit import read_json
from coord.integrations.setup.tools import TOOLS, hooks_of, our_hooks, settings_of, with_hooks, without_hooks

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=4), st.just("a // b /* c"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
FOREIGN = st.fixed_dictionaries(
    {"matcher": st.just("*"), "hooks": st.just([{"type": "command", "command": "lint"}])}
)
SECTIONS = st.dictionaries(
    st.sampled_from(["PreToolUse", "BeforeTool", "Stop", "Other"]), st.lists(FOREIGN, max_size=2)
)
SETTINGS = st.builds(
    lambda rest, section: {**{key: rest[key] for key in rest if key != "hooks"}, **section},
    st.dictionaries(st.text(max_size=4), VALUES, max_size=3),
    st.one_of(st.just({}), st.builds(lambda hooks: {"hooks": hooks}, SECTIONS)),
)
GAPS = st.sampled_from(["", " ", "\n", "\n    ", "\t", "\r\n  ", " // why\n", '/* { " */'])


@st.composite
def texts(draw: st.DrawFn, value: Any) -> str:
    """A JSON value in any style: indentation, comments, trailing commas."""
    style = draw(st.sampled_from(["compact", "2", "4", "tab", "wild"]))
    if style == "compact":
        return json.dumps(value)
    if style != "wild":
        end = draw(st.sampled_from(["", "\n"]))
        return json.dumps(value, indent="\t" if style == "tab" else int(style), ensure_ascii=False) + end
    return wild(draw, value)


def wild(draw: st.DrawFn, value: Any) -> str:
    def gap() -> str:
        return draw(GAPS)

    if isinstance(value, dict | list) and value:
        comma = draw(st.sampled_from(["", ","]))
        if isinstance(value, dict):
            parts = [f"{gap()}{json.dumps(key)}{gap()}:{gap()}{wild(draw, value[key])}" for key in value]
            return "{" + f"{gap()},".join(parts) + comma + gap() + "}"
        return "[" + f"{gap()},".join(gap() + wild(draw, each) for each in value) + comma + gap() + "]"
    return json.dumps(value)


def squeezed(text: str) -> str:
    return "".join(text.split())


@settings(max_examples=50)
@given(st.data(), SETTINGS, st.sampled_from(TOOLS), st.booleans())
def test_hooks_come_in_and_out(data: st.DataObject, value: dict[str, Any], tool: Any, shared: bool) -> None:
    """INT-9: the settings keep all their content; after the removal of our hooks the text is the same."""
    text = data.draw(texts(value))
    assert read_json(text, "it").value == value
    ours = hooks_of(tool, shared=shared)
    both = with_hooks(text, ours, "it")
    expected = json.loads(json.dumps(value))
    for event, group in ours.items():
        expected.setdefault("hooks", {}).setdefault(event, []).append(group)
    assert settings_of(both, "it") == expected
    assert squeezed(without_hooks(both, "it", text)) == squeezed(text)


def test_formatting_stays() -> None:
    """New members follow the indentation and line endings of the text."""
    text = '{\n\t"a": 1, // one\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n'.replace("\n", "\r\n")
    both = with_hooks(text, {"Stop": {"hooks": []}, "Start": {"hooks": [1]}}, "it")
    assert both.replace("\r\n", "\n").replace("\t", "  ").splitlines() == [
        "{",
        '  "a": 1, // one',
        '  "hooks": {',
        '    "Stop": [',
        "      {",
        '        "hooks": []',
        "      }",
        "    ],",
        '    "Start": [',
        "      {",
        '        "hooks": [',
        "          1",
        "        ]",
        "      }",
        "    ]",
        "  }",
        "}",
    ]
    assert both.count("\n") == both.count("\r\n") == 17
    assert "  " not in both


def test_a_hook_in_a_group_of_others() -> None:
    """If a group has our hook and another one, only ours is removed."""
    ours = hooks_of(TOOLS[0], shared=False)["Stop"]["hooks"][0]
    mixed = json.dumps({"hooks": {"Stop": [{"hooks": [ours, {"command": "lint"}, ours]}]}})
    assert our_hooks(json.loads(mixed))["Stop"][0]["command"] == ours["command"]
    assert json.loads(without_hooks(mixed, "it")) == {"hooks": {"Stop": [{"hooks": [{"command": "lint"}]}]}}


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[1 2]", '{"a" 1}', "{1: 2}", '{"a": }', '{"a": 1} x', '{"a": tru}', "[" * 300, '"open'),
        *("[]", '{"hooks": 1}', '{"hooks": {"Stop": {}}}'),
    ],
)
def test_what_is_no_settings_is_refused(text: str) -> None:
    """Invalid JSON is refused with a hint."""
    with pytest.raises(Invalid) as refused:
        with_hooks(text, {"Stop": {}}, "it")
    assert "nothing was changed" in refused.value.hint
