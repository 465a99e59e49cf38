"""The files that a patch in Codex's form names.

Whatever could be a patch counts: one inside a command line (`apply_patch <<'EOF' …`), one that is quoted, and
one that is cut off, since a file too many costs a lock, and one too few a stomp.
"""

MARKS = ("*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:")
BEGIN = "*** Begin Patch"


def patched_files(text: str) -> tuple[str, ...]:
    """Return the files that a patch adds, changes, deletes, or moves to, each once, in order."""
    if BEGIN not in text:
        return ()
    found: dict[str, None] = {}
    for line in (*text.split("\n"), *text.replace("\\n", "\n").split("\n")):
        words = line.strip()
        for mark in MARKS:
            if words.startswith(mark) and len(words) > len(mark):
                found[words[len(mark) :].strip()] = None
    return tuple(found)
