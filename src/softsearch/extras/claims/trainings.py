"""Trainings of claims, each in a folder named by the hash of its config, so that claims share them."""

import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from subprocess import Popen
from time import monotonic, sleep
from typing import Any

from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.app import (
    CommandLine,
    cache_folder,
    check_sections,
    composed,
    is_counted,
    plain,
    progress,
    quoted,
    read_metrics,
)
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.extras.claims.claim import Plan
from softsearch.extras.claims.made_files import made_file, without_root
from softsearch.extras.claims.measures import digest
from softsearch.extras.claims.options import Trainings
from softsearch.extras.claims.register import note_start, noted_starts
from softsearch.extras.shared.train_process import COUNT, OUTPUT, last_lines, logged_values, training
from softsearch.files import METRICS
from softsearch.machine import cores

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
    start: Path | None = None  # the folder of the run whose weights it starts from

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
            start = earlier[init, seed] if init in claim.runs else None
            if start is not None:
                config.init.ckpt = start.name  # has the hash of its config: its folder does not change the result
            values = plain(config)
            check_sections(values)
            roots = [f"{each}.root='{options.multi30k}'" for each in without_root(values, options.multi30k)]
            key = digest({name: node for name, node in values.items() if name not in _PLACES})
            begin = [] if start is None else [f"init.ckpt='{start}'"]
            own = [*overrides, *made, *begin, f"seed={seed}", f"name={run}", *roots, *further]
            counted = is_counted(config.model)
            steps = 0 if counted else max(0, int(config.trainer.max_steps))
            yield Training(run, seed, tuple(own), options.runs_dir / key, steps, counted, start)
    except (HydraException, OmegaConfBaseException, ConfigError) as error:
        raise ConfigError(f"runs.{run}: {CommandLine('train', overrides).explain(error)}") from error


def train_all(needed: Sequence[Training], jobs: int = 1) -> None:
    """Runs the unfinished trainings, ``jobs`` at a time; interrupted ones continue from their last checkpoint.

    Several at a time get equal shares of the cores, or ``OMP_NUM_THREADS`` threads each if that is set.

    Raises:
        SoftsearchError: a training failed; the others are interrupted.
    """
    waiting = list({each.folder: each for each in needed if not each.finished}.values())
    total, began = len(waiting), monotonic()
    log.info("%d of %d trainings have finished", len(needed) - total, len(needed))
    threads = None if jobs == 1 else max(1, cores() // jobs)
    running: dict[Training, tuple[ExitStack, Popen[bytes]]] = {}
    shown = dict.fromkeys(waiting, 0)
    with progress("trainings", sum(each.steps for each in waiting)) as advance, ExitStack() as every:
        while waiting or running:
            ready = [each for each in waiting if each.start is None or (each.start / METRICS).is_file()]
            for each in ready[: jobs - len(running)]:
                waiting.remove(each)
                where = f"{total - len(waiting)} of {total}: {each.run}, seed {each.seed}, in {each.folder}"
                log.info("training %s; %.0f minutes so far", where, (monotonic() - began) / 60)
                note_start(each.folder)
                own = every.enter_context(ExitStack())
                program, resume = (COUNT, False) if each.is_counted else ((), True)
                run = training(each.folder, each.overrides, resume=resume, program=program, threads=threads)
                running[each] = own, own.enter_context(run)
            sleep(_POLL)
            for each, (own, process) in list(running.items()):
                code = process.poll()
                reached = max((step for step, _ in logged_values(each.folder, "step")), default=0)
                advance(reached - shown[each])
                shown[each] = reached
                if code is not None:
                    del running[each]
                    own.close()
                    _check_end(each, code)


def _check_end(each: Training, code: int) -> None:
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
        "minutes": round(own_seconds(each.folder, metrics) / 60, 2),
        "parameters": int(metrics["model/parameters"]),
        "steps": int(config.trainer.max_steps),
        **noted_starts(each.folder),
    }


def own_seconds(folder: Path, metrics: Mapping[str, float]) -> float:
    """Returns the time of a run's steps: their number times the median time of a step.

    So a run that was stopped, or whose machine slept or was busy for a while, does not seem to take longer.
    """
    logged = [(0, 0.0), *logged_values(folder, "train/elapsed_seconds")]
    steps = [(after - before) / (end - start) for (start, before), (end, after) in pairwise(logged) if end > start]
    return median(steps) * metrics.get("train/steps", 0.0) if steps else metrics.get("train/seconds", 0.0)
