"""Private names of other libraries: used in one file for each, found in its release, and bound to releases like it."""

import ast
import platform
import re
import tomllib
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from pkgutil import resolve_name

import lightning
import pytest
from lightning.pytorch.callbacks import WeightAveraging
from lightning.pytorch.loggers import WandbLogger
from omegaconf import OmegaConf
from packaging.requirements import Requirement
from sacrebleu.metrics import CHRF

INTERNALS = {  # by distribution: the file that uses its private names, and where they are found
    "lightning": (
        "training/lightning_internals.py",
        (
            "trainer._accelerator_connector.cluster_environment",
            "trainer._logger_connector.log_metrics",
            "trainer._logger_connector.on_batch_end",
            "trainer._logger_connector.update_train_step_metrics",
            "trainer.fit_loop._data_fetcher",
            "trainer.fit_loop.epoch_loop._batches_that_stepped",
            "trainer.fit_loop.epoch_loop._num_ready_batches_reached",
            "trainer.fit_loop.epoch_loop._should_accumulate",
            "trainer.fit_loop.epoch_loop._should_check_val_fx",
            "averaging._average_model",
            "averaging._swap_models",
            "wandb_logger._wandb_init",
            "lightning.pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector.restore_training_state",
        ),
    ),
    "hydra-core": ("app/config/shorthands.py", ("hydra._internal.utils:get_args_parser",)),
    "omegaconf": ("app/config/validation.py", ("node._get_full_key",)),
    "sacrebleu": (
        "evaluation/sentence_scores.py",
        (
            "chrf._compute_f_score",
            "chrf._compute_score_from_stats",
            "chrf._extract_corpus_statistics",
            "chrf._extract_reference_info",
            "chrf._preprocess_segment",
        ),
    ),
    "python": ("runtime/parser.py", ("parser._actions", "parser._check_value")),
    "torch": ("export/recurrences.py", ("torch._higher_order_ops.scan:scan",)),
}
DOCUMENTED = {"_asdict", "_exit", "_make", "_replace"}  # NamedTuple, os
PRIVATE = re.compile(r"_[a-zA-Z]\w*")
PATHS = [(library, path) for library, (_, paths) in INTERNALS.items() for path in paths]


class Objects:
    """Those that have the names."""

    averaging = WeightAveraging()
    chrf = CHRF()
    node = OmegaConf.create({})
    parser = ArgumentParser()

    @property
    def wandb_logger(self) -> WandbLogger:
        return WandbLogger(offline=True)

    @property
    def trainer(self) -> lightning.Trainer:
        return lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)


@pytest.mark.parametrize(("library", "path"), PATHS)
def test_the_installed_release_has_the_name(library: str, path: str) -> None:
    try:
        resolve_name(path) if ":" in path else attrgetter(path)(Objects())
    except (AttributeError, ImportError) as error:
        release = platform.python_version() if library == "python" else version(library)
        pytest.fail(
            f"{library} {release} has no {path} ({error}): change {INTERNALS[library][0]}, or set {library}<{release} "
            "in pyproject.toml"
        )


@pytest.mark.parametrize("library", INTERNALS)
def test_releases_that_nobody_has_tried_are_excluded(library: str, repo_root: Path) -> None:
    project = tomllib.loads((repo_root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [f"python{project['requires-python']}", *project["optional-dependencies"]["lab"]]
    (declared,) = [r for r in map(Requirement, requirements) if r.name == library]
    bounded = any(specifier.operator == "<" for specifier in declared.specifier)
    assert bounded, f"{declared} needs an upper bound, because {INTERNALS[library][0]} uses private names"


def test_private_names_are_used_in_one_file_for_each_library(repo_root: Path) -> None:
    package = repo_root / "src" / "softsearch"
    trees = {
        path.relative_to(package).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in package.rglob("*.py")
    }
    own = {name for tree in trees.values() for name in _defined(tree)}
    allowed = {file: set(re.findall(r"\b_[a-zA-Z]\w*", " ".join(paths))) for file, paths in INTERNALS.values()}
    used = {file: {*_used(tree)} - own - DOCUMENTED for file, tree in trees.items()}
    wrong = {file: names - allowed.get(file, set()) for file, names in used.items()}
    assert not {file: names for file, names in wrong.items() if names}, "use public names, or add to INTERNALS"
    assert used["training/lightning_internals.py"] >= {"_should_accumulate", "_swap_models"}


def _defined(tree: ast.AST) -> Iterator[str]:
    """Private attributes of our own classes and modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.attr if isinstance(node, ast.Attribute) else node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _used(tree: ast.AST) -> Iterator[str]:
    """Private names that are read from other objects and modules, getattr(x, "_name") included."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            names = [str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)]
        yield from (name for name in names if PRIVATE.fullmatch(name))
