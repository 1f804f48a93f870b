"""Trainings of claims, each in a folder named by the hash of its config, so that claims share them."""

import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.app.cache import cache_folder
from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import composed, quoted
from softsearch.app.config.validation import check, plain
from softsearch.app.console import progress
from softsearch.app.results import METRICS, read_metrics
from softsearch.app.train.parts import RUNTIME_ARGUMENTS, is_counted
from softsearch.app.train_process import COUNT, OUTPUT, last_lines, logged_values, training
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.extras.claims.claim import Plan
from softsearch.extras.claims.made_files import made_file, without_root
from softsearch.extras.claims.measures import digest
from softsearch.extras.claims.options import Trainings

log = logging.getLogger(__name__)
_POLL = 1.0  # seconds between two polls of a training
_PLACES = ("run_dir", "cache_dir", "name", "logger", "resume", "overwrite", "trust")  # these do not change the result


@dataclass(frozen=True)
class Training:
    """A training of a run with one seed."""

    run: str
    seed: int
    overrides: tuple[str, ...]
    folder: Path
    steps: int
    is_counted: bool = False  # made by softsearch count

    @property
    def finished(self) -> bool:
        """Tells whether it has been tested, which is the last step of a training."""
        return (self.folder / METRICS).is_file()

    @property
    def command(self) -> str:
        """Returns the command to train it separately."""
        program, again = ("count", "overwrite=true") if self.is_counted else ("train", "resume=auto")
        folder = quoted(str(self.folder))
        return shlex.join(["softsearch", program, *self.overrides, f"hydra.run.dir={folder}", again])


def trainings(claim: Plan, options: Trainings) -> list[Training]:
    """Returns the trainings of a claim, or of another plan, with checked configs.

    Raises:
        ConfigError: a run has a wrong option.
    """
    with_cache = [] if options.cache_dir == cache_folder() else [f"cache_dir='{options.cache_dir}'"]
    found: list[Training] = []
    for run in claim.runs:
        found += _trainings(run, claim, options, with_cache, {(each.run, each.seed): each.folder for each in found})
    return found


def _trainings(
    run: str, claim: Plan, options: Trainings, further: Sequence[str], earlier: Mapping[tuple[str, int], Path]
) -> Iterator[Training]:
    """Yields a run with every seed; an earlier run named by ``init`` has the same seed."""
    overrides = [*claim.common, *claim.sizes, *claim.runs[run], *options.overrides]
    try:
        config = composed("train", *overrides, "name=NAME", "run_dir=RUN", "cache_dir=CACHE")
        init = config.init.ckpt
        if init in claim.runs and (init, claim.seeds[0]) not in earlier:
            raise ConfigError(f"init.ckpt is {init}, a later run; expected an earlier one, change their order")
        made: list[str] = []
        for side, name in config.vectors.items():
            if name in claim.files:
                path = made_file(name, claim.files, options)
                made.append(f"vectors.{side}='{path}'")
                config.vectors[side] = path.name  # has the hash of its options: its folder does not change the result
        for seed in claim.seeds:
            config.seed = seed
            start = [f"init.ckpt='{earlier[init, seed]}'"] if init in claim.runs else []
            if start:
                config.init.ckpt = earlier[
                    init, seed
                ].name  # has the hash of its config: its folder does not change the result
            values = plain(config)
            for name, node in values.items():
                check(node, name, given=RUNTIME_ARGUMENTS.get(name, ()))
            roots = [f"{each}.root='{options.multi30k}'" for each in without_root(values, options.multi30k)]
            key = digest({name: node for name, node in values.items() if name not in _PLACES})
            own = [*overrides, *made, *start, f"seed={seed}", f"name={run}", *roots, *further]
            counted = is_counted(config.model)
            steps = 0 if counted else max(0, int(config.trainer.max_steps))
            yield Training(run, seed, tuple(own), options.runs_dir / key, steps, counted)
    except (HydraException, OmegaConfBaseException, ConfigError) as error:
        raise ConfigError(f"runs.{run}: {CommandLine('train', overrides).explain(error)}") from error


def train_all(needed: Sequence[Training]) -> None:
    """Runs the unfinished trainings; interrupted ones continue from their last checkpoint.

    Raises:
        SoftsearchError: a training failed.
    """
    waiting = list({each.folder: each for each in needed if not each.finished}.values())
    log.info("%d of %d trainings have finished", len(needed) - len(waiting), len(needed))
    start = monotonic()
    for number, each in enumerate(waiting, 1):
        so_far = (monotonic() - start) / 60
        where = f"{number} of {len(waiting)}: {each.run}, seed {each.seed}, in {each.folder}"
        log.info("training %s; %.0f minutes so far", where, so_far)
        _train(each, f"{number} of {len(waiting)}: {each.run}")


def _train(each: Training, name: str) -> None:
    program, resume = (COUNT, False) if each.is_counted else ((), True)
    process_of_run = training(each.folder, each.overrides, resume=resume, program=program)
    with process_of_run as process, progress(name, each.steps) as advance:
        shown = 0
        while (code := process.poll()) is None:
            reached = max((step for step, _ in logged_values(each.folder, "step")), default=0)
            advance(reached - shown)
            shown = reached
            sleep(_POLL)
    if code or not each.finished:
        raise SoftsearchError(
            f"the training of {each.run} with seed {each.seed} ended with exit code {code}; its output is "
            f"{each.folder / OUTPUT}; fix it and run the same command again\n{last_lines(each.folder)}"
        )


def described(each: Training) -> dict[str, Any]:
    """Returns a training as plain values for ``results.json``."""
    places = ("name=", "cache_dir=", "seed=", "init.ckpt='", "vectors.src='", "vectors.tgt='")
    overrides = [o for o in each.overrides if not o.startswith(places) and ".root=" not in o]
    metrics, config = read_metrics(each.folder), OmegaConf.load(each.folder / "config.yaml")
    return {
        "run": each.run,
        "seed": each.seed,
        "overrides": overrides,
        "folder": each.folder.name,
        "minutes": round(metrics.get("train/seconds", 0.0) / 60, 2),
        "parameters": int(metrics["model/parameters"]),
        "steps": int(config.trainer.max_steps),
    }
