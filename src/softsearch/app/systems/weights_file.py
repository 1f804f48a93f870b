"""Options tuned by ``src/tune.py``, as the file ``weights.json``, which other commands take with ``weights=FILE``."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.validation import read_options
from softsearch.errors import ConfigError
from softsearch.search.ensemble import Average
from softsearch.text.plain_values import read_json

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A combination of models, and the search options that were tuned with it."""

    ckpt: list[str]
    bundle: list[str]
    average: int | None  # number of checkpoints averaged into each of ckpt
    ensemble: Average | None  # None: a single model
    weights: list[float] | None  # of ckpt, then of bundle
    language_model: str | None
    language_model_weight: float
    search: str  # its _target_
    length_penalty: float | None  # None: the search has no such option
    search_models: list[str] | None  # of search=rerank, like the next two
    search_proposers: list[str] | None
    search_weights: list[float] | None
    validation: dict[str, Any]  # information: the text, BLEU at the start and at the end, its signature

    @property
    def options(self) -> dict[str, Any]:
        """The tuned options of a command, by key."""
        names = ("ckpt", "bundle", "average", "ensemble", "weights", "language_model", "language_model_weight")
        search = {
            "search.length_penalty": self.length_penalty,
            "search.models": self.search_models,
            "search.proposers": self.search_proposers,
            "search.weights": self.search_weights,
        }
        return {name: getattr(self, name) for name in names} | {k: v for k, v in search.items() if v is not None}

    def save(self, path: Path) -> None:
        """Writes the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n", encoding="utf-8")


def read_tuned(path: Path) -> Tuned:
    """Reads the file.

    Raises:
        ConfigError: it is missing or not such a file, or one of its values is an interpolation.
    """
    try:
        values = read_json(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"weights={path} cannot be read as JSON ({error}); expected a file of src/tune.py") from error
    names = {field.name for field in fields(Tuned)}
    if not isinstance(values, dict) or values.pop("format", None) != FORMAT or set(values) != names:
        raise ConfigError(
            f"weights={path} is not a file of src/tune.py of format {FORMAT}; write it again with src/tune.py"
        )
    if "${" in json.dumps(values):
        raise ConfigError(f"weights={path} has a value with ${{, which is not allowed in this file; rename the path")
    try:
        return read_options(OmegaConf.create(values), Tuned)
    except ConfigError as error:
        raise ConfigError(f"weights={path}: {error}; or write the file again with src/tune.py") from error


def typed_options() -> list[str]:
    """Returns the options typed after the command's name, as in ``search.beam=10``; none outside a command."""
    return list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []


def option_key(typed: str) -> str:
    """Returns the key of a typed option."""
    return typed.partition("=")[0].lstrip("+~")


def with_tuned(config: DictConfig, typed: Sequence[str]) -> DictConfig:
    """Returns a command's config with the options of the file that ``weights=FILE`` names, or else unchanged.

    The file replaces the options that are not ``typed`` (see :func:`typed_options`), because they are defaults.

    Raises:
        ConfigError: the file cannot be read, or the user gave one of its options with another value.
    """
    if not isinstance(config.weights, str):
        return config
    path = Path(config.weights)
    tuned = read_tuned(path)
    if config.search["_target_"] != tuned.search:
        raise ConfigError(
            f"weights={path} was tuned for another search ({tuned.search.rpartition('.')[2]}); add search=NAME, as it "
            "was for tune.py"
        )
    given = set(map(option_key, typed)) - {"weights"}
    merged = config.copy()
    for key, value in sorted(tuned.options.items()):
        current = OmegaConf.select(config, key)
        listed = [current] if key in ("ckpt", "bundle") and isinstance(current, str) else current
        if key in given and listed != value:
            raise ConfigError(
                f"{key}={current}, but weights={path} was tuned with {key}={value}; leave {key} out, or give the "
                "options of the file one by one in its place"
            )
        OmegaConf.update(merged, key, value)
    return merged
