"""Commands as functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from torch import Tensor

from softsearch.app.config.build import described_model
from softsearch.app.config.in_process import run_here, typed
from softsearch.app.results import report_tables
from softsearch.errors import CheckpointError, ConfigError
from softsearch.evaluation.schema import Comparison, Report, SystemReport, read_report
from softsearch.files import MANIFEST, REPORT, new_folder
from softsearch.lab.run import Run
from softsearch.models.seq2seq import Seq2Seq
from softsearch.report.tables import markdown
from softsearch.runtime.bundle import Bundle
from softsearch.text.tokenizer import Tokenizers
from softsearch.training.checkpoints.checkpoint_contents import read_contents
from softsearch.training.checkpoints.folder import BEST, save_weights


@dataclass(frozen=True)
class Evaluation:
    """A report on systems.

    Args:
        folder: has ``report.html``, ``report.json`` and the translations.
        report: the contents of ``report.json``.
    """

    folder: Path
    report: Report

    @property
    def systems(self) -> Sequence[SystemReport]:
        """The systems with their scores, intervals and translations."""
        return self.report.systems

    @property
    def comparisons(self) -> Sequence[Comparison]:
        """Differences between the systems, with p-values."""
        return self.report.comparisons

    def _repr_markdown_(self) -> str:
        """Shows the tables in a notebook."""
        return "\n".join(markdown(table) for table in report_tables(self.report))


def train(*words: str, **options: Any) -> Run:
    """Trains and tests a model in this process, as ``softsearch train`` does.

    Args:
        words: options as they are typed, such as ``"model=rnnsearch"`` or ``"data.train=[a.en,a.de]"``.
        options: the same as keywords, such as ``model="rnnsearch"`` or ``**{"data.train": ["a.en", "a.de"]}``.

    Raises:
        SoftsearchError: an option is wrong, or the data cannot be read.
        KeyboardInterrupt: after Ctrl-C, once a checkpoint has been saved; ``resume=folder`` continues.
    """
    return Run(_run("train", words, options))


def evaluate(*systems: Run | Bundle | Path | str, **options: Any) -> Evaluation:
    """Translates a test set with systems and scores them, as ``softsearch evaluate`` does.

    Args:
        systems: runs and bundles, or their folders.
        options: options of the command, such as ``test=("x.en", "x.de")``, ``ensemble="log_probs"`` or
            ``**{"search.beam": 10}``.

    Raises:
        SoftsearchError: a system or the text cannot be read, or an option is wrong.
    """
    paths = [_path(system) for system in systems]
    bundles = [path for path in paths if (path / MANIFEST).is_file()]
    runs = [path for path in paths if path not in bundles]
    folder = _run("evaluate", (), {"ckpt": runs or None, "bundle": bundles or None} | options)
    return Evaluation(folder, read_report(folder / REPORT))


def prepare(*words: str, **options: Any) -> None:
    """Prepares the data of a training, as ``softsearch prepare`` does; trainings then find them in the cache.

    Args:
        words: options as they are typed, such as ``"data.train=[a.en,a.de]"``.
        options: the same as keywords.

    Raises:
        SoftsearchError: an option is wrong, or the data cannot be read or written.
    """
    _run("prepare", words, options)


def export(run: Run | Path | str, out: Path | str, **options: Any) -> Bundle | Path:
    """Exports a run, as ``softsearch export`` does.

    Args:
        run: the run, or its folder.
        out: the new bundle's folder.
        options: options of the command, such as ``precision="int8"`` or ``overwrite=True``.

    Returns:
        The bundle, or the path of an export in another ``format``.

    Raises:
        SoftsearchError: an option is wrong, ``out`` exists, or the export does not compute what the model does.
    """
    _run("export", (), {"ckpt": _path(run), "out": Path(out)} | options)
    return Bundle.open(out) if options.get("format", "bundle") == "bundle" else Path(out)


def load(run: Run | Path | str) -> Seq2Seq:
    """Returns the model of a run's best checkpoint, in evaluation mode.

    Raises:
        CheckpointError: there is no checkpoint, or it is damaged.
    """
    return (run if isinstance(run, Run) else Run(Path(run))).model


def save(folder: Path | str, weights: Mapping[str, Tensor], config: dict[str, Any], tokenizers: Tokenizers) -> int:
    """Writes a run whose weights come from elsewhere, such as another program; returns the number of parameters.

    Args:
        folder: the new run's folder.
        weights: by name, as in the ``state_dict`` of the model of ``config``.
        config: as in the ``config.yaml`` of a run: ``name``, ``model``, ``data`` and ``tokenizer``.
        tokenizers: those of source and target.

    Raises:
        ConfigError: the folder exists.
        CheckpointError: the weights do not fit the model, or cannot be written; nothing was written.
    """
    if (run := Path(folder)).exists():
        raise ConfigError(f"{run} exists; choose a new folder, or remove it")
    try:
        with new_folder(run) as new:
            path = new / "checkpoints" / BEST
            save_weights(path, weights, config, tokenizers)
            OmegaConf.save(OmegaConf.create(config), new / "config.yaml")
            return sum(weight.numel() for weight in described_model(read_contents(path)).weights())
    except (OSError, CheckpointError) as error:
        failed = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(failed, OSError):
            raise
        raise CheckpointError(
            f"{run} could not be written ({failed.strerror or failed}), so nothing was written; free some space or "
            "choose another folder"
        ) from error


def _run(command: str, words: Sequence[str], options: Mapping[str, Any]) -> Path:
    return run_here(command, [*words, *typed(options)])


def _path(system: Run | Bundle | Path | str) -> Path:
    return system.folder if isinstance(system, Run) else system.path if isinstance(system, Bundle) else Path(system)
