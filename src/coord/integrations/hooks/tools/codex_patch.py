"""The files that a patch of Codex names.

Anything that could be a patch counts: inside a command line (`apply_patch <<'EOF' …`), quoted or cut off. A
wrong file costs one lock, a missing file could be overwritten.
"""

MARKS = ("*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:")
BEGIN = "*** Begin Patch"


def patched_files(text: str) -> tuple[str, ...]:
    """Return the files that a patch adds, changes, deletes or moves to, each once, in order."""
    if BEGIN not in text:
        return ()
    found: dict[str, None] = {}
    for line in (*text.split("\n"), *text.replace("\\n", "\n").split("\n")):
        words = line.strip()
        for mark in MARKS:
            if words.startswith(mark) and len(words) > len(mark):
                found[words[len(mark) :].strip()] = None
    return tuple(found)
