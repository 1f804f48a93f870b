"""Checks weights and optimizer state in a checkpoint against those of this run before they are restored.

Fused kernels read and write moments by the size of the weights, and word ids are indices: a value with another shape,
type or layout would make them read and write beyond its memory.
"""

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from softsearch.training.checkpoints.checkpoint_contents import describe_mismatch, is_weight, shorten
from softsearch.training.module import TranslationModule, make_optimizer

_WORDS = "loss.recent_words"  # indices of weights


def state_mismatch(checkpoint: Mapping[str, Any], module: TranslationModule, *, sharded: bool = False) -> str | None:
    """Describes the first weight or moment in a checkpoint that does not fit this run; None if all fit.

    Raises any error if parts of the checkpoint are of another kind.

    Args:
        checkpoint: content of the file.
        module: module of this run.
        sharded: whether it is trained with FSDP, which also numbers frozen parameters.
    """
    return next(_problems(checkpoint, module, sharded), None)


def _problems(checkpoint: Mapping[str, Any], module: TranslationModule, sharded: bool) -> Iterator[str]:
    weights = module.state_dict()
    # current_model_state has the trained weights if state_dict is an average.
    for part in ("state_dict", "current_model_state"):
        yield from _weight_problems(checkpoint.get(part, weights), weights, part)
    (saved,) = checkpoint["optimizer_states"]
    fresh, place = make_optimizer(module.optimizer, module.model).state_dict(), "optimizer_states.0"
    numbers = [n for n, p in enumerate(module.model.parameters()) if p.requires_grad or not sharded]
    for found, like in zip(saved["param_groups"], fresh["param_groups"], strict=True):
        if found["params"] != [numbers[number] for number in like["params"]]:
            yield f"{place} has other parameters than this model"
    state, stepped = saved["state"], _state_after_a_step(module)
    if stepped is None:
        return
    stepped = {numbers[number]: like for number, like in stepped.items()}
    for number in state.keys() | {numbers[number] for number in fresh["state"]}:
        found, like = state[number], stepped[number]
        if found.keys() != like.keys():
            yield f"{place} has {_names(found)} for parameter {number}, but this optimizer has {_names(like)}"
            return
        for name, value in found.items():
            if not _is_alike(value, like[name]):
                shape = tuple(value.shape) if isinstance(value, Tensor) else shorten(value)
                expected = (
                    f"{tuple(like[name].shape)} with all its values" if isinstance(like[name], Tensor) else "a number"
                )
                yield f"{place}.state.{number}.{name} is {shape}, expected {expected}"


def _weight_problems(saved: Mapping[str, Any], weights: Mapping[str, Tensor], part: str) -> Iterator[str]:
    if not all(map(is_weight, saved.values())):
        yield f"{part} has a weight without all its values"
    elif different := describe_mismatch(saved, weights):
        yield different
    if isinstance(ids := saved.get(_WORDS), Tensor):
        limit = max(weight.shape[0] for weight in weights.values() if weight.dim())
        if len(ids.unique()) < len(ids) or not bool(((ids >= 0) & (ids < limit)).all()):
            yield f"{_WORDS} of {part} does not hold distinct words of the vocabulary"


def _state_after_a_step(module: TranslationModule) -> dict[int, dict[str, Any]] | None:
    """Returns the optimizer's state by the number of the parameter, after a step on the meta device.

    None for a user's optimizer that reads values, and so cannot take such a step.
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


def _names(state: Mapping[str, Any]) -> str:
    return f"values named {', '.join(map(str, state)):.100}"


def _is_alike(found: Any, fresh: Any) -> bool:
    """Tells whether two values have the same type, and tensors the same shape and layout; precision may differ."""
    if not isinstance(fresh, Tensor):
        return type(found) is type(fresh)
    if not is_weight(found) or found.is_complex() or found.is_floating_point() != fresh.is_floating_point():
        return False
    return found.shape == fresh.shape and (found.is_contiguous() or found.stride() == fresh.stride())
