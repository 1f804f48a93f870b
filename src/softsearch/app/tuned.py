"""``weights.json``: what ``src/tune.py`` found, and how other commands take it over with ``weights=FILE``."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from softsearch.errors import ConfigError
from softsearch.search.ensemble import Average

FORMAT = 1
_COMBINATION = ("ckpt", "bundle", "average", "ensemble", "weights", "language_model", "language_model_weight")


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
    return Tuned(**values)


def with_tuned(config: DictConfig) -> DictConfig:
    """A command's config with what ``weights=FILE`` says in the place of the file's name; else as it is.

    ``ckpt``, ``bundle`` and the ``models`` of ``search=rerank`` may be left out, or must be those that were tuned.

    Raises:
        ConfigError: the file cannot be read, or was tuned for other models or another search.
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
    for key in ("ckpt", "bundle"):
        given = [config[key]] if isinstance(config[key], str) else config[key]
        if given and list(given) != getattr(tuned, key):
            raise ConfigError(
                f"{key}={list(given)}, but weights={path} was tuned for {getattr(tuned, key)}; leave it out"
            )
    models = tuned.search.get("models")
    if search.get("models") and search["models"] != models:
        raise ConfigError(f"search.models={search['models']}, but weights={path} was tuned for {models}; leave it out")
    merged = {**OmegaConf.to_container(config, resolve=False), "search": search | tuned.search}  # type: ignore[dict-item]
    return OmegaConf.create(merged | {key: getattr(tuned, key) for key in _COMBINATION})
