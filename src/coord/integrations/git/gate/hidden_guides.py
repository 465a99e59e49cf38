"""Guides for agents that git ignores because of coord, although people have written rules into them."""

from coord.host.repository import Repository

GUIDES = ("CLAUDE.md", "AGENTS.md", "GEMINI.md")
BEGIN, END = "<!-- coord begin", "coord end -->"


def hidden_guides(repository: Repository) -> list[str]:
    """Return the guides that the exclude file names, and that hold more than the block of coord.

    `coord init` lets git ignore a guide that exists only for coord. As soon as a person adds a rule, that
    would hide the person's work.
    """
    _, _, ours = _read(f"{repository.commondir}/info/exclude").partition("# coord begin")
    ignored = ours.partition("# coord end")[0].splitlines()
    return [name for name in GUIDES if f"/{name}" in ignored and _has_rules(f"{repository.root}/{name}")]


def hidden_text(names: list[str]) -> str:
    """Return what is wrong, and what to do, in one line."""
    shown = " and ".join(names)
    return (
        f"git ignores {shown} for coord, but you have written into it;"
        f" run coord doctor --fix, then git add {' '.join(names)}"
    )


def _has_rules(path: str) -> bool:
    text = _read(path).strip()
    return bool(text) and not (text.startswith(BEGIN) and text.endswith(END) and text.count(END) == 1)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
