"""Plans for the settings and texts that agents read in a worktree, and for the templates of new worktrees."""

import os
import shutil
from collections.abc import Mapping, Sequence

from coord.core.errors import CoordError, Invalid, Refused
from coord.integrations.setup.changes import Planner
from coord.integrations.setup.files import Content, read_file, require_writable
from coord.integrations.setup.git_hooks import GitSetup
from coord.integrations.setup.switches import disabling_setting
from coord.integrations.setup.text import agent_docs
from coord.integrations.setup.text.marked_block import MARKDOWN, has_block, with_block, without_block
from coord.integrations.setup.tools import (
    CLAUDE,
    HttpForm,
    Tool,
    command_of,
    hooks_of,
    is_shared,
    our_hooks,
    settings_in,
    settings_of,
    with_hooks,
    without_hooks,
)


class AgentFiles:
    """Plans the settings and texts for agents in one worktree."""

    def __init__(
        self,
        planner: Planner,
        git: GitSetup,
        root: str,
        environ: Mapping[str, str],
        http: HttpForm | None = None,
    ) -> None:
        self._planner = planner
        self._git = git
        self._root = root
        self._environ = environ
        self._http = http

    def plan(self, tools: Sequence[Tool], *, shared: bool) -> None:
        """Plan all files; a tool that cannot be protected is reported, and does not stop the others."""
        names = [name for tool in tools for name in (tool.local, tool.shared, tool.guide)] + [
            agent_docs.SKILL_PATH
        ]
        tracked = self._git.tracked(self._root, names)
        for tool in tools:
            path = f"{self._root}/{tool.shared if shared else tool.local}"
            with self._planner.reporting(os.path.realpath(path), tool.name):
                self._plan_hooks(tool, tracked, shared=shared)
                if switch := disabling_setting(tool, self._root, self._environ):
                    raise Refused(
                        f"{tool.title} runs no hooks: {switch.path} sets {switch.name}",
                        hint=f"remove {switch.name} from {switch.path}",
                    )
            self._plan_guide(tool, tracked, shared=shared)
        if CLAUDE in tools and (shared or agent_docs.SKILL_PATH not in tracked):
            self._plan_skill()

    def _plan_hooks(self, tool: Tool, tracked: set[str], *, shared: bool) -> None:
        name = tool.shared if shared else tool.local
        if self._has_hooks_elsewhere(tool, shared=shared):
            return
        path = self._real(name)
        if not shared and name in tracked:
            self._planner.keep(path)
            hooks = our_hooks(settings_in(path)).get(tool.before, [])
            if not hooks:
                raise Refused(
                    f"{tool.title} gets no hooks in {self._root}: git tracks {name}",
                    hint="use coord init --shared, or coord init --user",
                )
            self._note(f"{path} already has the hooks for {tool.title}")
            self._require_program(tool, hooks[0].get("command", ""))
            return
        plan_tool_hooks(
            self._planner, path, tool, shared=shared, git_directory=self._git.commondir, http=self._http
        )
        if shared:
            self._require_program(tool, command_of(tool, shared=True))

    def _has_hooks_elsewhere(self, tool: Tool, *, shared: bool) -> bool:
        """Whether other settings that the tool reads here have our hooks."""
        elsewhere = [f"{tool.home(self._environ)}/{tool.user}"]
        if not shared and tool.shared != tool.local:
            elsewhere.append(f"{self._root}/{tool.shared}")
        for path in elsewhere:
            if self._planner.previous.find(os.path.realpath(path)) is None:
                try:
                    hooks = our_hooks(settings_in(path)).get(tool.before, [])
                except Invalid:  # the tool cannot read these settings either
                    continue
                if hooks:
                    self._note(f"{path} already has the hooks for {tool.title}")
                    self._require_program(tool, hooks[0].get("command", ""))
                    return True
        return False

    def _require_program(self, tool: Tool, command: str) -> None:
        """Raise Refused if a hook needs a `coord` that is not on the PATH."""
        if is_shared(command) and not shutil.which("coord", path=self._environ.get("PATH")):
            raise Refused(
                f"the shared hooks of {tool.title} do nothing: coord is not on the PATH",
                hint="put coord on the PATH",
            )

    def _plan_guide(self, tool: Tool, tracked: set[str], *, shared: bool) -> None:
        if not shared and tool.guide in tracked:
            self._note(
                f"git tracks {tool.guide}, and coord leaves it unchanged (coord init --shared adds to it)"
            )
            return
        try:
            plan_block(self._planner, self._real(tool.guide))
        except CoordError as error:  # it holds nobody back
            self._note(f"coord leaves {tool.guide} unchanged: {error.message}")

    def _plan_skill(self) -> None:
        try:
            path = self._real(agent_docs.SKILL_PATH)
            base = self._planner.base(path)
            require_writable(path)
        except CoordError as error:
            self._note(f"coord leaves {agent_docs.SKILL_PATH} unchanged: {error.message}")
            return
        if base is None or base.text == agent_docs.SKILL:
            self._planner.plan_file(path, "whole", Content(agent_docs.SKILL.encode()))
        else:
            self._note(f"coord leaves {agent_docs.SKILL_PATH} unchanged: somebody else wrote it")

    def _real(self, name: str) -> str:
        """Return the real path of a file; raise Invalid if it is outside of the worktree."""
        path = os.path.realpath(f"{self._root}/{name}")
        if not path.startswith(f"{self._root}/"):
            raise Invalid(
                f"{self._root}/{name} is a link to {path}, outside of the repository",
                hint="use coord init --user",
            )
        return path

    def _note(self, text: str) -> None:
        if text not in self._planner.notes:
            self._planner.notes.append(text)


def plan_templates(
    planner: Planner, git: GitSetup, tools: Sequence[Tool], http: HttpForm | None = None
) -> list[str]:
    """Plan the templates for new worktrees; return their names, which git must ignore."""
    made = {name for root in git.worktrees for name in planner.created_below(root)}
    kept: list[str] = []
    for tool in tools:
        if any(planner.has_plan_for(f"{root}/{tool.local}") for root in git.worktrees):
            path = f"{git.templates}/{tool.local}"
            plan_tool_hooks(planner, path, tool, git_directory=git.commondir, http=http)
            kept.append(tool.local)
        guides = [planner.base(os.path.realpath(f"{root}/{tool.guide}")) for root in git.worktrees]
        if tool.guide in made and not any(map(_has_rules, guides)):
            plan_block(planner, f"{git.templates}/{tool.guide}")
            kept.append(tool.guide)
        elif git.hides(planner, tool.guide):
            planner.notes.append(
                f"git no longer ignores {tool.guide}, because you have written into it: git add {tool.guide}"
            )
    if agent_docs.SKILL_PATH in made:
        planner.plan_file(
            f"{git.templates}/{agent_docs.SKILL_PATH}", "whole", Content(agent_docs.SKILL.encode())
        )
        kept.append(agent_docs.SKILL_PATH)
    return kept


def _has_rules(guide: Content | None) -> bool:
    """Whether a person has written into a guide."""
    return guide is not None and bool(without_block(guide.text, MARKDOWN).strip())


def plan_tool_hooks(
    planner: Planner,
    path: str,
    tool: Tool,
    *,
    shared: bool = False,
    git_directory: str = "",
    http: HttpForm | None = None,
) -> None:
    """Plan the hooks of a tool in one settings file."""
    base = planner.base(path) or Content(b"")
    recorded = not our_hooks(settings_of(base.text, path))
    without = base.text if recorded else without_hooks(base.text, path)
    hooks = hooks_of(tool, shared=shared, git_directory=git_directory, http=http)
    text = with_hooks(without, hooks, path)
    wanted = our_hooks(settings_of(text, path))
    if not recorded:
        if shared and our_hooks(settings_of(base.text, path)) == wanted:
            return  # others committed it
        planner.set_base(path, None if without.strip() == "{}" else base.with_text(without))
    current = read_file(path)
    if current is not None and our_hooks(settings_of(current.text, path)) == wanted:
        planner.plan_file(path, "json", current)  # others may have reordered it
    else:
        require_writable(path)
        planner.plan_file(path, "json", base.with_text(text))


def plan_block(planner: Planner, path: str) -> None:
    """Plan the block for agents in one guide."""
    base = planner.base(path) or Content(b"")
    text = with_block(base.text, agent_docs.BLOCK, MARKDOWN)
    if text != base.text and has_block(base.text, MARKDOWN):  # an older block that no journal has
        without = without_block(base.text, MARKDOWN)
        planner.set_base(path, base.with_text(without) if without.strip() else None)
    current = read_file(path)
    if current is not None and with_block(current.text, agent_docs.BLOCK, MARKDOWN) == current.text:
        planner.plan_file(path, "block", current)
    else:
        require_writable(path)
        planner.plan_file(path, "block", base.with_text(text))
