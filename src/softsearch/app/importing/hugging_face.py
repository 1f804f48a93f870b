"""Folders of Hugging Face: the family that ``config.json`` names."""

from pathlib import Path

from softsearch.app.importing import marian_mt
from softsearch.app.importing.config_json import CONFIG, Config
from softsearch.app.importing.imported import Imported
from softsearch.errors import ConfigError

_READERS = {"marian": marian_mt.read}


def read(source: Path) -> Imported | None:
    """The model of a folder; None if it is none of Hugging Face.

    Raises:
        ConfigError: it is of another architecture, or has an option that this lab lacks.
        CheckpointError: a file is missing or damaged, or the files do not go together.
    """
    if not (source / CONFIG).is_file():
        return None
    config = Config(source / CONFIG)
    family = config["model_type"]
    if not isinstance(family, str) or family not in _READERS:
        raise ConfigError(
            f"{config.path}: model_type is {family!r:.60}, expected {' or '.join(_READERS)}; docs/import.md has the "
            "families that can be imported"
        )
    return _READERS[family](source, config)
