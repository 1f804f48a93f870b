"""``weights.json``: what ``src/tune.py`` found, and how other commands take it over with ``weights=FILE``."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.validation import check
from softsearch.errors import ConfigError
from softsearch.search.ensemble import Average

FORMAT = 1
_COMBINATION = ("ckpt", "bundle", "average", "ensemble", "weights", "language_model", "language_model_weight")
_KNOWN = (*_COMBINATION, "_target_", "length_penalty", "models", "proposers")  # the last four are of the search
_TEXTS = ("ckpt", "bundle", "ensemble", "language_model", "_target_", "models", "proposers")  # the others are numbers


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A combination of models, and the options of its search that were tuned with it."""

    ckpt: list[str]
    bundle: list[str]
    average: int | None  # checkpoints of which each of ckpt is the mean
    ensemble: Average | None  # None: one model alone
    weights: list[float] | None  # of ckpt, then of bundle
    language_model: str | None
    language_model_weight: float
    search: dict[str, Any]  # _target_ and the tuned options; of search=rerank its models too
    validation: dict[str, Any]  # for people: the text, the BLEU at the start and at the end, its signature

    def save(self, path: Path) -> None:
        """Writes the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n", encoding="utf-8")


def read_tuned(path: Path) -> Tuned:
    """Reads the file.

    Raises:
        ConfigError: it is missing or something else.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"weights={path} cannot be read as JSON ({error}); expected a file of src/tune.py") from error
    expected = {field.name for field in fields(Tuned)} | {"format"}
    if not isinstance(values, dict) or values.pop("format", None) != FORMAT or set(values) != expected - {"format"}:
        raise ConfigError(
            f"weights={path} is no file of src/tune.py of format {FORMAT}; write it again with src/tune.py"
        )
    if not isinstance(values["search"], dict):
        raise ConfigError(f"weights={path}: search is {values['search']!r}, expected an object; write the file again")
    _check_values(path, values)
    return Tuned(**values)


def _check_values(path: Path, values: dict[str, Any]) -> None:
    """Refuses what ``tune.py`` never writes: options that it does not tune, nested nodes, interpolations.

    Raises:
        ConfigError: one is there.
    """
    combination = {key: values[key] for key in _COMBINATION}
    flat: dict[str, Any] = {**combination, "search": {}, "validation": {}}  # no name in the file is looked up
    check({"_target_": f"{__name__}.{Tuned.__name__}", **flat}, f"weights={path}")
    for key, value in [*combination.items(), *values["search"].items()]:
        parts, kind = value if isinstance(value, list) else [value], str if key in _TEXTS else int | float
        if key not in _KNOWN or not all(part is None or isinstance(part, kind) for part in parts):
            raise ConfigError(f"weights={path}: {key} is {value!r}, which src/tune.py never writes; write it again")
        if any("${" in part for part in parts if isinstance(part, str)):
            raise ConfigError(f"weights={path}: {key} is {value!r}, and nothing is looked up for a file; rename it")


def typed_options() -> list[str]:
    """What was typed behind the command's name, as in ``search.beam=10``; nothing outside a command."""
    return list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []


def option_key(typed: str) -> str:
    """The key of a typed option."""
    return typed.partition("=")[0].lstrip("+~")


def with_tuned(config: DictConfig, typed: Sequence[str]) -> DictConfig:
    """A command's config with what ``weights=FILE`` says in the place of the file's name; else as it is.

    What the file says may be typed beside it, but not otherwise than the file has it.

    Args:
        config: of the command.
        typed: the options that a person gave, see :func:`typed_options`; the others are defaults.

    Raises:
        ConfigError: the file cannot be read, or says something else than what was typed.
    """
    if not isinstance(config.weights, str):
        return config
    path = Path(config.weights)
    tuned = read_tuned(path)
    search = OmegaConf.to_container(config.search, resolve=True)
    assert isinstance(search, dict)
    if search["_target_"] != tuned.search.get("_target_"):
        name = str(tuned.search.get("_target_")).rpartition(".")[2]
        raise ConfigError(
            f"weights={path} was tuned for another search ({name}); add search=NAME, as it was for tune.py"
        )
    combination = {key: getattr(tuned, key) for key in _COMBINATION}
    said = combination | {f"search.{key}": value for key, value in tuned.search.items()}
    for key in sorted((said.keys() - {"weights"}) & set(map(option_key, typed))):
        given = OmegaConf.select(config, key)
        listed = [given] if key in ("ckpt", "bundle") and isinstance(given, str) else given
        if listed != said[key]:
            raise ConfigError(
                f"{key}={given}, but weights={path} was tuned with {key}={said[key]}; leave {key} out, or give the "
                "options of the file one by one in its place"
            )
    merged = {**OmegaConf.to_container(config, resolve=False), "search": search | tuned.search}  # type: ignore[dict-item]
    return OmegaConf.create(merged | combination)
