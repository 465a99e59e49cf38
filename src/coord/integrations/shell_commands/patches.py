"""The files that a patch names."""

import re

_FILE = re.compile(r"^(?:---|\+\+\+|\*\*\*) ([^\t\n]+)", re.MULTILINE)
_GIT = re.compile(r"^(?:rename (?:from|to)|copy to) (.+)$", re.MULTILINE)
_DIFF = re.compile(r"^diff --git a/(.+) b/(.+)$", re.MULTILINE)
_INDEX = re.compile(r"^Index: (.+)$", re.MULTILINE)


def patched_files(text: str, strip: int = 1) -> list[str]:
    """Return the files that a patch changes; `strip` folders are removed, all if it is -1."""
    found = [_stripped(name.strip(), strip) for name in _FILE.findall(text) if not _is_range(name)]
    found += [_stripped(f"a/{name}", strip) for pair in _DIFF.findall(text) for name in pair]
    found += [name.strip() for name in (*_GIT.findall(text), *_INDEX.findall(text))]
    if strip < 0:  # patch looks for the base name, unless the whole path exists
        found += [re.sub(r"^[ab]/", "", name.strip()) for name in _FILE.findall(text) if not _is_range(name)]
        found += [name.strip() for name in _FILE.findall(text) if not _is_range(name)]
    return [
        name
        for name in dict.fromkeys(found)
        if name and name != "dev/null" and not name.endswith("/dev/null")
    ]


def _is_range(name: str) -> bool:
    """Whether this is `*** 1,5 ****` of a context diff."""
    return re.fullmatch(r"\d+(,\d+)? [*-]+", name.strip()) is not None


def _stripped(name: str, strip: int) -> str:
    parts = re.sub(r"/+", "/", name).split("/")
    return parts[-1] if strip < 0 else "/".join(parts[strip:]) or ("" if strip else name)
