"""What has changed between a checkpoint and the run that is to continue from it."""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from softsearch.errors import CheckpointError
from softsearch.training.checkpoint_io import load_checkpoint
from softsearch.training.saved import ORIGIN

log = logging.getLogger(__name__)
_PLACES = ("resume", "run_dir", "cache_dir", "callbacks", "logger")  # where files lie; no part of what is trained


def compare(path: Path, config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Logs the options that differ from the checkpoint's.

    Args:
        path: the checkpoint.
        config: the resolved config of this run.
        weights: the module's, as built from that config.

    Raises:
        CheckpointError: the checkpoint's weights have other names or shapes; it lists the options that differ.
    """
    checkpoint = load_checkpoint(path)
    before, now = dict(_flatten(checkpoint[ORIGIN]["config"])), dict(_flatten(config))
    changed = [
        f"{key} {before.get(key, 'nothing')} -> {now.get(key, 'nothing')}"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key) and key.split(".")[0] not in _PLACES
    ]
    saved: Mapping[str, Tensor] = checkpoint["state_dict"]
    for name in sorted({*saved, *weights}):
        found, expected = (tuple(w[name].shape) if name in w else None for w in (saved, weights))
        if found != expected:
            raise CheckpointError(
                f"{path} does not fit this model: {name} is {found or 'missing'} there, {expected or 'missing'} here; "
                f"changed since it was saved: {', '.join(changed) or 'nothing'}; resume with the run's own options, or "
                "start a new run with resume=null"
            )
    if changed:
        log.info("changed since the checkpoint: %s", ", ".join(changed))


def _flatten(node: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        inner = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            yield from _flatten(value, inner)
        else:
            yield inner, value
