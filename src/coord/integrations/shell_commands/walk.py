"""Follow a parsed line as the shell would run it: folders, variables, functions, branches, loops.

Every branch counts as run. Where two branches end in different states, both are possible from there on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from coord.integrations.shell_commands.execute import DEPTH_MAX, Executor, Stdin
from coord.integrations.shell_commands.grammar import Script, parse
from coord.integrations.shell_commands.state import Disk, Effects, State, Words
from coord.integrations.shell_commands.words import Values, expand, expand_text

if TYPE_CHECKING:
    from tree_sitter import Node

STEPS_MAX = 4000
ROUNDS_MAX = 64
_BLANK = re.compile(r"(?:[ \t\r]|\\\n)*\Z")
_DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2", "-")
_SUBSTITUTIONS = ("command_substitution", "process_substitution")
_SEQUENCES = ("program", "compound_statement", "do_group", "else_clause", "elif_clause", "ERROR")
_SKIPPED = (
    "comment",
    "heredoc_start",
    "heredoc_end",
    "heredoc_body",
    "variable_name",
    "word",
    "test_command",
)
Redirects = Sequence["Node"]


class Walker(Executor):
    """Follows the scripts of one line, and records what they do."""

    def __init__(self, disk: Disk, effects: Effects) -> None:
        super().__init__(disk, effects)
        self._steps = 0

    def run(self, text: str, state: State) -> None:
        """Follow a script."""
        script = parse(text)
        if script is None or not script.whole:
            self.effects.unknown = self.effects.strange = True
        if script is None:
            state.forget()
            return
        self._visit(script, script.root, state, None)

    def _visit(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        self._steps += 1
        if self._depth >= DEPTH_MAX or self._steps > STEPS_MAX:
            self.effects.unknown = True
            state.forget()
            return
        self._depth += 1
        try:
            getattr(self, f"_{node.type}", self._children)(script, node, state, stdin)
        finally:
            self._depth -= 1

    def _children(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        """Follow the children one after the other; one before `&` runs in a subshell."""
        if node.type in _SKIPPED:
            self._nested(script, node, state)
            return
        if node.type not in _SEQUENCES:
            self._nested(script, node, state)
            if not any(child.is_named for child in node.children):
                return
        children = node.children
        for number, child in enumerate(children):
            if not child.is_named:
                continue
            if child.type in _SUBSTITUTIONS:
                continue
            following = children[number + 1].type if number + 1 < len(children) else ""
            if following == "&":
                links = len(self.effects.links)
                self.effects.background = True
                self._visit(script, child, state.copy(), stdin)
                self.effects.unknown |= len(self.effects.links) > links
            else:
                self._visit(script, child, state, stdin)

    def _nested(self, script: Script, node: Node, state: State) -> None:
        """Follow the substitutions inside the words of a node."""
        todo = [node]
        while todo:
            each = todo.pop()
            self._steps += 1
            if self._steps > STEPS_MAX * 4:
                self.effects.unknown = True
                return
            for child in each.children:
                if child.type in _SUBSTITUTIONS:
                    self._sequence(script, child, state.copy(), None)
                elif child.child_count and child.type not in ("command", "redirected_statement"):
                    todo.append(child)

    def _sequence(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        for number, child in enumerate(node.children):
            if child.is_named:
                following = node.children[number + 1].type if number + 1 < node.child_count else ""
                self.effects.background |= following == "&"
                self._visit(script, child, state.copy() if following == "&" else state, stdin)

    def _subshell(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        self._sequence(script, node, state.copy(), stdin)

    def _command_substitution(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        self._sequence(script, node, state.copy(), stdin)

    def _list(
        self, script: Script, node: Node, state: State, stdin: Stdin, redirects: Redirects = ()
    ) -> None:
        """Follow `a && b` or `a || b`: the second part may not run."""
        left, operator, *right = node.children
        self._visit(script, left, state, stdin)
        if left.type != "command":  # a `cd` inside of it does not decide whether the whole fails
            state.failed = ()
        skipped = state.copy()
        if operator.type == "&&" and state.failed:
            skipped.folders = state.failed
            state.folders = tuple(each for each in state.folders if each not in state.failed) or state.folders
        elif operator.type == "||" and state.failed:
            skipped.folders = tuple(each for each in state.folders if each not in state.failed)
            state.folders = state.failed
        state.failed = ()
        for child in right:
            self._redirected(script, child, redirects if child is right[-1] else (), state, stdin)
        state.merge(skipped)

    def _pipeline(
        self, script: Script, node: Node, state: State, stdin: Stdin, redirects: Redirects = ()
    ) -> None:
        given, links = stdin, len(self.effects.links)
        parts = [child for child in node.children if child.is_named]
        for child in parts:
            run = state.copy()
            self._redirected(script, child, redirects if child is parts[-1] else (), run, given)
            given = self._output(script, child, state, given)
            if child is parts[-1]:
                state.merge(run)  # zsh runs the last command in this shell
        self.effects.unknown |= (
            len(self.effects.links) > links
        )  # the parts run at once: a link may come first

    def _negated_command(
        self, script: Script, node: Node, state: State, stdin: Stdin, redirects: Redirects = ()
    ) -> None:
        for child in node.children:
            if child.is_named:
                self._redirected(script, child, redirects, state, stdin)
        state.failed = ()

    def _output(self, script: Script, node: Node, state: State, stdin: Stdin) -> Stdin:
        """Return what a command prints, if the line shows it."""
        if node.type == "redirected_statement":
            text = self._given(script, node.children, state, stdin)
            body = node.child_by_field_name("body")
            return self._output(script, body, state, text) if body is not None else None
        if node.type != "command":
            return None
        words = self._words(script, node, state)
        known = [word for word in words if word is not None]
        if len(known) != len(words) or not known:
            return None
        if known == ["cat"]:
            return stdin
        if known[0] == "echo":
            rest = known[1:]
            while rest and re.fullmatch(r"-[neE]+", rest[0]):
                rest = rest[1:]
            return " ".join(rest) + "\n"
        if known[0] == "printf" and len(known) > 1:
            form, *rest = known[1:]
            form = form.replace("\\n", "\n").replace("\\0", "\0")
            if not rest and "%" not in form and "\\" not in form:
                return form
            return (
                "".join(form.replace("%s", each) for each in rest)
                if form.count("%") == 1 and "%s" in form
                else None
            )
        return None

    def _if_statement(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        """Follow all branches; each starts where the conditions left the shell."""
        skipped = state.copy()
        for child in node.children:
            if child.is_named:
                branch = child.type in ("else_clause", "elif_clause")
                run = skipped.copy() if branch else state
                self._visit(script, child, run, stdin)
                if branch:
                    state.merge(run)
                else:
                    skipped.merge(state)
        state.merge(skipped)

    def _case_statement(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        before = state.copy()
        for child in node.children:
            if child.type == "case_item":
                run = before.copy()
                for part in child.children:
                    if part.is_named and not _is_word(part):
                        self._visit(script, part, run, stdin)
                state.merge(run)
            else:
                self._nested(script, child, state)

    def _while_statement(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        """Follow the body twice: the second round shows whether it moves from folder to folder."""
        self._forget_assigned(script, node, state)
        before = state.copy()
        for child in node.children * 2:
            if child.is_named:
                self._visit(script, child, state, None)
                before.merge(state)
        if set(state.folders) - set(before.folders) or len(before.folders) > 2:
            before.folders = (None,)
        state.merge(before)

    def _c_style_for_statement(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        self._while_statement(script, node, state, stdin)

    def _for_statement(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        variable = node.child_by_field_name("variable")
        body = node.child_by_field_name("body")
        name = script.text(variable.start_byte, variable.end_byte) if variable is not None else ""
        raw = [
            child
            for number, child in enumerate(node.children)
            if node.field_name_for_child(number) == "value"
        ]
        values: Words = ()
        for child in raw:
            self._nested(script, child, state)
            values += self._expand(script.text(child.start_byte, child.end_byte), state)
        if not raw:  # `for x; do`
            values = state.arguments if state.arguments is not None else (None,)
        if body is None:
            self.effects.unknown = True
            return
        before = state.copy()
        if None in values or len(values) > ROUNDS_MAX or node.children[0].type == "select":
            self._forget_assigned(script, node, state)
            values = (*[each for each in values if each is not None][:ROUNDS_MAX], None, None)
        for value in values:
            state.variables[name] = value
            self._visit(script, body, state, None)
        state.merge(before)

    def _forget_assigned(self, script: Script, node: Node, state: State) -> None:
        """Know no variable that a loop assigns."""
        text = script.text(node.start_byte, node.end_byte)
        for name in re.findall(r"([A-Za-z_]\w*)\+?=", text):
            state.variables[name] = None

    def _function_definition(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            state.functions[script.text(name.start_byte, name.end_byte)] = ((script, body),)

    def _redirected_statement(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        self._redirected(script, body, redirects, state, stdin)
        for child in node.children:
            if child.type == "ERROR":
                self._visit(script, child, state, None)

    def _redirected(
        self, script: Script, body: Node | None, redirects: Redirects, state: State, stdin: Stdin
    ) -> None:
        """Follow a statement with its redirections.

        The grammar gives those after `a && b` or `a | b` to the whole, the shell to the last command.
        """
        if body is not None and redirects and body.type in ("list", "pipeline", "negated_command"):
            getattr(self, f"_{body.type}")(script, body, state, stdin, redirects)
            return
        given = self._given(script, redirects, state, stdin)
        extra = [
            word
            for node in redirects
            if node.type == "file_redirect"
            for word in self._redirect(script, node, state)
        ]
        if body is not None and body.type == "command":
            self._run_command(script, body, state, given, extra)
        elif body is not None:
            self._visit(script, body, state, given)
        for node in redirects:
            if node.type == "heredoc_redirect":
                self._heredoc(script, node, state, given, body)

    def _given(self, script: Script, redirects: Redirects, state: State, stdin: Stdin) -> Stdin:
        """Return what a statement reads from its redirections."""
        for child in redirects:
            if child.type == "heredoc_redirect":
                body = next((each for each in child.children if each.type == "heredoc_body"), None)
                start = next((each for each in child.children if each.type == "heredoc_start"), None)
                if body is None or start is None:
                    return None
                text = script.text(body.start_byte, body.end_byte)
                quoted = script.text(start.start_byte, start.end_byte)[:1] in ("'", '"', "\\")
                plain = quoted or not any(char in text for char in "$`\\")
                stdin = text if plain else None
            elif child.type == "herestring_redirect":
                word = script.text(child.start_byte, child.end_byte).removeprefix("<<<").strip()
                text_ = self._text(word, state)
                stdin = None if text_ is None else f"{text_}\n"
            elif child.type == "file_redirect" and child.children and child.children[0].type == "<":
                stdin = self._file_text(script, child, state)
        return stdin

    def _file_text(self, script: Script, node: Node, state: State) -> Stdin:
        where = node.child_by_field_name("destination")
        words = (
            self._expand(script.text(where.start_byte, where.end_byte), state) if where is not None else ()
        )
        (folder,) = state.folders if len(state.folders) == 1 else (None,)
        if len(words) != 1 or words[0] is None or folder is None:
            return None
        return self.disk.read(os.path.join(folder, words[0]))

    def _heredoc(self, script: Script, node: Node, state: State, stdin: Stdin, body: Node | None) -> None:
        """Follow what stands after `<<EOF` on the same line: redirections, pipes, further commands."""
        out = self._output(script, body, state, stdin) if body is not None else None
        for child in node.children:
            if child.type == "file_redirect":
                for word in self._redirect(script, child, state):
                    self.effects.unknown |= bool(word)
            elif child.type == "pipeline":
                for part in child.children:
                    if part.is_named:
                        self._visit(script, part, state.copy(), out)
                        out = None
            elif child.type == "heredoc_body":
                self._nested(script, child, state)
            elif child.is_named and child.type not in _SKIPPED:
                self._visit(script, child, state, None)

    def _redirect(self, script: Script, node: Node, state: State) -> list[str]:
        """Record the file that a redirection writes; return words behind it, which belong to the command."""
        self._nested(script, node, state)
        targets = [
            child
            for number, child in enumerate(node.children)
            if node.field_name_for_child(number) == "destination"
        ]
        texts = [script.text(child.start_byte, child.end_byte) for child in targets]
        if not texts:
            self.effects.unknown = True
            return []
        operator = script.text(node.start_byte, targets[0].start_byte).strip()
        if ">" in operator and not (operator.endswith(">&") and re.fullmatch(r"\d+-?|-", texts[0])):
            words = self._expand(texts[0], state)
            for word in words:
                if word not in _DEVICES:
                    self.effects.write(state.folders, word)
                    self.effects.acts = True
        return texts[1:]

    def _file_redirect(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        self._redirect(script, node, state)

    def _variable_assignment(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        self._nested(script, node, state)
        name, value = self._assignment(script, node, state)
        state.variables[name] = value
        if name in state.exported:
            state.exported[name] = value

    def _assignment(self, script: Script, node: Node, state: State) -> tuple[str, str | None]:
        raw = script.text(node.start_byte, node.end_byte)
        name, _, value = raw.partition("=")
        if not name.isidentifier() or value.startswith("("):
            return re.split(r"[\[+]", name)[0], None
        return name, self._text(value, state)

    def _declaration_command(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        self._nested(script, node, state)
        exports = node.children[0].type in ("export", "declare", "typeset")
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                name, value = self._assignment(script, child, state)
                state.variables[name] = value
                if exports:
                    state.exported[name] = value
            elif child.type == "variable_name":
                name = script.text(child.start_byte, child.end_byte)
                if exports and name in state.variables:
                    state.exported[name] = state.variables[name]
            elif child.is_named and "n" in script.text(child.start_byte, child.end_byte):
                self._unset(script, node, state)  # export -n

    def _unset_command(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        self._unset(script, node, state)

    def _unset(self, script: Script, node: Node, state: State) -> None:
        for child in node.children[1:]:
            name = script.text(child.start_byte, child.end_byte)
            state.functions.pop(name, None)
            state.variables[name] = None
            state.exported[name] = None

    def _command(self, script: Script, node: Node, state: State, stdin: Stdin) -> None:
        self._run_command(script, node, state, stdin, [])

    def _run_command(self, script: Script, node: Node, state: State, stdin: Stdin, extra: list[str]) -> None:
        self._nested(script, node, state)
        environ = dict(state.exported)
        for child in node.children:
            if child.type == "variable_assignment":
                name, value = self._assignment(script, child, state)
                environ[name] = value
            elif child.type == "file_redirect":
                extra = [*extra, *self._redirect(script, child, state)]
            elif child.type == "herestring_redirect":
                stdin = self._given(script, [child], state, stdin)
        words = self._words(script, node, state)
        for raw in extra:
            words += self._expand(raw, state)
        self.execute(words, environ, state, stdin)

    def _words(self, script: Script, node: Node, state: State) -> Words:
        """Return the words of a command.

        The grammar loses some escaped spaces; a gap between two words that is not blank shows that.
        """
        found: Words = ()
        raw, end = "", -1
        for child in node.children:
            if not _is_word(child) and child.type != "command_name":
                end = -1
                continue
            if end >= 0 and not _BLANK.match(script.text(end, child.start_byte)):
                return (*found, None)
            if child.start_byte == end:
                raw += script.text(child.start_byte, child.end_byte)
            else:
                found += self._expand(raw, state) if raw else ()
                raw = script.text(child.start_byte, child.end_byte)
            end = child.end_byte
        return found + self._expand(raw, state) if raw else found

    def _expand(self, raw: str, state: State) -> Words:
        found: dict[Words, None] = {}
        for folder in state.folders or (None,):
            words = expand(raw, self._values(state, folder))
            found[(None,) if words is None else tuple(words)] = None
        return next(iter(found)) if len(found) == 1 else tuple(word for words in found for word in words)

    def _text(self, raw: str, state: State) -> str | None:
        (folder,) = state.folders if len(state.folders) == 1 else (None,)
        return expand_text(raw, self._values(state, folder))

    def _values(self, state: State, folder: str | None) -> Values:
        return Values(state.variables, state.arguments, folder, self._list_folder)

    def _list_folder(self, path: str) -> Iterator[tuple[str, bool]]:
        """List a folder for a pattern; if the line has written there, what matches is unknown."""
        folder = os.path.realpath(path)
        for write in self.effects.writes:
            above = os.path.realpath(os.path.dirname(write.path))
            if folder == above or f"{folder}/".startswith(f"{above}/{os.path.basename(write.path)}/"):
                self.effects.unknown = True
        return self.disk.list_folder(path)


def _is_word(node: Node) -> bool:
    return node.type in (
        *("word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "number"),
        *(
            "simple_expansion",
            "expansion",
            "command_substitution",
            "process_substitution",
            "arithmetic_expansion",
        ),
        *("brace_expression", "extglob_pattern", "regex"),
    )
