"""Options found by ``softsearch tune``, in a file for ``weights=FILE`` of other commands."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.composition import option_key
from softsearch.doors import public_name
from softsearch.errors import ConfigError
from softsearch.text.plain_values import parse, read_json

FORMAT = 2
_KEYS = r"ckpt|bundle|average|ensemble|weights|language_model|language_model_weight|search(\.[a-z]\w*)+"


@dataclass(frozen=True)
class TunedWeights:
    """A combination of models and a search, as options of ``evaluate``."""

    search: str  # its _target_
    options: dict[str, Any]  # key -> value
    validation: dict[str, Any]  # for information: the text, BLEU before and after tuning, its signature

    def save(self, path: Path) -> None:
        """Writes the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n", encoding="utf-8")


def read_tuned(path: Path) -> TunedWeights:
    """Reads the file, whose options are numbers, strings and lists of them; commands check them like typed ones.

    Raises:
        ConfigError: the file is missing or of another kind, or one of its values is a section or an interpolation.
    """
    try:
        values = read_json(path)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"weights={path} cannot be read as JSON ({error}); expected a file written by softsearch tune"
        ) from error
    if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
        raise ConfigError(
            f"weights={path} is not a softsearch tune file of format {FORMAT}; write it again with softsearch tune"
        )
    if "${" in json.dumps(values):
        raise ConfigError(f"weights={path} has a value with ${{, which is not allowed in this file; rename that path")
    try:
        tuned: TunedWeights = parse(values, TunedWeights)
    except ValueError as error:
        raise ConfigError(f"weights={path}: {error}; write it again with softsearch tune") from error
    for key, value in tuned.options.items():
        names_a_file = key == "weights" and isinstance(value, str)
        each = value if isinstance(value, list) else [value]
        if not re.fullmatch(_KEYS, key) or names_a_file or any(isinstance(item, dict | list) for item in each):
            raise ConfigError(
                f"weights={path}: {key} is {str(value)[:80]}, expected only tuned options, which are numbers, strings "
                "or lists of them; write it again with softsearch tune"
            )
    return tuned


def with_tuned(config: DictConfig, typed: Sequence[str]) -> DictConfig:
    """Returns a command's config with the options of the file in ``weights=FILE``, or unchanged without one.

    The file replaces options that are not ``typed`` (``typed_options``), because those are defaults.

    Raises:
        ConfigError: the file cannot be read, or the user gave one of its options with another value.
    """
    if not isinstance(config.weights, str):
        return config
    path = Path(config.weights)
    tuned = read_tuned(path)
    if public_name(config.search["_target_"]) != public_name(tuned.search):
        raise ConfigError(
            f"weights={path} was tuned for another search ({tuned.search.rpartition('.')[2]}); add search=NAME, as it "
            "was for tune.py"
        )
    given = set(map(option_key, typed)) - {"weights"}
    merged = config.copy()
    for key, value in sorted(({"weights": None} | tuned.options).items()):
        current = OmegaConf.select(config, key)
        listed = [current] if key in ("ckpt", "bundle") and isinstance(current, str) else current
        if key in given and listed != value:
            raise ConfigError(
                f"{key}={current}, but weights={path} was tuned with {key}={value}; remove {key}, or type the "
                "options of the file one by one instead of the file"
            )
        OmegaConf.update(merged, key, value)
    return merged
