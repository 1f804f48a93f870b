"""The training state in a checkpoint, compared with that of a fresh run before it is restored.

Optimizers and Lightning take what they restore as it is: fused kernels read and write moments by the size of the
weights, counts go into loops. So every value must have the type, the shape and the range that the fresh run's has.
"""

import copy
import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import lightning
import torch
from torch import Tensor, nn

from softsearch.training.checkpoints.checkpoint_contents import describe_mismatch, is_weight, shorten
from softsearch.training.module import TranslationModule, make_optimizer

_LOOPS = ("fit_loop", "validate_loop", "test_loop", "predict_loop")
_OWNERS = ("softsearch", "lightning")  # of callbacks whose state has always the same keys and types
_WORDS = "loss.recent_words"  # indices of weights
_LIMIT = 2**48  # of counts: their sums are exact as float, and fit into other libraries' integers
_EXPECTED = {bool: "true or false", int: "a count below 2**48", float: "a number below 2**48", str: "text"}


def state_mismatch(
    checkpoint: Mapping[str, Any], trainer: lightning.Trainer, module: TranslationModule, data: Any
) -> str | None:
    """Describes the first value of a checkpoint that this run cannot continue from; None if there is none.

    It raises any error if parts of the checkpoint are something else altogether.
    """
    return next(_problems(checkpoint, trainer, module, data), None)


def _problems(
    checkpoint: Mapping[str, Any], trainer: lightning.Trainer, module: TranslationModule, data: Any
) -> Iterator[str]:
    weights = module.state_dict()
    for part in ("state_dict", "current_model_state"):  # the latter has the trained weights, if the former average them
        yield from _weight_problems(checkpoint.get(part, weights), weights, part)
    if not re.match(r"[2-9]\.", checkpoint["pytorch-lightning_version"]):  # Lightning rewrites the older ones
        yield f"pytorch-lightning_version is {shorten(checkpoint['pytorch-lightning_version'])}, expected at least 2"
    optimizer = make_optimizer(module.optimizer, module.model)
    scheduler = module.scheduler(optimizer)
    callbacks = {c.state_key: c.state_dict() for c in trainer.callbacks if type(c).__module__.startswith(_OWNERS)}  # type: ignore[attr-defined]  # set by a connector
    (schedule,), (moments,), states = (checkpoint[part] for part in ("lr_schedulers", "optimizer_states", "callbacks"))
    fresh = {
        "loops": {name: getattr(trainer, name).state_dict() for name in _LOOPS},
        "callbacks": callbacks,
        "lr_schedulers": [scheduler.state_dict()],
        "averaging_state": {"n_averaged": torch.tensor(0)},
        type(data).__qualname__: data.state_dict(),
        type(trainer.precision_plugin).__qualname__: trainer.precision_plugin.state_dict(),
    }
    # What a run without some callback, or with another schedule, does not read is left alone.
    read = {
        "callbacks": {name: _common(states[name], callbacks[name]) for name in callbacks.keys() & states.keys()},
        "lr_schedulers": [{name: value for name, value in schedule.items() if hasattr(scheduler, name)}],
    }
    yield from _differences(_common({**checkpoint, **read}, fresh), fresh)
    yield from _optimizer_problems(moments, optimizer.state_dict(), module)


def _common(found: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in found if name in fresh}


def _weight_problems(saved: Mapping[str, Any], weights: Mapping[str, Tensor], part: str) -> Iterator[str]:
    if not all(map(is_weight, saved.values())):
        yield f"{part} has a weight without all its values"
    elif different := describe_mismatch(saved, weights):
        yield different
    if isinstance(ids := saved.get(_WORDS), Tensor):
        limit = max(weight.shape[0] for weight in weights.values() if weight.dim())
        if len(ids.unique()) < len(ids) or not bool(((ids >= 0) & (ids < limit)).all()):
            yield f"{_WORDS} of {part} does not hold different words of the vocabulary"


def _optimizer_problems(saved: dict[str, Any], fresh: dict[str, Any], module: TranslationModule) -> Iterator[str]:
    place = "optimizer_states.0"
    for found, like in zip(saved["param_groups"], fresh["param_groups"], strict=True):
        rate, peak = found["lr"], found["initial_lr"]  # all other options are this run's
        yield from _differences([rate, peak], [like["lr"], like["initial_lr"]], f"{place}.rates")
        if not (peak > 0 and 0 <= rate <= 1000 * peak):
            yield f"{place} has the rate {rate}, expected one of a schedule whose peak is {peak}"
        if found["params"] != like["params"]:
            yield f"{place} has other parameters than this model"
    state, stepped = saved["state"], _state_after_a_step(module)
    if stepped is None:
        return
    for number in state.keys() | fresh["state"].keys():
        if state[number].keys() != stepped[number].keys():
            yield f"{place} has {_names(state[number])} of parameter {number}, this optimizer {_names(stepped[number])}"
    yield from _differences(state, stepped, f"{place}.state")


def _state_after_a_step(module: TranslationModule) -> dict[int, dict[str, Any]] | None:
    """The optimizer's state by the number of the parameter, after a step that takes no memory and no time.

    None for one of the user's own that looks at values, and so cannot take such a step.
    """
    twins: dict[int, Any] = {
        id(p): nn.Parameter(torch.empty_like(p, device="meta"), p.requires_grad) for p in module.model.parameters()
    }
    make = module.optimizer
    if isinstance(make, partial) and make.keywords.get("fused"):  # the meta device has no such kernels
        make = partial(make.func, *make.args, **{**make.keywords, "fused": False})
    optimizer = make_optimizer(make, copy.deepcopy(module.model, twins))
    for group in optimizer.param_groups:
        group["fused"] = False
        for parameter in group["params"]:
            parameter.grad = torch.empty_like(parameter)
    try:
        optimizer.step()
    except (NotImplementedError, RuntimeError):
        return None
    state: dict[int, dict[str, Any]] = optimizer.state_dict()["state"]
    return state


def _differences(found: Any, fresh: Any, place: str = "") -> Iterator[str]:
    """The path of a value unlike that of a fresh run; missing ones are reported by Lightning."""
    if isinstance(fresh, dict) and isinstance(found, dict) and found.keys() <= fresh.keys():
        for name, value in found.items():
            yield from _differences(value, fresh[name], f"{place}.{name}".strip("."))
    elif isinstance(fresh, list | tuple) and isinstance(found, list | tuple) and len(found) == len(fresh or found):
        for index, value in enumerate(found):
            yield from _differences(value, fresh[index] if fresh else 0, f"{place}.{index}")
    elif isinstance(fresh, dict | list | tuple):
        if not (
            fresh == {} and isinstance(found, dict) and _is_plain(found)
        ):  # as of scores by path, before there are any
            yield f"{place} is {_names(found)}, expected {_names(fresh)}"
    elif isinstance(fresh, Tensor) and not _is_alike(found, fresh):
        shape = tuple(found.shape) if isinstance(found, Tensor) else shorten(found)
        yield f"{place} is {shape}, expected {tuple(fresh.shape)} with all its values"
    elif not _in_range(found, fresh, place):
        yield f"{place} is {shorten(found)}, expected {_EXPECTED.get(type(fresh), 'a number in its range')}"


def _names(value: Any) -> str:
    if isinstance(value, dict):
        return f"values named {', '.join(map(str, value)):.100}"
    return f"{len(value)} values" if isinstance(value, list | tuple) else shorten(value)


def _is_alike(found: Any, fresh: Tensor) -> bool:
    """Whether a tensor has the shape and the layout of another; its precision is converted when it is restored."""
    if not is_weight(found) or found.is_complex() or found.is_floating_point() != fresh.is_floating_point():
        return False
    return found.shape == fresh.shape and (found.is_contiguous() or found.stride() == fresh.stride())


def _in_range(found: Any, fresh: Any, place: str) -> bool:
    """Whether a value has the type and the range of a fresh one; null is a value before there is one."""
    if isinstance(found, Tensor) and isinstance(fresh, Tensor | None):
        if found.dim():
            return fresh is not None
        counts = fresh is not None and (place.endswith(".step") or not fresh.is_floating_point())
        return 0 <= found.item() < _LIMIT if counts else not math.isnan(found.item())
    if fresh is None:  # a score or a reason that comes later
        return _is_plain(found)
    if isinstance(fresh, bool | str):
        return isinstance(found, type(fresh))
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    if isinstance(fresh, int):
        return (isinstance(found, int) or place.startswith("callbacks.Timer.")) and 0 <= found < _LIMIT
    return abs(found) < _LIMIT or (math.isinf(found) and math.isinf(fresh))


def _is_plain(found: Any) -> bool:
    """Whether a value, of which a fresh run has nothing yet, consists of text, numbers in range and whole tensors."""
    if isinstance(found, dict):
        return all(isinstance(name, str | int) and _is_plain(value) for name, value in found.items())
    if isinstance(found, list | tuple):
        return all(map(_is_plain, found))
    if isinstance(found, Tensor):
        return is_weight(found)
    if isinstance(found, int | float):
        return abs(found) < _LIMIT or math.isinf(found)
    return isinstance(found, str | None)
