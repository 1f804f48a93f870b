"""The commands of ``softsearch``: those of the core, and those that installed packages add.

A package adds one by listing a ``Command`` under the entry-point group ``softsearch.commands``, as our own extras
do in pyproject.toml. The entry points are read only where a word is not a command of the core, and to list all.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from softsearch.errors import ConfigError, summarize

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "softsearch.commands"
_OPTION = re.compile(r"[+~]*[A-Za-z_][\w.]*=")


@dataclass(frozen=True)
class Command:
    """A command: what it is called, what it does, and where its function and its options are.

    Args:
        name: as typed after ``softsearch``.
        summary: one line for lists of commands, which begins with a verb and has no full stop.
        run: ``package.module:function``, imported when the command runs. With ``key=value`` it gets the object that
            ``options`` names, or the config if its parameter is annotated as a ``DictConfig``; with ``flags`` the
            namespace of argparse; with ``nothing`` no argument.
        takes: ``key=value`` is read by Hydra, with the defaults of ``NAME.yaml`` in the folder ``configs`` next to
            the module of ``run``.
        options: for ``key=value`` the dataclass that the config is read into, for ``flags`` the function that adds the
            flags to a parser; both as ``package.module:name``.
        needs: the pip extras of softsearch, separated by commas.
        writes: the options that name what it writes: ``out`` a file, ``out/`` a folder that is replaced as a whole,
            ``out/*.txt`` files in a folder. What the other options name is read, and must not be replaced.
    """

    name: str
    summary: str
    run: str
    takes: Literal["key=value", "flags", "nothing"] = "flags"
    options: str = ""
    needs: str = ""
    writes: Sequence[str] = ()


def _lab(name: str, summary: str, module: str, options: str = "", writes: Sequence[str] = ()) -> Command:
    """A command of the lab; ``configs/NAME.yaml`` has its options."""
    options = f"softsearch.app.config.options:{options or name.capitalize()}"
    return Command(name, summary, f"softsearch.{module}:{name}", "key=value", options, "lab", writes)


def _bundle(name: str, summary: str, *writes: str) -> Command:
    """A command for exported bundles."""
    options = f"softsearch.runtime.arguments:add_{name}_options"
    return Command(
        name, summary, f"softsearch.runtime.bundle_commands:{name}", options=options, needs="cpu", writes=writes
    )


_OF_RUN = ("run_dir/*.hypotheses.txt",)
_LISTED = (
    _lab(
        "train",
        "Trains a model, tests its best checkpoint, and keeps everything in a run folder",
        "app.train.train",
        writes=_OF_RUN,
    ),
    _lab("prepare", "Prepares the data of a training, which then finds them in the cache", "app.prepare"),
    _lab(
        "count", "Counts an n-gram language model, for fusion and reranking", "app.count", "CountNGrams", writes=_OF_RUN
    ),
    _lab(
        "evaluate",
        "Translates a test set, scores one or several systems, and writes a report",
        "app.evaluate.evaluate",
        writes=("table", *_OF_RUN),
    ),
    _lab(
        "score",
        "Writes the log probabilities that models give to translations",
        "app.score",
        writes=("run_dir/scores*.tsv",),
    ),
    _lab("average", "Averages checkpoints of a run", "app.average", writes=("out",)),
    _lab("export", "Exports a checkpoint for hosts without PyTorch", "app.export", writes=("out/",)),
    _lab(
        "dictionary",
        "Makes a dictionary from the attention of a model, for unknown words",
        "app.dictionary",
        writes=("out",),
    ),
    _bundle(
        "translate",
        "Translates standard input line by line to standard output, or at a prompt",
        *("output", "alignments", "attention", "trace", "confidence"),
    ),
    _bundle("verify", "Checks every byte of a bundle, loads it and translates one token"),
    _bundle("bench", "Translates up to 1,000 lines of SRC in batches and 200 one by one, and prints how fast it was"),
    Command(
        "cache",
        "Lists, measures and clears what trainings have prepared and downloaded",
        "softsearch.app.cache:cache",
        options="softsearch.app.cache:add_options",
    ),
    Command(
        "demo",
        "Trains, evaluates, exports and translates on a generated corpus, in two minutes",
        "softsearch.app.demo:demo",
        "nothing",
        needs="lab",
    ),
    Command(
        "doctor",
        "Prints versions, devices, memory, and what is missing for which command",
        "softsearch.app.doctor:doctor",
        "nothing",
    ),
    Command(
        "new",
        "Begins a package with parts of your own",
        "softsearch.app.new:new",
        options="softsearch.app.new:add_options",
        needs="lab",
    ),
    Command("plugins", "Lists what installed packages add", "softsearch.app.doctor:plugins", "nothing", needs="lab"),
    Command(
        "completion",
        'Prints a script that completes commands and options with TAB in bash: eval "$(softsearch completion)"',
        "softsearch.runtime.completion:completion",
        "nothing",
    ),
)
CORE = {command.name: command for command in _LISTED}
SCORE_OF_BUNDLE = _bundle(
    "score", "Writes log p(TGT, end | SRC) for each line of TGT, natural log, and its tokens", "output"
)


def find(words: Sequence[str]) -> Command | None:
    """Returns the command of a command line; None if there is none of that name.

    ``score`` is the lab's if its first argument is an option, a run or a checkpoint (``softsearch score ckpt=RUN``),
    otherwise that of bundles (``softsearch score BUNDLE SRC TGT``).

    Raises:
        ConfigError: an installed package has it, but it cannot be loaded.
    """
    if words[0] == "score" and not (words[1:] and _is_of_lab(words[1])):
        return SCORE_OF_BUNDLE
    return named(words[0])


def named(name: str) -> Command | None:
    """Returns the command of a name; ``score`` is the lab's; raises as ``find``."""
    if name in CORE:
        return CORE[name]
    point = installed().get(name)
    return None if point is None else _loaded(point)


def installed() -> dict[str, "EntryPoint"]:
    """Returns the commands that installed packages add, by name, without loading them."""
    from importlib.metadata import entry_points  # takes time, and most commands are of the core

    return {point.name: point for point in entry_points(group=ENTRY_POINTS) if point.name not in CORE}


def every_command() -> Iterator[Command]:
    """Yields all commands; one that cannot be loaded says so in its summary."""
    yield from (*CORE.values(), SCORE_OF_BUNDLE)
    for name, point in installed().items():
        try:
            yield _loaded(point)
        except ConfigError as error:
            yield Command(name, str(error), point.value)


def _loaded(point: "EntryPoint") -> Command:
    package = point.dist.name if point.dist else "a package"
    try:
        command = point.load()
    except (Exception, SystemExit) as error:  # of somebody's package
        raise ConfigError(
            f"{point.name} of {package} cannot be loaded ({summarize(error)}); install {package} again"
        ) from error
    if not isinstance(command, Command) or command.name != point.name:
        raise ConfigError(f"{point.name} of {package} is {point.value}, expected a Command of that name; correct it")
    return command


def _is_of_lab(word: str) -> bool:
    return bool(_OPTION.match(word)) or word.endswith(".ckpt") or Path(word, "checkpoints").is_dir()
