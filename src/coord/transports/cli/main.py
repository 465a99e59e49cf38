"""The `coord` program: parse the command line, run the handler, print its answer."""

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

from coord.core.errors import CoordError, Invalid
from coord.core.ids import short_repr
from coord.host.startup import begin, end, import_msgspec
from coord.transports import exit_codes
from coord.transports.cli import output
from coord.transports.cli.parser import Request, parse

Answered = output.Answer | str | int
"""The result of a handler: an answer, a plain text (help, a script), or an exit code."""


def run() -> NoReturn:
    """Run the command line of this process, and exit without Python's cleanup, which took 15 % longer."""
    begin()
    end(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (default: that of this process), and return the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    command_id = ""
    output.choose_form(_seems_to_want(words))
    try:
        request = parse(words)
        output.choose_form(_form(request))
        command_id = request.values.get("command_id", "")
        answered = _answer(request)
    except KeyboardInterrupt as error:
        answered = output.failed(exit_codes.failure(error))
    except CoordError as error:
        answered = output.failed(exit_codes.failure(error, command_id))
    except Exception as error:  # noqa: BLE001 - a bug, too, is answered as JSON
        _debug(error)
        answered = output.failed(exit_codes.failure(_folder_is_gone(error) or error))
    if isinstance(answered, int):
        return answered
    if isinstance(answered, str):
        return output.show_text(answered)
    return output.show(answered)


def _answer(request: Request) -> Answered:
    if request.wants:
        return _text(request)
    assert request.command is not None, "without a command the user wants help"
    from importlib import import_module

    from coord.transports.cli.signals import Stopped, stopping

    import_msgspec()
    from coord.transports.cli.args import Options, args_type

    module, _, function = request.command.handler.partition(":")
    handler = getattr(import_module(module), function)
    args, options = args_type(handler)(**request.values), Options(**request.options)
    try:
        with stopping():
            if not request.command.connects:
                return handler(options, args)  # type: ignore[no-any-return]
            from coord.transports.cli.connect import connected

            with connected(options, create=not request.command.reads) as client:
                return handler(client, args)  # type: ignore[no-any-return]
    except Stopped as stopped:
        return output.failed(exit_codes.Failure(128 + stopped.signum, "interrupted", str(stopped)))


def _text(request: Request) -> str:
    if request.wants == "version":
        import coord

        return f"coord {coord.__version__}\n"
    from coord.transports.cli import help as texts

    return texts.help_of(request.command, request.noun)


def _seems_to_want(words: list[str]) -> str:
    """Return the form that a line asks for, even if it cannot be parsed."""
    own = words[: words.index("--")] if "--" in words else words
    given = [word.removeprefix("-o=") for word in own if word.startswith("-o=")]
    given += [value for word, value in pairwise(own) if word == "-o"]
    given += ["json"] if "--json" in own else [os.environ.get("COORD_OUTPUT", "")]
    return next((form for form in given if form in output.FORMS), "")


def _form(request: Request) -> str:
    """Return the form that the flags or COORD_OUTPUT ask for; empty if they ask for none."""
    if request.options.get("json"):
        return "json"
    wanted: str = request.options.get("output") or os.environ.get("COORD_OUTPUT", "")
    if wanted and wanted not in output.FORMS:
        hint = f"one of {', '.join(output.FORMS)}"
        raise Invalid(f"COORD_OUTPUT: unknown value {short_repr(wanted)}", hint=hint)
    return wanted


def _folder_is_gone(error: Exception) -> CoordError | None:
    """Return the error to show if the folder of this process was deleted, which few commands survive."""
    from coord.host.repository import current_folder

    try:
        current_folder()
    except CoordError as gone:
        return gone if isinstance(error, OSError) else None
    return None


def _debug(error: Exception) -> None:
    if os.environ.get("COORD_DEBUG"):
        import traceback

        traceback.print_exception(error)


if __name__ == "__main__":
    run()
