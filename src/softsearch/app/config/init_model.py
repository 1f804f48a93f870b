"""The model of the run that a training starts from, which ``init=RUN`` takes over where no model is typed."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from softsearch.app.config.allowed_classes import admit, read_trust, trusting
from softsearch.errors import CheckpointError

_CHOOSES_MODEL = re.compile(r"[+~]*(experiment|model(/\w+)?)(@\S+)?(=|$)")
_NAME = "init"


def with_model_of_init(words: Sequence[str]) -> list[str]:
    """Returns the words of a command line, with ``model=init`` where ``init.ckpt`` and no model is typed.

    That choice has the options of the run's model, which further words can change, as ``model.encoder.dropout=0.2``.

    Raises:
        CheckpointError: the run has no checkpoint, or its model is of a class that needs ``trust``.
    """
    typed = {
        key: _value(word) for key in ("init.ckpt", "name", "trust") for word in words if word.startswith(f"{key}=")
    }
    path = typed.get("init.ckpt")
    if not isinstance(path, str) or any(map(_CHOOSES_MODEL.match, words)):
        return [*words]
    from softsearch.training.checkpoints.checkpoint_contents import read_contents
    from softsearch.training.checkpoints.folder import checkpoint_file

    contents = read_contents(checkpoint_file(Path(path)))
    node = {key: value for key, value in contents.config["model"].items() if key != "init"}  # the file has weights
    if "${" in json.dumps(node):
        raise CheckpointError(f"{contents.path}: model of its config has an interpolation, which no file may have")
    with trusting(read_trust(typed.get("trust", ()))):
        admit(contents.path, "model", node, ("src_vocab_size", "tgt_vocab_size"))
    ConfigStore.instance().store(_NAME, OmegaConf.create(node), "model", provider="softsearch")
    return [*words, f"model={_NAME}", *([] if "name" in typed else [f"name={contents.config['name']}"])]


def _value(word: str) -> Any:
    (override,) = OverridesParser.create().parse_overrides([word])
    return override.value()
