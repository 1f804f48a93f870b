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
    check(OmegaConf.to_container(node, resolve=True), str(node._get_full_key(None)), given=extra)
    try:
        return hydra.utils.instantiate(node, _convert_="all", **extra)
    except InstantiationException as error:
        causes: list[BaseException] = [error]
        while causes[-1].__cause__ is not None:
            causes.append(causes[-1].__cause__)
        ours = [cause for cause in causes if isinstance(cause, SoftsearchError)]
        raise ours[0] if ours else _refusal(node, causes[-1]) from error


def _refusal(node: DictConfig, error: BaseException) -> BaseException:
    """What a library's constructor says of its arguments, as an error for users; of a bug, the bug."""
    if isinstance(error, AssertionError | AttributeError | NameError | LookupError):
        return error
    path, target = node._get_full_key(None), str(node.get("_target_")).rpartition(".")[2]
    return ConfigError(f"{path}: {target} refuses its options: {str(error).strip()}; change them")
