"""A transcript of Gemini CLI shows that its context was compacted."""

from pathlib import Path

import pytest

from coord.integrations.hooks.awareness.compaction import TAIL_BYTES, compacted_before


def line(name: str, tokens: int, more: str = "") -> str:
    """An answer as the transcript has it; a tool call repeats it with the call."""
    return (
        f'{{"id":"{name}","timestamp":"2026-11-18T14:04:19.654Z","type":"gemini","content":"","thoughts":[],'
        f'"tokens":{{"input":{tokens},"output":1,"cached":0,"total":2}},"model":"gemini-2.5-pro"{more}}}'
    )


USER = '{"id":"u","timestamp":"2026-11-18T14:04:19.781Z","type":"user","content":[{"text":"go on"}]}'
SET = '{"$set":{"lastUpdated":"2026-11-18T14:04:19.781Z"}}'


@pytest.mark.parametrize(
    ("lines", "mark"),
    [
        ([], ""),
        ([line("a", 500_000)], ""),
        ([line("a", 500_000), USER, SET, line("b", 510_000)], ""),
        ([line("a", 500_000), USER, SET, line("b", 100_000)], "b"),
        ([line("a", 500_000), line("b", 100_000), line("b", 100_000, ',"toolCalls":[]'), USER], "b"),
        ([line("a", 500_000), line("b", 100_000), line("c", 101_000)], ""),
        ([line("a", 1_900), line("b", 10)], ""),
        (["garbage", line("a", 500_000), '{"id":"x"', line("b", 1)], "b"),
    ],
)
def test_the_newest_answer_after_a_compaction_is_its_mark(
    tmp_path: Path, lines: list[str], mark: str
) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join(lines))
    assert compacted_before(str(file)) == mark


def test_only_the_end_of_a_long_transcript_is_read(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join([line("a", 500_000), "x" * TAIL_BYTES, line("b", 1)]))
    assert compacted_before(str(file)) == ""


@pytest.mark.parametrize("path", ["", "/nowhere/chat.jsonl", "/"])
def test_a_transcript_that_cannot_be_read_shows_nothing(path: str) -> None:
    assert compacted_before(path) == ""
