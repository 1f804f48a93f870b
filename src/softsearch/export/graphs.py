"""Exports the encoder and the decoder's step as ONNX graphs for ``softsearch.runtime.session``."""

import copy
import gc
import warnings
from typing import Any

import onnx.parser
import torch
from onnx.helper import make_node
from onnxscript import optimizer
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

from softsearch.export.example import BEAMS, SENTENCES, SLOTS, SRC_LEN, Example, memory_of
from softsearch.export.forms import make_exportable, see_all
from softsearch.export.graph_parts import GREEDY_STEP, MOST_INSIDE, quiet, share_embedding, write_graph
from softsearch.export.recurrences import OPSET, bound_scans, exportable_loop
from softsearch.export.shortlist import add_shortlist
from softsearch.models.interface import DecoderState, Memory, Tensors, over_tokens
from softsearch.models.output_layers import check_shortlist
from softsearch.models.recurrence import Recurrence
from softsearch.models.seq2seq import Seq2Seq
from softsearch.runtime.manifest import DECODER_STEP, ENCODER
from softsearch.runtime.onnx_state import BLOCK
from softsearch.text.vocabulary import BOS

# The best words are in the blocks of 64 with the greatest maxima, which one fast pass finds. The order of the blocks is
# kept, so that words with equal scores are ordered by id.
_TOP_K = f"""
top_k (float[sentences, beams, vocab] padded_log_probs, int64[1] k)
    => (float[sentences, beams, k] log_probs, int64[sentences, beams, k] candidates)
{{
    k_shape = Constant<value_ints = [0, 0, -1, {BLOCK}]>()
    k_row = Constant<value_ints = [0, 0, -1]>()
    k_last = Constant<value_ints = [-1]>()
    k_size = Constant<value_ints = [{BLOCK}]>()
    k_by_block = Reshape(padded_log_probs, k_shape)
    k_maxima = ReduceMax<keepdims = 0>(k_by_block, k_last)
    k_blocks = Shape<start = 2>(k_maxima)
    k_count = Min(k, k_blocks)
    k_greatest, k_best = TopK<axis = -1, sorted = 0>(k_maxima, k_count)
    k_chosen, k_order = TopK<axis = -1, largest = 0>(k_best, k_count)
    k_index = Unsqueeze(k_chosen, k_last)
    k_words = GatherND<batch_dims = 2>(k_by_block, k_index)
    k_few = Reshape(k_words, k_row)
    log_probs, k_within = TopK<axis = -1>(k_few, k)
    k_number = Div(k_within, k_size)
    k_block = GatherElements<axis = -1>(k_chosen, k_number)
    k_begin = Mul(k_block, k_size)
    k_offset = Mod(k_within, k_size)
    candidates = Add(k_begin, k_offset)
}}
"""
# ONNX Runtime computes every output, fetched or not, so an input of the step sets how many log probabilities to return
# by id: all or 0. The slice removes the padding.
_ALL = """
every (float[sentences, beams, vocab] padded_log_probs, int64[1] all)
    => (float[sentences, beams, all] all_log_probs)
{
    all_begin = Constant<value_ints = [0]>()
    all_axis = Constant<value_ints = [2]>()
    all_log_probs = Slice(padded_log_probs, all_begin, all, all_axis)
}
"""


def export_graphs(model: Seq2Seq, *, shortlist: bool = False, greedy: bool = True) -> dict[str, bytes]:
    """Returns the graphs' files by name; does not change the model.

    Args:
        model: the trained model.
        shortlist: whether the step is for shortlists, too.
        greedy: whether there is also ``GREEDY_STEP``, a trace of its own, of which ``softsearch.export.search_loop``
            makes the graph of a bundle.
    """
    same = {id(weight): nn.Parameter(weight.data, weight.requires_grad) for weight in model.parameters()}
    model = copy.deepcopy(model, same).eval().float().cpu()  # with the memory of the weights, which nothing changes
    if shortlist:
        check_shortlist(model.decoder)
    missing = _pad_vocabulary(model)
    make_exportable(model)
    example = Example(model)
    step = _export_step(_StepGraph(model, missing), example, shortlist=shortlist)
    greedy_step = _export_greedy(model, missing, example) if greedy else {}
    for name, module in list(model.named_modules()):  # a step has no loop, but computing the first state may need one
        if isinstance(module, Recurrence):
            model.set_submodule(name, exportable_loop(module))
    # The tracer requires a dynamic axis to be longer than 1, unlike the graph; this minimum ensures it for positions.
    axes = {0: SENTENCES, 1: Dim("src_len", min=model.encoder.description.tokens_per_position + 1)}
    encoder = _export(
        _EncoderGraph(model),
        {name: (tensor, axes) for name, tensor in example.source.items()},
        [*example.memory_names, *example.cache_names, *example.slot_names],
    )
    _drop(encoder.graph.output, set(example.memory_names) - {value.name for value in step.graph.input})
    optimizer.remove_unused_nodes(encoder)
    bound_scans(encoder.graph, "src_tokens")
    share_embedding(encoder.graph, step.graph)
    return write_graph(ENCODER, encoder) | write_graph(DECODER_STEP, step) | greedy_step


class _EncoderGraph(nn.Module):
    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, src_tokens: Tensor, src_mask: Tensor, src_features: Tensor | None = None) -> Tensors:
        state = self.model.encode(src_tokens, src_features, src_mask)
        cache = (c[:, None] for c in state.cache)
        return (*memory_of(state.memory, self.model.encoder.description), *cache, *state.slots)


class _StepGraph(nn.Module):
    def __init__(self, model: Seq2Seq, missing: int) -> None:
        super().__init__()
        self.decoder, self.missing = model.decoder, missing
        self.tokens_per_position = model.encoder.description.tokens_per_position
        self.has_own_mask = model.encoder.description.has_own_mask

    def forward(
        self,
        tokens: Tensor,
        position: Tensor,
        parents: Tensor | None,
        src_mask: Tensor,
        memory: Tensors,
        cache: Tensors,
        slots: Tensors = (),
    ) -> Tensors:
        states, *projected = memory
        mask = projected.pop() if self.has_own_mask else src_mask
        rows = tuple((c if parents is None else _by_parents(c, parents)).flatten(0, 1) for c in cache)
        state = DecoderState(Memory(states, mask, tuple(projected)), rows, position.flatten(), slots)
        output = self.decoder.step(tokens.flatten(), state)
        optional: Tensors = ()
        if output.alignments is not None:
            optional = (over_tokens(output.alignments, src_mask, self.tokens_per_position),)
        by_row = (self._log_probs(output.logits), *optional, *output.state.cache)
        return (*(t.unflatten(0, tokens.shape) for t in by_row), *output.state.slots)

    def _log_probs(self, logits: Tensor) -> Tensor:
        if self.missing:
            logits = functional.pad(logits, (0, self.missing), value=-torch.inf)
        return logits.log_softmax(-1)


class _GreedyGraph(nn.Module):
    """The step of one sentence's only hypothesis, whose caches stay in their places: its two best words."""

    def __init__(self, step: _StepGraph) -> None:
        super().__init__()
        self.step = step

    def forward(
        self,
        tokens: Tensor,
        position: Tensor,
        src_mask: Tensor,
        memory: Tensors,
        cache: Tensors = (),
        slots: Tensors = (),
    ) -> Tensors:
        cache = cache or (slots[0].new_zeros(1, 1, slots[0].shape[2]),)  # all slots are its own
        log_probs, *others = self.step(tokens, position, None, src_mask, memory, cache, slots)
        return (*log_probs.topk(2), *others)


def _by_parents(values: Tensor, parents: Tensor) -> Tensor:
    """``[sentences, previous beams, ...]`` -> ``[sentences, beams, ...]``, with one operator."""
    shape = (*parents.shape, *values.shape[2:])
    inputs = (values, parents[:, :, None])
    return torch.onnx.ops.symbolic(
        "ai.onnx::GatherND", inputs, {"batch_dims": 1}, dtype=values.dtype, shape=shape, version=OPSET
    )


def _export_step(step: _StepGraph, example: Example, *, shortlist: bool) -> onnx.ModelProto:
    rows = {0: SENTENCES, 1: BEAMS}
    alignments = ["alignments"] if step.decoder.has_attention else []
    states = [*example.cache_names, *example.slot_names]
    exported = _export(
        step,
        {
            "tokens": (torch.full_like(example.parents, BOS), rows),
            "position": (torch.full_like(example.parents, 2), rows),
            "parents": (example.parents, rows),
            "src_mask": (example.src_mask, {0: SENTENCES, 1: SRC_LEN}),
            "memory": (example.memory, example.memory_axes),
            "cache": (example.cache, example.cache_axes),
        }
        | ({"slots": (example.slots, ({0: SENTENCES, 2: SLOTS},) * len(example.slots))} if example.slots else {}),
        ["padded_log_probs", *alignments, *(f"next_{name}" for name in states)],
        ["tokens", "position", "parents", "src_mask", *example.memory_names, *states],
    )
    _measure_the_mask(exported.graph)
    consumed = {name for node in exported.graph.node for name in node.input}
    _drop(exported.graph.input, {value.name for value in exported.graph.input} - consumed)
    if shortlist:
        add_shortlist(exported.graph)
    _append_top_k(exported.graph)
    return exported


def _export_greedy(model: Seq2Seq, missing: int, example: Example) -> dict[str, bytes]:
    """Returns ``GREEDY_STEP``; nothing for a large model, whose products take all the time of a step."""
    if sum(weight.nbytes for weight in model.weights()) > MOST_INSIDE:
        return {}
    description = model.encoder.description
    if not description.has_own_mask and not description.source_dims:
        see_all(model.decoder)
    step = _StepGraph(model, missing)

    def alone(tensors: Tensors, axes: Any, row: int) -> tuple[Tensors, Any]:
        """The first sentence, or row, and the axes that still vary."""
        kept = tuple({axis: size for axis, size in of.items() if axis > row} for of in axes)
        return tuple(t[:1] if row == 0 else t[:1, :1] for t in tensors), kept

    inputs = {
        "tokens": (torch.full((1, 1), BOS), {}),
        "position": (torch.full((1, 1), 2), {}),
        "src_mask": (example.src_mask[1:2], {1: SRC_LEN}),
        "memory": alone(example.memory, example.memory_axes, 0),
    }
    if example.slots:
        inputs["slots"] = alone(example.slots, ({0: SENTENCES, 2: SLOTS},) * len(example.slots), 0)
    else:
        inputs["cache"] = alone(example.cache, example.cache_axes, 1)
    states = [*example.cache_names, *example.slot_names]
    alignments = ["alignments"] if model.decoder.has_attention else []
    exported = _export(
        _GreedyGraph(step),
        inputs,
        ["log_probs", "candidates", *alignments, *(f"next_{name}" for name in states)],
        ["tokens", "position", "src_mask", *example.memory_names, *(example.slot_names or example.cache_names)],
    )
    _measure_the_mask(exported.graph)
    if example.slots:
        _drop(exported.graph.output, {"next_cache.0"})
        optimizer.remove_unused_nodes(exported)
    consumed = {name for node in exported.graph.node for name in node.input}
    _drop(exported.graph.input, {value.name for value in exported.graph.input} - consumed)
    return write_graph(GREEDY_STEP, exported)


def _export(
    module: nn.Module, inputs: dict[str, Any], outputs: list[str], input_names: list[str] | None = None
) -> onnx.ModelProto:
    """Exports a module from an example and the dynamic axes of each argument, which may consist of several inputs."""
    with quiet(), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about how the exporter uses its libraries; parity is checked later
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
    assert program is not None
    model = program.model_proto
    del program
    gc.collect()  # what it traced refers to itself, and holds weights
    _drop_metadata(model.graph)
    return model


def _measure_the_mask(graph: onnx.GraphProto) -> None:
    """Reads sizes from ``src_mask`` where possible, so that no other input is needed only for its shape."""
    axes = {value.name: [axis.dim_param for axis in value.type.tensor_type.shape.dim] for value in graph.input}
    for node in graph.node:
        if node.op_type == "Shape" and node.input[0] in axes:
            (size,) = (axes[node.input[0]][attribute.i] for attribute in node.attribute if attribute.name == "start")
            if size in axes["src_mask"]:
                start = axes["src_mask"].index(size)
                node.CopyFrom(make_node("Shape", ["src_mask"], node.output, start=start, end=start + 1))


def _drop_metadata(graph: onnx.GraphProto) -> None:
    """Drops stack traces, which contain paths of this machine."""
    for part in (*graph.node, *graph.value_info):
        del part.metadata_props[:]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _drop_metadata(attribute.g)


def _drop(values: Any, names: set[str]) -> None:
    remaining = [value for value in values if value.name not in names]
    del values[:]
    values.extend(remaining)


def _pad_vocabulary(model: Seq2Seq) -> int:
    """Adds words of probability 0 to the output layer, to a multiple of ``BLOCK``.

    Returns the number of words missing in its output if the layer is not linear.
    """
    output, embedding = model.decoder.output_projection, model.decoder.embedding
    missing = -output.out_features % BLOCK
    if not isinstance(output, nn.Linear):
        return missing
    tied = embedding.weight is output.weight
    output.weight = nn.Parameter(functional.pad(output.weight.data, (0, 0, 0, missing)))
    output.bias = nn.Parameter(functional.pad(output.bias.data, (0, missing), value=-torch.inf))
    output.out_features += missing
    if tied:
        embedding.weight = output.weight
    return 0


def _append_top_k(graph: onnx.GraphProto) -> None:
    """Replaces the output of padded log probabilities by the ``k`` best with their tokens, and those for ``all``."""
    _drop(graph.output, {"padded_log_probs"})
    top_k, every = onnx.parser.parse_graph(_TOP_K), onnx.parser.parse_graph(_ALL)
    graph.node.extend([*top_k.node, *every.node])
    graph.input.extend([top_k.input[1], every.input[1]])
    for index, output in enumerate([*top_k.output, *every.output]):
        graph.output.insert(index, output)
