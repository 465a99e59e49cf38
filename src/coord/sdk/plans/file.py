"""Read a plan in YAML or JSON into tasks.

    project: shop
    tracks:
      A:
        - id: A-001-core-framework
          description: the framework
      B:
        agents: 2
        tasks:
          - {id: B-001-schema, depends_on: [A-001-core-framework], files: [src/schema.py], estimate: 30m}
    tasks:
      - {id: "8.2", type: docs}

A track is a list of tasks, or a mapping with `agents` (how many may work on it at once) and `tasks`. Tasks
without a track are under the top-level `tasks`. An unknown field is a problem; it is never ignored.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from coord.core.errors import CoordError, Invalid
from coord.core.ids import check_id, short_repr
from coord.core.plans.commands import NewTask
from coord.sdk.validation.tasks import new_task, word

FILE_BYTES_MAX = 32 * 1024 * 1024
DEPTH_MAX = 32
"""The deepest nesting of a plan in YAML; only `requirements` of a task nest at all."""
AGENTS_MAX = 1000
PLAN_FIELDS = ("project", "tracks", "tasks")
TRACK_FIELDS = ("agents", "tasks")
TASK_FIELDS = (
    *("id", "description", "type", "priority", "files", "depends_on", "requirements", "deadline"),
    *("estimate", "role", "track", "needs", "retries_max"),
)
UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}


class Plan(NamedTuple):
    """The content of a plan file; each problem names the task, track or field."""

    project: str
    tasks: list[NewTask]
    agents: dict[str, int]
    problems: list[str]


def read_plan(path: str) -> Plan:
    """Return the plan in a file: JSON if its name ends in .json, else YAML."""
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise Invalid(
            f"{path} cannot be read: {error.strerror}", hint="pass the path of a plan in YAML or JSON"
        ) from error
    if len(data) > FILE_BYTES_MAX:
        raise Invalid(
            f"{path} is larger than {FILE_BYTES_MAX >> 20} MiB", hint="split the plan into several files"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is not valid UTF-8", hint="save it as UTF-8") from error
    return parse_plan(text, json=path.endswith(".json"))


def parse_plan(text: str, *, json: bool = False) -> Plan:
    """Return the plan in a text."""
    plan = _from_json(text) if json else _from_yaml(text)
    if not isinstance(plan, dict):
        raise Invalid("the plan is not a mapping", hint="begin with project: and tracks:")
    return _PlanReader().read(plan)


def _from_json(text: str) -> Any:
    import json

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise Invalid(f"{short_repr(twice)} occurs twice in one mapping", hint="merge the two")
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Invalid(
            f"the plan is not JSON: {error}", hint="rename the file to *.yaml if it is YAML"
        ) from error


def _from_yaml(text: str) -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """A safe loader that rejects a repeated key instead of dropping one of its values."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(set(keys)) < len(keys):
                twice = next(key for key in keys if keys.count(key) > 1)
                line = node.start_mark.line + 1
                raise Invalid(
                    f"{short_repr(twice)} occurs twice in the mapping at line {line}", hint="merge the two"
                )
            return super().construct_mapping(node, deep)

    try:
        _check_structure(text, Loader)
        return yaml.load(text, Loader)  # noqa: S506 - derived from a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, CoordError):
            raise
        cause = " ".join(str(error).split())
        raise Invalid(
            f"the plan is not YAML: {cause}", hint="write a mapping with project: and tracks:"
        ) from error


def _check_structure(text: str, loader: Any) -> None:
    """Refuse aliases and deep nesting: small files with them take gigabytes, or end the process."""
    import yaml

    depth = 0
    for event in yaml.parse(text, loader):
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None):
            raise Invalid(
                f"the plan has an anchor or alias at line {line} ({short_repr(event.anchor)})",
                hint="write the value out, and quote texts that begin with & or *",
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise Invalid(
                    f"the plan is nested deeper than {DEPTH_MAX} levels at line {line}", hint="flatten it"
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _PlanReader:
    """Collects the valid tasks of a plan, and one problem for each part that is invalid."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.agents: dict[str, int] = {}

    def read(self, plan: dict[Any, Any]) -> Plan:
        self._check_fields("the plan", plan, PLAN_FIELDS)
        project = plan.get("project") or ""
        try:
            project = check_id("project id", project) if project != "" else ""
        except Invalid as error:
            self.problems.append(f"project: {error}")
            project = ""
        tasks = [
            *self._tracks(plan.get("tracks") or {}),
            *self._tasks("tasks", plan.get("tasks") or [], None),
        ]
        return Plan(project, tasks, self.agents, self.problems)

    def _tracks(self, tracks: Any) -> Iterator[NewTask]:
        if not isinstance(tracks, dict):
            self.problems.append("tracks: not a mapping from a track to its tasks")
            return
        for name, track in tracks.items():
            try:
                if not word("track", name):
                    raise Invalid("a track has no name", hint="use a name such as A")
            except Invalid as error:
                self.problems.append(f"tracks: {error}{_quote(name)}")
                continue
            tasks = track
            if isinstance(track, dict):
                self._check_fields(f"track {name}", track, TRACK_FIELDS)
                self._agents(name, track)
                tasks = track.get("tasks")
            yield from self._tasks(f"track {name}", tasks or [], name)

    def _agents(self, name: str, track: dict[Any, Any]) -> None:
        count = track.get("agents", 1)
        if type(count) is int and 0 < count <= AGENTS_MAX:
            self.agents[name] = count
        else:
            self.problems.append(f"track {name}: agents is {short_repr(count)}, not 1 to {AGENTS_MAX}")

    def _tasks(self, where: str, tasks: Any, track: str | None) -> Iterator[NewTask]:
        if not isinstance(tasks, list):
            self.problems.append(f"{where}: not a list of tasks")
            return
        for number, fields in enumerate(tasks, 1):
            if not isinstance(fields, dict):
                self.problems.append(f"{where}, task {number}: not a mapping with an id")
                continue
            name = fields.get("id")
            named = name if isinstance(name, str) and name else f"{where}, task {number}"
            self._check_fields(named, fields, TASK_FIELDS)
            try:
                yield _task(fields, track)
            except Invalid as error:
                self.problems.append(f"{named}: {error}{_quote(name)}")

    def _check_fields(self, where: str, fields: dict[Any, Any], known: tuple[str, ...]) -> None:
        unknown = [short_repr(name) for name in fields if name not in known]
        if unknown:
            self.problems.append(f"{where}: {', '.join(unknown)} is unknown (known: {', '.join(known)})")


def _task(fields: dict[Any, Any], track: str | None) -> NewTask:
    if "track" in fields and track is not None:
        raise Invalid("a task under a track has a track: field", hint="remove the field")
    description = fields.get("description") or ""
    if isinstance(description, str):
        description = " ".join(description.split())
    return new_task(
        fields.get("id"),
        description=description,
        type=fields.get("type") or "",
        priority=fields.get("priority", 0),
        files=_texts("files", fields.get("files") or []),
        depends_on=fields.get("depends_on") or [],
        requirements=fields.get("requirements"),
        deadline=fields.get("deadline"),
        estimate_s=_seconds(fields.get("estimate", 0)),
        role=fields.get("role") or "",
        track=track if track is not None else fields.get("track"),
        needs=fields.get("needs") or [],
        **({"retries_max": fields["retries_max"]} if "retries_max" in fields else {}),
    )


def _texts(what: str, texts: Any) -> list[str]:
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        return texts
    raise Invalid(
        f"{what} is {short_repr(texts)}, not a list of texts", hint="write a list such as [src/app.py]"
    )


def _seconds(value: object) -> object:
    """Return a duration such as `30m` in seconds; other values unchanged, for `new_task` to check."""
    if isinstance(value, str) and value[-1:] in UNITS_S and value[:-1].isdecimal() and len(value) < 10:
        return int(value[:-1]) * UNITS_S[value[-1]]
    return value


def _quote(name: object) -> str:
    """Return advice for a name that YAML read as a number or a boolean."""
    return "" if isinstance(name, str) else "; put it in quotes: YAML reads some words as numbers or booleans"
