"""The brief as the CREW_UPDATE block of the founding documents, for leads and for specialists.

The lines are theirs, letter for letter. Sections that they do not have appear only if
there is something to say: `FOR YOU` (what blocks the session, its messages), and after its context began
again `ACTIVE DELEGATIONS` and `COORDINATION RULES` (CTX-15).

A block has at most `CHARS_MAX` characters. If there is more to say, lines go in this order: old activity,
other crew (idle agents first), own agents, the rest of the activity, delegations, rules, waits.
The health of the project and what concerns the session itself stay.
"""

from collections.abc import Callable, Collection, Sequence

import msgspec

from coord.core.brief.commands import AgentContextInfo, Brief, Health
from coord.core.sessions.commands import SessionWait
from coord.sdk.brief.activity import SHOWN_MAX, RecentEvent, clock_time, short_ids
from coord.sdk.brief.plain_text import field

CHARS_MAX = 1_500
LINE_CHARS_MAX = 240
LINES_MAX = 40
"""How many lines of agents are made; more never fit."""
MORE = "- and {} more: `coord peers`"
FILES_MAX = 3
WAITS_MAX = 3
ACTIVITY_MIN = 2
"""How many lines of activity stay until the lines of agents are cut."""
BEGIN, END = "<!-- CREW_UPDATE", "CREW_UPDATE -->"
NONE = "(none)"
FOR_YOU, DELEGATIONS, RULES_TITLE = "FOR YOU", "ACTIVE DELEGATIONS", "COORDINATION RULES"
RULES = (
    "- A file is locked while an agent edits it; an edit or command that touches it is refused.",
    "- `coord lock FILE` waits for a file, `coord unlock FILE` releases it; a commit releases what it has.",
    "- `coord send ID request TEXT` writes to an agent, `coord recv` reads answers, `coord peers` lists all.",
)


class Section(msgspec.Struct):
    """A part of the block; `more` says how many lines were cut, and `note` follows the lines."""

    title: str
    lines: list[str]
    more: str = ""
    note: str = ""
    hidden: int = 0

    @property
    def length(self) -> int:
        """How many characters it has, with the line breaks after each line."""
        return sum(map(len, self.text)) + len(self.text)

    @property
    def text(self) -> list[str]:
        """The lines as they are shown."""
        more = self.more.format(self.hidden) if self.hidden and self.more else ""
        shown = [line for line in (*self.lines, more, self.note) if line]
        return [f"== {self.title} ==", *(shown or [NONE])]


def crew_update(
    brief: Brief,
    events: Sequence[RecentEvent] = (),
    *,
    only: Collection[str] | None = None,
    rules: bool = False,
    limit: int = CHARS_MAX,
) -> str:
    """Return the brief as a CREW_UPDATE block; with `only`, of the crew just these agents.

    `rules` adds what a session needs after its context began again.
    """
    ids = short_ids([brief.session, *(each.id for each in (*brief.crew, *brief.ended))])
    sections = [*_health(brief), *_for_you(brief, ids), *_crew(brief, ids, only)]
    activity = Section("RECENT ACTIVITY", [_event(brief, ids, each) for each in events[:SHOWN_MAX]])
    sections.append(activity)
    if rules:
        sections += _after_compaction(brief, ids)
    return _fitting(sections, activity, limit)


def _fitting(sections: list[Section], activity: Section, limit: int) -> str:
    crew = [section for section in sections if section.more]
    cuts = [
        (activity, min(ACTIVITY_MIN, len(activity.lines))),
        *((section, 0) for section in reversed(crew)),
        (activity, 0),
        *((section, 0) for section in sections if section.title in (DELEGATIONS, RULES_TITLE)),
        *((section, 2) for section in sections if section.title == FOR_YOU),
    ]
    over = len(_text(sections)) - limit
    for section, minimum in cuts:
        while over > 0 and len(section.lines) > minimum:
            before = section.length
            section.lines.pop()
            section.hidden += 1
            over -= before - section.length
    return _text(sections)


def _text(sections: Sequence[Section]) -> str:
    return "\n".join((BEGIN, *(line for section in sections for line in section.text), END))


def _health(brief: Brief) -> list[Section]:
    if not brief.lead or brief.health is None:
        return []
    return [Section("PROJECT HEALTH", [health_line(brief.health, brief.now_ms), blocked_line(brief.health)])]


def health_line(health: Health, now_ms: int) -> str:
    """Return the project in one line (CTX-5)."""
    complete = f"{health.completion}% complete" if health.completion is not None else ""
    fleet = f"{health.active} active, {health.idle} idle, {health.done} done"
    decisions = ""
    if health.decisions:
        plural = "" if health.decisions == 1 else "s"
        age = _age(now_ms - health.oldest_decision_ms)
        decisions = f"⚠️ {health.decisions} decision{plural} pending ({age})"
    return f"{health.icon} {' · '.join(part for part in (complete, fleet, decisions) if part)}"


def blocked_line(health: Health) -> str:
    """Return how many tasks cannot go on."""
    blocked = f"{health.blocked_tasks} blocked task{'' if health.blocked_tasks == 1 else 's'}"
    return f"{blocked}, {health.failed_tasks} failed" if health.failed_tasks else blocked


def _age(ms: int) -> str:
    minutes = max(0, ms) // 60_000
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h"


def _for_you(brief: Brief, ids: dict[str, str]) -> list[Section]:
    lines = []
    if brief.emergencies:
        lines.append(
            f"- {_count(brief.emergencies, 'emergency message')}: edits are stopped until `coord ack`"
        )
    if brief.messages:
        lines.append(f"- {_count(brief.messages, 'message')} waiting: `coord recv`")
    lines += [_wait(wait, brief.now_ms, ids) for wait in brief.waits[:WAITS_MAX]]
    return [Section(FOR_YOU, lines)] if lines else []


def _wait(wait: SessionWait, now_ms: int, ids: dict[str, str]) -> str:
    names = _files([each.removeprefix("file:") for each in wait.resources])
    behind = ", ".join(ids.get(name, field(name)) for name in wait.behind[:FILES_MAX])
    after = f" behind {behind}" if behind else ""
    what = names or f"a task of {field(wait.project)}"
    return _cut(f"- Waiting for {what}{after} ({_age(now_ms - wait.since_ms)})")


def _crew(brief: Brief, ids: dict[str, str], only: Collection[str] | None) -> list[Section]:
    own = {member.id for member in brief.crew[: brief.own]}
    shown = [each for each in brief.crew if only is None or each.id in only]
    same = len(brief.crew) - len(shown)
    shown.sort(key=_interest)
    if brief.lead:
        mine = [each for each in shown if each.id in own]
        others = [each for each in shown if each.id not in own]
        sections = [_agents("YOUR AGENTS", mine, lambda each: _lead_line(brief, each, ids))]
        if others:
            sections.append(_agents("OTHER CREW", others, lambda each: _lead_line(brief, each, ids)))
    else:
        sections = [_agents("CURRENT CREW STATUS", shown, lambda each: _line(each, ids))]
    if same:
        sections[-1].note = f"- {_count(same, 'more agent')}: `coord brief`"
    return sections


def _agents(
    title: str, shown: Sequence[AgentContextInfo], line_of: Callable[[AgentContextInfo], str]
) -> Section:
    """Return the lines of agents, no more than can fit."""
    lines = [line_of(each) for each in shown[:LINES_MAX]]
    return Section(title, lines, MORE, hidden=len(shown) - len(lines))


def _interest(member: AgentContextInfo) -> tuple[bool, bool, bool]:
    """Sort agents by how much they matter to others: locks first, then tasks, then what they do."""
    return not member.locked_files, not member.task, member.status == "idle"


def _lead_line(brief: Brief, member: AgentContextInfo, ids: dict[str, str]) -> str:
    """Return an agent as a lead sees it (CTX-6)."""
    model = f" [{field(member.model)}]" if member.model else ""
    task = brief.descriptions.get(member.task) or member.task
    on = f", task: {field(task)}" if task else ""
    return _cut(f"- {ids[member.id]} — {field(member.role_name)}{model} — {field(member.status)}{on}")


def _line(member: AgentContextInfo, ids: dict[str, str]) -> str:
    """Return an agent as its peers see it (CTX-13)."""
    task = f"Task: {field(member.task)}" if member.task else "No task"
    locked = f", Locked: {_files(member.locked_files)}" if member.locked_files else ""
    who = f"{ids[member.id]} ({field(member.role_name)})"
    return _cut(f"- Agent {who} — {field(member.status)}, {task}{locked}")


def _event(brief: Brief, ids: dict[str, str], event: RecentEvent) -> str:
    """Return something that happened (CTX-7)."""
    known = next((each for each in (*brief.crew, *brief.ended) if each.id == event.session), None)
    role = known.role_name if known is not None else event.agent or "Agent"
    who = ids.get(event.session) or field(event.session)
    return _cut(f"- [{clock_time(event.at_ms)}] {field(role)} {who}: {event.what}")


def _after_compaction(brief: Brief, ids: dict[str, str]) -> list[Section]:
    """Return what a session needs whose context began again: its delegations, and how coord works."""
    lines = []
    for each in brief.delegations:
        to_me = each.to_session_id == brief.session
        other = each.from_session_id if to_me else each.to_session_id
        name = ids.get(other) or field(other)
        lines.append(_cut(f"- {field(each.id)} {'from' if to_me else 'to'} {name}: {field(each.what)}"))
    held = [_cut(f"- This session holds {_files(brief.locks)}.")] if brief.locks else []
    own = [f"- This is session {field(brief.session)}."] if brief.session else []
    found = [Section(DELEGATIONS, lines)] if lines else []
    return [*found, Section(RULES_TITLE, [*own, *held, *RULES])]


def _files(names: Sequence[str], most: int = FILES_MAX) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(field(name) for name in names[:most]) + more


def _cut(line: str) -> str:
    return line if len(line) <= LINE_CHARS_MAX else f"{line[: LINE_CHARS_MAX - 1]}…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
