"""A writable root is added to Codex' configuration: nothing else changes, and it comes out byte for byte."""

import tomllib

import pytest

from coord.integrations.setup.text.marked_block import HASH, without_block
from coord.integrations.setup.text.toml_edit import parse, with_root, writable_roots

ROOT = '/srv/my "shop"/.git/coord/store'
NEW, LIST = [ROOT, "~/cache"], [ROOT]
CONFIGS = {
    "": NEW,
    'model = "x"': NEW,
    'model = "x"\r\n[tui]\r\ntheme = "a"\r\n': NEW,
    "[sandbox_workspace_write]\nnetwork_access = true # mine\n\n[tui]\n": NEW,
    "[sandbox_workspace_write]": NEW,
    " [ sandbox_workspace_write ] # here\nnetwork_access = true\n": NEW,
    "sandbox_workspace_write.network_access = true\n[tui]\n": NEW,
    '[sandbox_workspace_write]\nwritable_roots = ["/a"] # mine\n': [*LIST, "/a"],
    '[sandbox_workspace_write]\nwritable_roots = [\n  # mine\n  "/a",\n  "/b"\n]\n': [*LIST, "/a", "/b"],
    "[sandbox_workspace_write]\nwritable_roots = []\n": LIST,
    'sandbox_workspace_write.writable_roots = ["/a"]\n': [*LIST, "/a"],
    'sandbox_workspace_write = { writable_roots = ["/a"] }\n': [*LIST, "/a"],
    'note = """\n[sandbox_workspace_write]\nwritable_roots = [\n"""\n': NEW,
    '[a]\nwritable_roots = ["/x"]\n[sandbox_workspace_write]\nwritable_roots = ["/a"]\n': [*LIST, "/a"],
}


@pytest.mark.parametrize("text", CONFIGS)
def test_a_root_comes_and_goes(text: str) -> None:
    """Whatever the form, the result has one root more, and the rest unchanged."""
    edited = with_root(text, ROOT, ["~/cache"])
    assert edited is not None
    config, before = tomllib.loads(edited), tomllib.loads(text)
    assert writable_roots(config) == CONFIGS[text]
    del config["sandbox_workspace_write"]["writable_roots"]
    before.get("sandbox_workspace_write", {}).pop("writable_roots", None)
    assert config == {"sandbox_workspace_write": {}, **before}
    assert without_block(edited, HASH).rstrip("\r\n") == text.rstrip("\r\n")
    if text.endswith("\n"):
        assert without_block(edited, HASH) == text


@pytest.mark.parametrize(
    "text",
    [
        "sandbox_workspace_write = { network_access = true }\n",
        "sandbox_workspace_write = 1\n",
        '[sandbox_workspace_write]\nwritable_roots = "/a"\n',
        "[broken\n",
        "# \udcff\n",
    ],
)
def test_without_a_safe_place_nothing_is_added(text: str) -> None:
    assert with_root(text, ROOT) is None


def test_a_root_that_is_there_stays_alone() -> None:
    """A person may have added it."""
    text = '[sandbox_workspace_write]\nwritable_roots = ["/a"]\n'
    assert with_root(text, "/a", ["/b"]) == text
    assert parse(text) is not None
    assert with_root("", "/srv/\udcff") is None
