"""What `coord top` shows and what keys do to it, without a terminal: keys go in, lines come out."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from coord.core.errors import CoordError
from coord.core.messages.quoting import visible
from coord.sdk.client.client import Client
from coord.transports.cli.table import cells_wide, fitted, table_lines, wrapped
from coord.transports.cli.top import actions
from coord.transports.cli.top.actions import Action, Unable
from coord.transports.cli.top.details import current, details
from coord.transports.cli.top.keys import Key
from coord.transports.cli.top.sections import NAMES, SORTS, Item, Section, sections, title
from coord.transports.cli.top.snapshot import Snapshot

COLUMNS_MIN, LINES_MIN = 20, 5
"""A smaller terminal shows one line that says so."""
TEXT_MAX = 500
"""The most characters of a text that is typed here."""
SCROLL_MAX = 10**6
"""Beyond the end of every text; drawing it corrects that."""
MARK, NO_MARK = "> ", "  "
REVERSE, BOLD, PLAIN = "\x1b[7m", "\x1b[1m", "\x1b[0m"
NOTE_LINES = 2
"""The most lines of a command or of an answer at the bottom."""
AGREE = "y runs it, any other key does not"
KEYS = "q quit · ? keys · j/k · enter open · / filter · r release · s steal · m write"
KEYS_OF_DETAILS = "q quit · esc back · j/k scroll · r release · s steal · m write"
HELP = (
    "KEYS",
    "   j k, arrows  next and previous row; page up, page down; g G first, last",
    "   tab          next section; : and its name (needs, agents, locks, queue, events)",
    "   /            show only rows with these words; esc shows all again",
    "   enter        open a row: everything about it, and why it waits",
    "   esc          back",
    "   r            release your lock or task; that of others for a reason",
    "   s            steal a lock or a task in work, for a reason that is recorded",
    "   m            write to the session of a row, or answer a message",
    "   a            acknowledge a message",
    "   t            retry a task that failed",
    "   o            order of agents and locks: name, state, time",
    "   q            quit",
    "",
    "The last lines show the coord command of an action before it runs.",
)


class Prompt(NamedTuple):
    """A line that the user types, or a question to agree to; `ask` shows what it leads to."""

    label: str
    text: str = ""
    action: Action | None = None
    agree: bool = False


class TopView:
    """The rows of a snapshot, the selected one, and what is open above them."""

    def __init__(self, client: Client, sort: str, options: list[str], shown: Callable[[str], str]) -> None:
        """`options`: the global flags of shown commands; `shown` makes a text fit for the terminal."""
        self._client = client
        self._sort = sort
        self._options = options
        self._fit_for_terminal = shown
        self._filter = ""
        self._selected: tuple[str, str] | None = None
        self._at = 0
        self._scroll = 0
        self._page = 10
        self._prompt: Prompt | None = None
        self._opened: Item | None = None
        self._text: tuple[str, ...] = ()
        self._help = False
        self._found: list[Section] = []
        self.taken: Snapshot | None = None
        self.note = ""
        """What the last action said; the next key removes it."""
        self.problem = ""
        """Why the store cannot be read at present."""

    # What is read and run.

    def use(self, taken: Snapshot) -> None:
        """Show another snapshot."""
        self.taken, self.problem = taken, ""
        if self._opened is not None:
            self._opened = self._opened._replace(about=current(taken, self._opened))
            self._read_details(self._opened)

    def _read_details(self, item: Item) -> None:
        assert self.taken is not None, "rows come from a snapshot"
        try:
            self._text = tuple(details(self._client, self.taken, item, self._options))
        except CoordError as error:
            self._text = (str(error),)

    # Keys.

    def press(self, key: Key) -> Action | bool | None:
        """Act on a key; return an action to run, False to quit, or None."""
        self.note = ""
        self._find(time.monotonic())  # several keys may come before the next frame
        if self._prompt is not None:
            return self._type(self._prompt, key)
        if key.name == "q":
            return False
        if key.name in _MOVES:
            self._move(key.name)
        elif self._help:
            self._help, self._scroll = False, 0
        elif key.name == "escape":
            self._back()
        elif key.name == "?":
            self._help, self._scroll = True, 0
        elif key.name in actions.BY_KEY:
            return self._begin(key.name)
        elif self._opened is None:
            self._press_in_list(key)
        return None

    def _press_in_list(self, key: Key) -> None:
        if key.name == "/":
            self._prompt = Prompt("/", self._filter)
        elif key.name == ":":
            self._prompt = Prompt(":")
        elif key.name == "o":
            self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
            self.note = f"agents and locks by {self._sort}"
        elif key.name == "enter" and (item := self._item()) is not None:
            self._opened, self._scroll = item, 0
            self._read_details(item)

    def _back(self) -> None:
        if self._opened is not None:
            self._opened, self._scroll = None, 0
        else:
            self._filter = ""

    def _move(self, name: str) -> None:
        steps = {"page up": -self._page, "page down": self._page, "up": -1, "k": -1}
        step = steps.get(name, 1)
        if self._help or self._opened is not None:
            last = SCROLL_MAX
            self._scroll = max(0, {"g": 0, "home": 0, "G": last, "end": last}.get(name, self._scroll + step))
            return
        items = self._items()
        if name in ("tab", "back tab"):
            firsts = [item.identity for section in self._found for item in section.items[:1]]
            positions = [at for at, item in enumerate(items) if item.identity in firsts]
            later = [at for at in positions if at > self._at] or positions[:1]
            earlier = [at for at in positions if at < self._at] or positions[-1:]
            self._select((later[0] if name == "tab" else earlier[-1]) if positions else 0)
            return
        ends = {"g": 0, "home": 0, "G": len(items) - 1, "end": len(items) - 1}
        self._select(ends.get(name, self._at + step))

    def _select(self, at: int) -> None:
        items = self._items()
        self._at = max(0, min(at, len(items) - 1))
        self._selected = items[self._at].identity if items else None

    def _items(self) -> list[Item]:
        return [item for section in self._found for item in section.items]

    def _item(self) -> Item | None:
        items = self._items()
        return items[self._at] if self._at < len(items) else None

    # Actions.

    def _begin(self, name: str) -> Action | None:
        """Ask for what an action needs; return it if it needs nothing."""
        item = self._opened or self._item()
        if item is None or self.taken is None:
            return None
        if item.about is None:
            self.note = f"{item.kind} {item.key} has ended"
            return None
        found = actions.BY_KEY[name](self._client, self.taken, item)
        if isinstance(found, Unable):
            self.note = found.why
        elif found.asks:
            self._prompt = Prompt(f"{found.what}; {found.asks}: ", action=found)
        elif not found.confirms:
            return found
        else:
            self._prompt = Prompt(f"{found.what}? {AGREE}", action=found, agree=True)
        return None

    def _type(self, prompt: Prompt, key: Key) -> Action | None:
        if prompt.agree:
            self._prompt = None
            if key.name == "y" and prompt.action is not None:
                return prompt.action._replace(commands=_fixed(prompt.action, prompt.text))
            self.note = "nothing was done"
            return None
        if key.name == "escape":
            self._prompt = None
            self._filter = "" if prompt.label == "/" else self._filter
            return None
        if key.name == "enter":
            return self._enter(prompt)
        text = prompt.text
        if key.name == "backspace":
            text = text[:-1]
        elif key.name == "clear":
            text = ""
        else:
            text = (text + key.text)[:TEXT_MAX]
        self._prompt = prompt._replace(text=text)
        if prompt.label == "/":
            self._filter, self._at, self._selected = text, 0, None
        return None

    def _enter(self, prompt: Prompt) -> Action | None:
        """End a line that was typed."""
        self._prompt = None
        if prompt.label == ":":
            self._jump(prompt.text.strip().lower())
        action = prompt.action
        if action is None:
            return None
        text = prompt.text.strip()
        if not text:
            self.note = f"nothing was done: the {action.asks} is empty"
            return None
        if not action.confirms:
            return action._replace(commands=_fixed(action, text))
        self._prompt = Prompt(f"{action.what}? {AGREE}", text, action, agree=True)
        return None

    def _jump(self, name: str) -> None:
        """Select the first row of the section whose name begins so."""
        at = 0
        for section in self._found:
            if name and section.name.startswith(name):
                if section.items:
                    self._select(at)
                else:
                    self.note = f"{section.name}: none"
                return
            at += len(section.items)
        self.note = f"no section {visible(name)}: {', '.join(NAMES)}"

    def command(self, action: Action, text: str = "") -> str:
        """Return the command line of an action, as somebody would type it."""
        return actions.shown(action.commands(text), self._options)

    # Lines.

    def lines(self, columns: int, height: int, now: float, *, colours: bool) -> list[str]:
        """Return the lines of the whole screen."""
        assert self.taken is not None, "something was read"
        if columns < COLUMNS_MIN or height < LINES_MIN:
            text = f"{columns}x{height} is too small: {COLUMNS_MIN}x{LINES_MIN} at least, or coord dashboard"
            return ([_cut(text, columns)] + [""] * height)[:height]
        foot = self._foot(columns)
        room = height - 1 - len(foot)
        self._page = max(1, room - 2)
        self._find(now)
        head = self._line(self.problem or title(self.taken), columns)
        if self._help:
            body = self._scrolled(self._wrapped(HELP, columns), room)
        elif self._opened is not None:
            body = self._scrolled(self._wrapped(self._text, columns), room)
        else:
            body = self._list(columns, room, colours)
        body += [""] * (room - len(body))
        shown = [head, *body, *foot]
        return [f"{BOLD}{head}{PLAIN}", *shown[1:]] if colours else shown

    def _find(self, now: float) -> None:
        """Make the sections, and find the selected row in them again."""
        assert self.taken is not None
        self._found = sections(self.taken, sort=self._sort, now=now, words=self._filter)
        items = self._items()
        positions = [at for at, item in enumerate(items) if item.identity == self._selected]
        if self._at not in positions:  # a row may be in two sections
            self._select(positions[0] if positions else self._at)

    def _list(self, columns: int, room: int, colours: bool) -> list[str]:
        lines: list[str] = []
        owner: list[int] = []
        first = 0
        for section in self._found:
            lines += ["", self._line(_heading(section, self._filter), columns)]
            owner += [-1, -1]
            rows = [{name: self._cell(value) for name, value in item.row.items()} for item in section.items]
            found = table_lines(rows, section.columns, columns - len(MARK), colours=colours, wraps=False)
            for number, text in found:
                here = number >= 0 and first + number == self._at
                lines.append(_marked(text, here, colours))
                owner.append(first + number if number >= 0 else -1)
            first += len(rows)
        self._keep_in_sight(owner[1:], room)
        return lines[1:][self._scroll : self._scroll + room]

    def _keep_in_sight(self, owner: list[int], room: int) -> None:
        """Scroll as little as shows the selected row, with its heading if it is the first."""
        mine = [at for at, each in enumerate(owner) if each == self._at]
        if mine:
            top = mine[0]
            while top > 0 and owner[top - 1] == -1 and mine[-1] - top + 1 < room:
                top -= 1
            self._scroll = min(self._scroll, top)
            self._scroll = max(self._scroll, min(mine[-1] - room + 1, mine[0]))
        self._scroll = max(0, min(self._scroll, len(owner) - room))

    def _scrolled(self, lines: list[str], room: int) -> list[str]:
        self._scroll = max(0, min(self._scroll, len(lines) - room))
        return lines[self._scroll : self._scroll + room]

    def _foot(self, columns: int) -> list[str]:
        """Return the last two lines: a prompt with its command, or what was said and the keys."""
        prompt = self._prompt
        if prompt is None:
            keys = KEYS if self._opened is None else KEYS_OF_DETAILS
            said = self.note or (f"/{self._filter}" if self._filter and self._opened is None else "")
            return [*self._shortened(said.split("\n"), columns), self._line(keys, columns)]
        if prompt.action is None:
            return [self._line("enter ends it · esc leaves", columns), self._typed(prompt, columns)]
        command = self._shortened([f"$ {self.command(prompt.action, prompt.text)}"], columns)
        asked = self._line(prompt.label, columns) if prompt.agree else self._typed(prompt, columns)
        return [*command, asked]

    def _shortened(self, texts: list[str], columns: int) -> list[str]:
        """Return each text in a few lines at most, with its beginning."""
        lines: list[str] = []
        for text in texts:
            parts = self._wrapped((text,), columns)
            lines += parts[:NOTE_LINES]
            if len(parts) > NOTE_LINES:
                lines[-1] = _cut(
                    f"{lines[-1]} …" if cells_wide(lines[-1]) + 2 <= columns else f"{lines[-1]}…", columns
                )
        return lines

    def _typed(self, prompt: Prompt, columns: int) -> str:
        """Return a line that is typed, with its end in sight."""
        label, text = self._safe(prompt.label), f"{self._safe(prompt.text)}_"
        while cells_wide(label) + cells_wide(text) > columns and len(label) > 1:
            label = label[1:]
        while cells_wide(label) + cells_wide(text) > columns:
            text = text[1:]
        return label + text

    def _line(self, text: str, columns: int) -> str:
        return _cut(self._safe(text), columns)

    def _wrapped(self, lines: tuple[str, ...], columns: int) -> list[str]:
        return [part.rstrip() for line in lines for part in wrapped(self._safe(line), columns)]

    def _safe(self, text: str) -> str:
        """Return a text that controls no terminal, and that this one can show."""
        return self._fit_for_terminal(visible(text))

    def _cell(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._safe(value)
        return [self._safe(str(each)) for each in value] if isinstance(value, list) else value


def _fixed(action: Action, text: str) -> Callable[[str], list[list[str]]]:
    commands = action.commands(text)
    return lambda _: commands


def _heading(section: Section, words: str) -> str:
    shown = len(section.items)
    if not section.total:
        return f"{section.title}: none"
    if shown == section.total:
        return f"{section.title} ({shown})"
    return f"{section.title} ({shown} of {section.total}{', filtered' if words else ''})"


def _marked(text: str, selected: bool, colours: bool) -> str:
    if not selected:
        return NO_MARK + text
    if not colours:
        return MARK + text
    # A colour in the row would end the reverse video.
    return f"{REVERSE}{MARK}{text.replace(PLAIN, PLAIN + REVERSE)}{PLAIN}"


def _cut(text: str, columns: int) -> str:
    return fitted(text, columns).rstrip() if columns > 1 else text[:columns]


_MOVES = frozenset(
    ("j", "k", "g", "G", "up", "down", "page up", "page down", "home", "end", "tab", "back tab")
)
