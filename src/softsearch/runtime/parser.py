"""The parser of commands that take flags."""

import argparse
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

from softsearch.runtime.flags import add_flags, own_flags, stage_flags
from softsearch.runtime.options import KINDS, strategy_class
from softsearch.runtime.stages.chosen import core_stages, installed_stages
from softsearch.runtime.stages.stage import Stage
from softsearch.suggestions import CHOICES, did_you_mean


class Parser(argparse.ArgumentParser):
    """A parser that refuses an unknown option and suggests the nearest one; options may stand between other words.

    What installed packages add is looked for if an option is unknown, and for lists.

    Attributes:
        stages: the stages whose options it has.
    """

    stages: Sequence[type[Stage]] = ()
    _add: Callable[..., object] | None = None  # adds a flag of stages, as long as those of installed packages lack

    def add_stages(self) -> None:
        """Adds the options of stages that it does not have."""
        self._add = self.add_argument_group(
            "stages of a translation", "see docs/search.md; packages add others"
        ).add_argument
        self.stages, own = tuple(core_stages().values()), self._own_names()
        add_flags(self._add, {flag: each for flag, each in stage_flags(self.stages).items() if flag not in own})

    def _add_installed(self) -> None:
        """Adds the options of the stages of installed packages; raises ConfigError if one cannot be used."""
        if self._add is not None:
            add, self._add = self._add, None
            stages = tuple(installed_stages().values())
            self.stages = (*stages, *self.stages)
            add_flags(add, stage_flags(stages))

    def parse_args(  # type: ignore[override]  # a namespace of argparse's alone
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parses the arguments; words of one kind need not stand together: ``BUNDLE --beam 5 TEXT``."""
        return self.parse_intermixed_args(args, namespace)

    def parse_known_args(  # type: ignore[override]  # a namespace of argparse's alone
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parses the arguments and refuses unknown ones, including those of subcommands."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if _flags(unknown):
            names = self.option_names()
            if (kind := getattr(parsed, "search", None)) and kind not in KINDS:
                theirs = own_flags(strategy_class(kind))
                add_flags(self.add_argument, {flag: theirs[flag] for flag in theirs if flag not in names})
            parsed, unknown = super().parse_known_args(args, namespace)
        if flags := _flags(unknown):
            self.error(f"there is no option {flags[0]}; {did_you_mean(flags[0], self.option_names()) or 'see --help'}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if advice := did_you_mean(str(value), action.choices or (), CHOICES):
                error.message += f"; {advice}"
            raise

    def format_help(self) -> str:
        """Returns the help, with the options that installed packages add."""
        self._add_installed()
        return super().format_help()

    def print_help(self, file: Any = None) -> None:
        """Prints the help; unlike argparse's own, an output that cannot be written is an error."""
        print(self.format_help(), end="", file=file)

    def option_names(self) -> list[str]:
        """Returns the options, with one and with two dashes."""
        self._add_installed()
        return sorted(self._own_names())

    def _own_names(self) -> set[str]:
        return {name for action in self._actions for name in action.option_strings}

    def shown(self, name: str) -> str:
        """Returns how the argument of a name is typed: ``--output``, or ``BUNDLE``."""
        action = next((each for each in self._actions if each.dest == name), None)
        if action is None:
            return name
        return action.option_strings[-1] if action.option_strings else str(action.metavar or name)


def _flags(words: Sequence[str]) -> list[str]:
    """The options among words, without values."""
    typed = takewhile("--".__ne__, words)
    return [word.partition("=")[0] for word in typed if word.startswith("-")]
