"""Entry point of commands that take flags: parser, signals, and errors in one line.

Exit codes: 0 success, 1 an error with its message on standard error, 2 wrong usage, 130 interrupted, 143 terminated.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name

import softsearch
from softsearch.commands import Command, every_command, find
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.overwriting import refuse_overwriting
from softsearch.process import discard_output, end_on_signals, how_to_install, missing_package, raise_on_signals
from softsearch.runtime.parsed_options import with_flags
from softsearch.runtime.parser import Parser
from softsearch.suggestions import COMMANDS, did_you_mean

_STALE = (
    ". The installed softsearch does not list the commands of its extras, such as serve; install it again "
    "(in a clone: make setup)"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command with ``run_command``, prints errors in one line and returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:  # closed; print would write to standard output
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - open as long as the process
    end_on_signals()
    try:
        try:
            return run_command(words)
        finally:
            _flush_output()  # before Python does, which would print a traceback on error
    except SoftsearchError as error:
        message, code = str(error), error.exit_code
        if isinstance(error, ConfigError):
            message = with_flags(message)
    except BrokenPipeError:
        return 0  # the reader closed the pipe
    except OSError as error:
        message, code = f"{error.filename or 'standard output'}: {error.strerror}; free space or choose another file", 1
    except KeyboardInterrupt:
        return 130
    print(f"softsearch: error: {message}", file=sys.stderr)
    return code


def parser_of(command: Command) -> Parser:
    """Returns the parser of a command that takes flags or no arguments."""
    parser = Parser(prog=f"softsearch {command.name}", description=f"{command.summary}.")
    if command.options:
        resolve_name(command.options)(parser)
    return parser


def run_command(words: Sequence[str]) -> int:
    """Runs a command that takes flags or no arguments, or lists all commands; returns the exit code.

    Raises:
        SoftsearchError: an input is wrong, or a package is missing.
        SystemExit: the usage is wrong, or help was requested.
    """
    command = find(words) if words and not words[0].startswith("-") else None
    if words[:1] == ["--version"]:
        print(f"softsearch {softsearch.__version__}")
        return 0
    if command is None:
        _help(words)
        return 0
    try:
        parser = parser_of(command)
        arguments = parser.parse_args(words[1:])
        refuse_overwriting(vars(arguments), command.writes, parser.shown, text=False)
        function = resolve_name(command.run)
        raise_on_signals(ctrl_c_exits=True)
        return function(*[arguments] * (command.takes == "flags")) or 0
    except ModuleNotFoundError as error:
        raise SoftsearchError(missing_package(command, error)) from error


def _help(words: Sequence[str]) -> None:
    """Handles words without a command: prints all commands, and exits."""
    every = list(every_command())
    parser = Parser(
        prog="softsearch",
        description="Train, evaluate and deploy translation models.\n"
        + _listed(f"commands with key=value options ({how_to_install('lab')})", every, "key=value")
        + _listed("commands with flags", every, "flags", "nothing")
        + "\nsoftsearch COMMAND --help explains the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    parser.add_argument("command", metavar="COMMAND", help="and its options")
    typed = parser.parse_args(words[:1]).command
    stale = "" if any(command.run.startswith("softsearch.extras") for command in every) else _STALE
    advice = did_you_mean(typed, {command.name for command in every}, COMMANDS)
    end = " " if advice.endswith("?") else "; "
    parser.error(f"there is no command {typed!r}; {f'{advice}{end}' * bool(advice)}softsearch --help lists all{stale}")


def _listed(title: str, every: Sequence[Command], *takes: str) -> str:
    lines = (f"  {c.name:12}{c.summary[0].lower()}{c.summary[1:]}\n" for c in every if c.takes in takes)
    return f"\n{title}:\n{''.join(lines)}"


def _flush_output() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        discard_output()
        raise


if __name__ == "__main__":
    sys.exit(main())
