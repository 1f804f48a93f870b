"""ONNX graphs of the encoder and of the decoder's step, which :mod:`softsearch.runtime.session` runs."""

import copy
import logging
import warnings
from typing import Any

import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn
from torch.export import Dim

from softsearch.export.recurrences import OPSET, OnnxRecurrence
from softsearch.models.interface import DecoderState, Memory, Seq2Seq
from softsearch.models.recurrence import Recurrence
from softsearch.runtime.manifest import DECODER_STEP, ENCODER
from softsearch.text.vocabulary import BOS, EOS, PAD

Tensors = tuple[Tensor, ...]
SENTENCES, BEAMS, PREVIOUS_BEAMS, SRC_LEN, PAST = (
    Dim(name, min=1) for name in ("sentences", "beams", "previous_beams", "src_len", "past")
)


def export_graphs(model: Seq2Seq) -> dict[str, bytes]:
    """Returns the graphs' files by name; the model itself stays as it is."""
    model = copy.deepcopy(model).eval().float().cpu()
    example = _Example(model)
    for name, module in list(model.encoder.named_modules()):  # a decoder's step has no loop
        if isinstance(module, Recurrence):
            model.encoder.set_submodule(name, OnnxRecurrence(module))
    step = _export_step(model, example)
    axes = {0: SENTENCES, 1: SRC_LEN}
    encoder = _export(
        _EncoderGraph(model),
        {"src_tokens": (example.src_tokens, axes), "src_mask": (example.src_mask, axes)},
        [*example.memory_names, *example.cache_names],
    )
    _drop(encoder.graph.output, set(example.memory_names) - {value.name for value in step.graph.input})
    return {ENCODER: encoder.SerializeToString(), DECODER_STEP: step.SerializeToString()}


class _Example:
    """Tensors to trace with: no size is 1 and no two are equal, so that none is taken for a constant."""

    def __init__(self, model: Seq2Seq) -> None:
        sentences, src_len, beams, previous = 3, 7, 4, 5
        self.src_tokens = torch.full((sentences, src_len), EOS)
        self.src_tokens[0, -2:] = PAD
        self.src_mask = self.src_tokens != PAD
        with torch.no_grad():
            state = model.encode(self.src_tokens)
            state = state.select(torch.arange(sentences).repeat_interleave(previous))
            once = model.decoder.step(torch.full((sentences * previous,), BOS), state).state
            twice = model.decoder.step(torch.full((sentences * previous,), BOS), once).state
        self.memory = tuple(m.contiguous() for m in (state.memory.states, *state.memory.projected))
        self.cache = tuple(c.unflatten(0, (sentences, previous)) for c in twice.cache)
        self.memory_names = [f"memory.{i}" for i in range(len(self.memory))]
        self.cache_names = [f"cache.{i}" for i in range(len(self.cache))]
        self.parents = torch.arange(beams).expand(sentences, beams).clone()
        pairs = zip(once.cache, twice.cache, strict=True)
        # The axes that grow with each token, counted with the beams as an axis of their own.
        self.growing = [[i + 1 for i in range(1, a.dim()) if a.shape[i] != b.shape[i]] for a, b in pairs]


class _EncoderGraph(nn.Module):
    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> Tensors:
        state = self.model.decoder.init_state(self.model.encoder(src_tokens, src_mask))
        return (state.memory.states, *state.memory.projected, *(c[:, None] for c in state.cache))


class _StepGraph(nn.Module):
    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.decoder = model.decoder

    def forward(
        self, tokens: Tensor, position: Tensor, parents: Tensor, src_mask: Tensor, memory: Tensors, cache: Tensors
    ) -> Tensors:
        sentences = tokens.shape[0]
        first = torch.arange(sentences, device=tokens.device)[:, None] * cache[0].shape[1]
        rows = (first + parents).flatten()
        state = DecoderState(
            Memory(memory[0], src_mask, tuple(memory[1:])),
            tuple(c.flatten(0, 1)[rows] for c in cache),
            position.flatten(),
        )
        output = self.decoder.step(tokens.flatten(), state)
        alignments = () if output.alignments is None else (output.alignments,)
        every_row = (output.logits.log_softmax(-1), *alignments, *output.state.cache)
        return tuple(t.unflatten(0, tokens.shape) for t in every_row)


def _export_step(model: Seq2Seq, example: _Example) -> onnx.ModelProto:
    rows = {0: SENTENCES, 1: BEAMS}
    src_len = example.src_mask.shape[1]
    memory_axes = tuple(
        {0: SENTENCES} | {i: SRC_LEN for i in range(1, m.dim()) if m.shape[i] == src_len} for m in example.memory
    )
    cache_axes = tuple({0: SENTENCES, 1: PREVIOUS_BEAMS} | dict.fromkeys(axes, PAST) for axes in example.growing)
    alignments = ["alignments"] if model.decoder.has_attention else []
    exported = _export(
        _StepGraph(model),
        {
            "tokens": (torch.full_like(example.parents, BOS), rows),
            "position": (torch.full_like(example.parents, 2), rows),
            "parents": (example.parents, rows),
            "src_mask": (example.src_mask, {0: SENTENCES, 1: SRC_LEN}),
            "memory": (example.memory, memory_axes),
            "cache": (example.cache, cache_axes),
        },
        ["all_log_probs", *alignments, *(f"next_{name}" for name in example.cache_names)],
        ["tokens", "position", "parents", "src_mask", *example.memory_names, *example.cache_names],
    )
    consumed = {name for node in exported.graph.node for name in node.input}
    _drop(exported.graph.input, {value.name for value in exported.graph.input} - consumed)
    _append_top_k(exported.graph)
    return exported


def _export(
    module: nn.Module, inputs: dict[str, Any], outputs: list[str], input_names: list[str] | None = None
) -> onnx.ModelProto:
    """Exports a module from an example and the dynamic axes of each argument, which may hold several inputs."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)  # the exporters' messages about what they did and which packages are missing
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter's own use of its libraries; parity is what counts
            program = torch.onnx.export(
                module.eval(),
                kwargs={name: example for name, (example, _) in inputs.items()},
                dynamic_shapes={name: axes for name, (_, axes) in inputs.items()},
                input_names=input_names,
                output_names=outputs,
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
    finally:
        logging.disable(disabled)
    assert program is not None
    return program.model_proto


def _drop(values: Any, names: set[str]) -> None:
    remaining = [value for value in values if value.name not in names]
    del values[:]
    values.extend(remaining)


def _append_top_k(graph: onnx.GraphProto) -> None:
    """Replaces the output of all log-probabilities by the ``k`` best and their tokens."""
    _drop(graph.output, {"all_log_probs"})
    shape = ["sentences", "beams", "k"]
    graph.input.append(helper.make_tensor_value_info("k", TensorProto.INT64, [1]))
    graph.node.append(helper.make_node("TopK", ["all_log_probs", "k"], ["log_probs", "candidates"], axis=-1))
    graph.output.insert(0, helper.make_tensor_value_info("log_probs", TensorProto.FLOAT, shape))
    graph.output.insert(1, helper.make_tensor_value_info("candidates", TensorProto.INT64, shape))
