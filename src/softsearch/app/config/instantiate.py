"""From YAML to objects, which are checked before they are built.

Any class or function that can be imported may be named, because the config is what the user wrote; a config that
comes out of a file goes through :mod:`softsearch.app.config.allowed_classes` instead.
"""

from typing import Any

import hydra.utils
from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.validation import check
from softsearch.errors import ConfigError, SoftsearchError


def build(node: DictConfig | None, **extra: Any) -> Any:
    """Builds the object that a config node describes; ``extra`` are arguments that no YAML can hold.

    Raises:
        ConfigError: the node does not fit its constructor (see :func:`check`).
    """
    if node is None:
        return None
    path = str(node._get_full_key(None))
    check(OmegaConf.to_container(node, resolve=True), path, given=extra)
    try:
        return hydra.utils.instantiate(node, _convert_="all", **extra)
    except InstantiationException as error:
        cause: BaseException = error
        while cause.__cause__ is not None and not isinstance(cause, SoftsearchError):
            cause = cause.__cause__
        if isinstance(cause, SoftsearchError | AssertionError | AttributeError | NameError | LookupError):  # or a bug
            raise cause from error
        target = str(node.get("_target_")).rpartition(".")[2]
        raise ConfigError(f"{path}: {target} refuses its options: {str(cause).strip()}; change them") from error
