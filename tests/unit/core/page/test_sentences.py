"""Every event has a sentence, and a sentence names only fields that the event has."""

import re

import msgspec
import pytest

from coord.core.events import every_event
from coord.core.page.sentences import SENTENCES

KINDS = {str(kind.__struct_config__.tag): kind for kind in every_event()}


def test_every_event_has_a_sentence() -> None:
    assert SENTENCES.keys() == KINDS.keys()


@pytest.mark.parametrize("name", SENTENCES)
def test_a_sentence_names_fields_of_its_event(name: str) -> None:
    """A field that was renamed would leave a hole in the sentence."""
    text = SENTENCES[name]
    named = {*re.findall(r"\{(\w+)\}", text), *re.findall(r"\[[?!](\w+)", text)}
    assert named <= {field.encode_name for field in msgspec.structs.fields(KINDS[name])}


@pytest.mark.parametrize("name", SENTENCES)
def test_brackets_and_braces_close(name: str) -> None:
    """Parts do not nest: the page reads them with one pass."""
    left = re.sub(r"\[(?:[?!]\w+(?:=\w+)? )?[^\[\]]*\]", "", SENTENCES[name])
    assert not set("[]") & set(left)
    assert not set("{}") & set(re.sub(r"\{\w+\}", "", SENTENCES[name]))
