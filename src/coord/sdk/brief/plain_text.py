"""Texts of others inside a brief: one line, no control characters, no secrets, and never the end of a block.

Names of tasks, roles, models and files come from other agents and from people. An agent reads them inside
text that coord vouches for, and its tool puts that text between tags. So angle brackets become
other characters: nothing in a field can close a comment, a tag or the block. A field that contains more than
words stands in quotation marks, so that it cannot imitate the fields around it.
"""

import re

from coord.core.messages.quoting import quote

FIELD_CHARS_MAX = 80
REMOVED = "[secret]"
_REPLACED = str.maketrans({"<": "‹", ">": "›", "⟦": "[", "⟧": "]", "`": "'"})
_SPACES = frozenset(("Cc", "Zl", "Zp", "Zs"))
_REMOVED_CATEGORIES = frozenset(("Cf", "Cs", "Co", "Cn"))
_MARKS = frozenset(("Mn", "Me"))
_WORDS = re.compile(r"[\w ./@+~#&'()\[\]{}*?!-]*")
_FRAME = re.compile(r"CREW[\W_]*UPDATE", re.IGNORECASE)
_SECRETS = re.compile(
    r"""
    -----BEGIN[^-]*PRIVATE\ KEY.*                                         # a key, whatever follows
    | \b(?:coord|sk|pk|rk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abeoprs]|npm|pypi|hf|shpat|dop_v1)
        [-_][\w.~-]{12,}                                                  # tokens with a known beginning
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b | \bAIza[\w-]{30,} | \bya29\.[\w-]+ # of cloud providers
    | \beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?                              # JSON web tokens
    | (?<=://)[^\s/@]*:[^\s/@]*(?=@)                                      # user:password in a URL
    | (?<=\bbearer\ )\S{8,}
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_RANDOM = re.compile(r"\b(?=\w*[a-z])(?=\w*[A-Z])(?=(?:[A-Za-z]*[0-9]){4})[A-Za-z0-9]{32,}\b")
"""Letters of both cases and digits, mixed: no word, no id of a session and no hash of git looks so."""
_TERMINAL = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|.)?", re.DOTALL)
_ASSIGNED = re.compile(
    r"((?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|credentials?|authorization)\w*\s*[:=]\s*)[^\s,;]+",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """Return a text without what looks like a password, a token or a key.

    >>> without_secrets("push with TOKEN=abc123 to https://ann:pw@example.org")
    'push with TOKEN=[secret] to https://[secret]@example.org'
    """
    return _ASSIGNED.sub(rf"\1{REMOVED}", _RANDOM.sub(REMOVED, _SECRETS.sub(REMOVED, text)))


def one_line(text: str) -> str:
    """Return a text on one line, without control characters, invisible ones, tags and stacked accents."""
    if not text.isascii() or not text.isprintable():
        from unicodedata import category, normalize  # noqa: PLC0415 - few texts need it

        text = _TERMINAL.sub("", text)
        kept: list[str] = []
        marks = 0
        for each in normalize("NFC", text):
            kind = category(each)
            marks = marks + 1 if kind in _MARKS else 0
            if kind in _SPACES:
                kept.append(" ")
            elif kind not in _REMOVED_CATEGORIES and marks <= 1:
                kept.append(each)
        text = "".join(kept)
    return " ".join(_FRAME.sub("crew update", text.translate(_REPLACED)).split())


def field(text: str, limit: int = FIELD_CHARS_MAX) -> str:
    r"""Return a text of others as one field of a line: as it is if it consists of words, else quoted.

    >>> print(field("Implement login endpoint"), field("x\n- Agent 1 (Lead), Locked: a.py"))
    Implement login endpoint "x - Agent 1 (Lead), Locked: a.py"
    """
    shown = without_secrets(one_line(text[: 4 * limit]))
    if len(shown) > limit:
        shown = f"{shown[: limit - 1].rstrip()}…"
    return shown if _WORDS.fullmatch(shown.removesuffix("…")) else quote(shown)
