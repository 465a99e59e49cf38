"""Words that `src/` does not use, and the word to use instead.

`tools/tidy.py` looks for them. It splits a name into its words (`SWEEP_MOST` becomes "sweep most") and reads
comments, strings and docstrings as they are. Add a word here when a better one replaces it everywhere.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple


class Word(NamedTuple):
    """A word that is not used."""

    pattern: str
    """A regular expression of whole words in lower case."""
    instead: str


OWN = r"(?:its|their|his|her|one's|our|your)"

# Not used at all: neither in a name nor in a text.
ANYWHERE = (
    Word(r"bids?", "denied request"),
    Word(r"fore(?:see|sees|seen|sight)", "prefetch"),
    Word(r"hast(?:e|y|ily)", "allow_stale"),
    Word(r"doubtful", "maybe_stale"),
    Word(r"bursts?", "sole writer"),
    Word(r"doorbells?", "wakeup"),
    Word(r"askers?", "requester"),
    Word(r"enlist(?:s|ed|ing)?", "ensure_session"),
    Word(r"bur(?:y|ies|ied|ying)", "reap"),
    Word(r"stomp(?:s|ed|ing)?", "overwrite"),
    Word(r"verdicts?", "finding, decision"),
    Word(r"judg(?:e|es|ed|ing|ment|ments)", "check"),
    Word(r"mend(?:s|ed|ing)?", "restore"),
    Word(r"put(?:s|ting)? aside", "salvage"),
    Word(r"in line", "in the wait queue"),
    Word(r"stand(?:s|ing)? in line", "wait in the queue"),
    Word(r"(?:give|gives|gave|given|giving) back", "release"),
    Word(r"hand(?:s|ed|ing)? in", "submit"),
    Word(r"anew", "again; renew"),
    Word(r"meanwhile", "since then, before that"),
    Word(r"so many", "the number"),
    Word(r"so long", "the duration"),
    Word(rf"of {OWN} own", "the noun"),
    Word(r"(?:ran|runs?|running) out", "expired"),
    Word(r"time is up", "expired"),
    Word(r"told|tells?|telling", "notify, report, message"),
    Word(r"circles?", "cycle"),
    Word(r"moments?", "read point; time"),
    Word(r"fold(?:s|ed|ing)?", "state"),
    Word(r"images?", "snapshot"),
    Word(r"in the way", "blocking, conflicting"),
    Word(r"clear way", "expire_blockers"),
    Word(r"meets?|meeting", "overlaps"),
    Word(r"beneath", "parent process"),
    Word(r"descents?", "process ancestors"),
    Word(r"kin", "family"),
    Word(r"twins?", "duplicate"),
    Word(r"settl(?:e|es|ed|ing)", "confirm, resolve, assign, update_readiness"),
    Word(r"which nothing", "idle"),
    Word(r"expectations?", "expected version"),
    Word(r"courte(?:sy|ous)", "fair lock"),
    Word(r"chapters?", "segment"),
    Word(r"movers?", "migrator"),
    Word(r"crowd", "batch size"),
    Word(r"(?:log|table) shapes?", "log-structured, table-based"),
    Word(r"says? of itself", "report"),
    Word(r"keep(?:s|ing)? the books|clear books", "bookkeeping"),
    Word(r"are well|is well", "passed"),
)

# Fine in a sentence, but not as a part of a name.
IN_NAMES = (
    Word(r"turns?", "fair lock"),
    Word(r"holds?", "lock"),
    Word(r"held back", "blocked_reason"),
    Word(r"alone", "exact"),
    Word(r"shut", "sealed"),
    Word(r"ears?", "subscription"),
    Word(r"rings?", "notify"),
    Word(r"places?", "location, position, path, folder"),
    Word(r"pieces?", "chunk"),
    Word(r"lacks?", "not loaded"),
    Word(r"wish(?:es)?", "ResourceCommand"),
    Word(r"let go", "ReleaseHookLocks"),
    Word(r"by caller", "as_session"),
    Word(r"followed", "has_dependents"),
    Word(r"competes?", "conflicts_with"),
)

# Old names of types and functions, as they were written.
NAMES = {
    "Acked": "AckReply",
    "Alike": "SimilarTask",
    "Beaten": "HeartbeatReply",
    "LockShown": "LockInfo",
    "Standing": "LockAt",
    "Swept": "SweepReply",
    "SessionShown": "SessionInfo",
    "shown_lock": "lock_info",
    "Lapsed": "LostHookLock",
    "Moving": "Migration",
    "Moved": "Migrated",
    "AsOf": "ReadPoint",
    "Draft": "Batch",
    "Ending": "EndReason",
    "Happening": "LoggedEvent",
    "Job": "PendingCommand",
    "Later": "NextBatch",
    "Left": "DeregisterReply",
    "Life": "ProcessState",
    "Missing": "ReadNeeded",
    "NO_MOMENT": "NO_READ_POINT",
    "Past": "TrackRecord",
    "Recall": "GetSessionMemory",
    "View": "Transaction",
    "decide": "run",
}

# Where a word stays, and why: the beginning of the path, the word, the reason.
ALLOWED = {
    ("src/coord/", "give back"): "GiveBack is a public name",
    ("src/coord/core/locks/", "fold"): "case folding of paths",
    ("src/coord/core/locks/", "folded"): "case folding of paths",
    ("src/coord/host/presets.py", "fold"): "case folding of paths",
    ("src/coord/host/links.py", "fold"): "case folding of paths",
    ("src/coord/host/links.py", "folded"): "case folding of paths",
    ("src/coord/host/words.py", "fold"): "case folding of paths",
    ("src/coord/integrations/git/", "fold"): "case folding of paths",
    ("src/coord/sdk/client/connection.py", "fold"): "case folding of paths",
    ("src/coord/integrations/hooks/hook.py", "image"): "view_image is a tool of Codex",
    ("src/coord/transports/hub/page/assets.py", "image"): "image/svg+xml is the type of a file",
    ("src/coord/integrations/hooks/hook.py", "moment"): "try again in a moment",
    ("src/coord/engine/engine.py", "moment"): "try again in a moment",
    ("src/coord/sdk/remote/", "shut"): "SHUT_RDWR is a name of the system",
    ("src/coord/sdk/worker/", "given back"): "an outcome of work, with a public value",
    ("src/coord/transports/cli/work/", "given back"): "an outcome of work, with a public value",
    ("src/coord/sdk/reports/activity.py", "holds"): "a field of the report",
}

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")

Compiled = list[tuple[re.Pattern[str], str]]


def _compiled(words: tuple[Word, ...]) -> Compiled:
    patterns = [word.pattern.replace(" ", r"\s+") for word in words]
    return [
        (re.compile(rf"(?<![a-z])(?:{pattern})(?![a-z])"), word.instead)
        for pattern, word in zip(patterns, words, strict=True)
    ]


_ANYWHERE = _compiled(ANYWHERE)
_IN_NAMES = _compiled((*ANYWHERE, *IN_NAMES))


def unused_words(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the complaint for each word of a Python file that the project does not use."""
    allowed = {word for (start, word) in ALLOWED if path.startswith(start)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line, name = token.start[0], token.string
        if token.type == tokenize.NAME:
            if name in NAMES:
                yield line, f"{name}: use {NAMES[name]}"
            if name.isupper() and "MOST" in name.split("_"):
                yield line, f"{name}: not “most”, but max"
            for _, word, instead in _found(name, _IN_NAMES):
                if word not in allowed:
                    yield line, f"{name}: not “{word}”, but {instead}"
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            for below, word, instead in _found(name, _ANYWHERE):
                if word not in allowed:
                    yield line + below, f"not “{word}”, but {instead}"


def _found(text: str, words: Compiled) -> Iterator[tuple[int, str, str]]:
    """Yield the line within the text, the word, and the word to use instead."""
    plain = _BOUNDARY.sub(" ", text).lower()
    for pattern, instead in words:
        for found in pattern.finditer(plain):
            yield plain.count("\n", 0, found.start()), " ".join(found[0].split()), instead
