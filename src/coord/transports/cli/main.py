"""The `coord` program: parse the command line, run the handler, print its answer."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from coord.core.errors import CoordError
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
    as_json, command_id = _seems_to_want_json(words), ""
    try:
        request = parse(words)
        command_id = request.values.get("command_id", "")
        answered = _answer(request)
    except KeyboardInterrupt as error:
        answered = output.failed(exit_codes.failure(error))
    except CoordError as error:
        answered = output.failed(exit_codes.failure(error, command_id))
    except Exception as error:  # noqa: BLE001 - a bug, too, is answered as JSON
        _debug(error)
        answered = output.failed(exit_codes.failure(error))
    if isinstance(answered, int):
        return answered
    if isinstance(answered, str):
        return output.show_text(answered)
    return output.show(answered, as_json=as_json)


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

            with connected(options) as client:
                return handler(client, args)  # type: ignore[no-any-return]
    except Stopped as stopped:
        return output.failed(exit_codes.Failure(128 + stopped.signum, "interrupted", str(stopped)))


def _text(request: Request) -> str:
    if request.wants == "version":
        import coord

        return f"coord {coord.__version__}\n"
    from coord.transports.cli import help as texts

    return texts.help_of(request.command, request.noun)


def _seems_to_want_json(words: list[str]) -> bool:
    """Return whether `--json` was given, even if the line cannot be parsed."""
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _debug(error: Exception) -> None:
    if os.environ.get("COORD_DEBUG"):
        import traceback

        traceback.print_exception(error)


if __name__ == "__main__":
    run()
