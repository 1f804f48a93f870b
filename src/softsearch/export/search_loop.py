"""Steps of a decoder and of its beam search as an ONNX ``Loop``.

The single graph (``softsearch.export.single_graph``) runs the loop to the end. In a bundle it is
``decoder_block.onnx``, which ``softsearch.search.blocks`` calls for some steps at a time. ``decoder_greedy.onnx`` does
the same for one sentence with a beam of 1, in half as many operators.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import onnx
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnxscript import optimizer

from softsearch.export import search_graph
from softsearch.export.graph_parts import GREEDY_STEP, Parts, whole_graph
from softsearch.export.parity import LOG_PROBS, Backend, compare, random_sentences, searching
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.graph_check import STEPS
from softsearch.runtime.graph_session import describe_onnx, open_graph, with_constants
from softsearch.runtime.manifest import DECODER_BLOCK, DECODER_GREEDY, DECODER_STEP
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.beam import BeamSearch

_BEAM = 3  # for the comparison of blocks with single steps
# Values are named like the functions' arguments; the prefix is the part of the graph that computes them.
_STATE = {  # type, axes, value after each step
    "tokens": (TensorProto.INT64, ("sentences", "beams"), "advance/next_tokens"),
    "parents": (TensorProto.INT64, ("sentences", "beams"), "advance/parents"),
    "log_probs": (TensorProto.DOUBLE, ("sentences", "beams"), "advance/next_log_probs"),
    "best_scores": (TensorProto.DOUBLE, ("sentences", "n_best"), "advance/next_best_scores"),
    "ended": (TensorProto.INT64, ("sentences", 1), "advance/next_ended"),
}
SETTINGS = {  # type, axes
    "limits": (TensorProto.INT64, ("sentences", 1)),
    "norms": (TensorProto.DOUBLE, ("lengths",)),
    "limit_norms": (TensorProto.DOUBLE, ("sentences", 1)),
    **dict.fromkeys(("size", "returned", "k", "twice"), (TensorProto.INT64, (1,))),
}
_COUNTS = dict.fromkeys((STEPS, "written"), (TensorProto.INT64, ()))
HISTORY = {  # added by each step
    "all_parents": "advance/added_parents",
    "all_tokens": "advance/added_tokens",
    "survivors": "advance/survivors",
    "end_log_probs": "advance/end_log_probs",
    "end_rows": "advance/end_rows",
}
_CHECKED = {"checked": "check/total"}
_CHOICES = ("steps", "sentences", "size")
_ADDED = {  # type, axes
    **dict.fromkeys(("all_parents", "all_tokens", "end_rows"), (TensorProto.INT64, _CHOICES)),
    **dict.fromkeys(("survivors", "end_log_probs"), (TensorProto.DOUBLE, _CHOICES)),
    "checked": (TensorProto.FLOAT, ("steps",)),
}
_TYPES = _COUNTS | SETTINGS | {name: (dtype, axes) for name, (dtype, axes, _) in _STATE.items()}
_RETURNED = {f"next_{name}": _TYPES[name] for name in ("log_probs", "best_scores", "ended")} | _ADDED


def with_block(bundle: Bundle, tolerance: float) -> Bundle:
    """Adds the graphs of blocks of steps to a bundle; their log probabilities may differ by ``tolerance``.

    Raises:
        BundleError: one translates differently.
    """
    step = open_graph(bundle.files, DECODER_STEP)
    files = {name: file for name, file in bundle.files.items() if not name.startswith(GREEDY_STEP)}
    blocks = {DECODER_BLOCK: block_graph(step.model)}
    if GREEDY_STEP in bundle.files:
        blocks[DECODER_GREEDY] = greedy_graph(bundle.files)
    graphs = {
        name.removesuffix(".onnx"): describe_onnx(with_constants(open_graph(blocks, name), step)) for name in blocks
    }
    manifest = replace(bundle.manifest, graphs=bundle.manifest.graphs | graphs)
    whole = replace(bundle, files=files | blocks, manifest=manifest)
    step_fn = OnnxStepFunction(whole)
    for beam, lengths in ((_BEAM, (1,)), (_BEAM, (12, 5)), (1, (12,))):
        search = BeamSearch(beam=min(beam, manifest.tgt_vocab_size - 1))
        src = random_sentences(lengths, manifest.src_vocab_size, manifest.max_src_tokens, manifest.feature_dim)
        names = f"translations by {DECODER_GREEDY if beam == 1 else DECODER_BLOCK}", f"those by {DECODER_STEP}"
        found, expected = (searching(partial(search, each)) for each in (step_fn, step_fn.without_block()))
        compare(_log_probs(found), _log_probs(expected), src, names=names, tolerance=tolerance)
    return whole


def _log_probs(backend: Backend) -> Backend:
    """Reduces a backend to its log probabilities: rounding may choose another translation that is as good."""
    return lambda src: [{LOG_PROBS: numbers[LOG_PROBS]} for numbers in backend(src)]


def block_graph(step: bytes) -> bytes:
    """Returns the graph of a block of steps, without the constants of ``step``, which the runtime adds.

    It reads the search's state, returns the next one, and what each step added to the history.
    """
    model = onnx.load_model_from_string(step)
    for value in [value for value in model.graph.output if value.name in ("all_log_probs", "alignments")]:
        model.graph.output.remove(value)
    optimizer.remove_unused_nodes(model)
    graph = model.graph
    weights = [tensor.name for tensor in graph.initializer]
    graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in graph.initializer)
    del graph.initializer[:]
    ports = {name: helper.make_tensor_value_info(name, *kind) for name, kind in _TYPES.items()}
    ports = {value.name: value for value in graph.input if value.name not in weights} | ports
    parts, names = Parts(), {name: name for name in (*ports, *weights)}
    caches = [name for name in ports if name.startswith(("cache.", "slots."))]
    results = {name: name for name in _ADDED} | {name: f"next_{name}" for name in (*_STATE, *caches)}
    loop = search_loop(graph, parts, names, results, _CHECKED)
    outputs = [helper.make_tensor_value_info(name, *kind) for name, kind in _RETURNED.items()]
    outputs += [value for value in graph.output if value.name.removeprefix("next_") in caches]
    read = {name for node in (loop, *loop.attribute[0].g.node) for name in node.input}
    inputs = [value for name, value in ports.items() if name in read]
    block = helper.make_graph([loop], "block", inputs, outputs, parts.constants)
    whole = helper.make_model(block, opset_imports=model.opset_import, ir_version=model.ir_version)
    return bytes(whole.SerializeToString())


def greedy_graph(files: Mapping[str, bytes]) -> bytes:
    """Returns the graph of a block of steps of one sentence with a beam of 1, which returns what ``block_graph`` does.

    Args:
        files: with ``GREEDY_STEP``, and ``decoder_step.onnx``, whose large constants the graph shares.
    """
    step, model = (whole_graph(files, name) for name in (DECODER_STEP, GREEDY_STEP))
    for value in [value for value in model.graph.output if value.name == "alignments"]:
        model.graph.output.remove(value)
    optimizer.remove_unused_nodes(model)
    parts = Parts()
    for tensor in step.graph.initializer:
        parts.constant(tensor)
    shared = len(parts.constants)
    ports = {name: helper.make_tensor_value_info(name, *kind) for name, kind in _TYPES.items()}
    ports |= {value.name: value for value in model.graph.input if value.name not in ports}
    caches = [value.name for value in step.graph.input if value.name.startswith(("cache.", "slots."))]
    results = {name: name for name in _RETURNED} | {name: f"next_{name}" for name in caches}
    nodes = greedy_loop(model.graph, parts, {name: name for name in ports}, results)
    used = {name for node in nodes for name in node.input}
    used |= {name for node in nodes[0].attribute[0].g.node for name in node.input}
    outputs = [helper.make_tensor_value_info(name, *kind) for name, kind in _RETURNED.items()]
    outputs += [value for value in step.graph.output if value.name.removeprefix("next_") in caches]
    own = [tensor for tensor in parts.constants[shared:] if tensor.name in used]
    inputs = [value for name, value in ports.items() if name in used]
    block = helper.make_graph(nodes, "greedy", inputs, outputs, own)
    whole = helper.make_model(block, opset_imports=model.opset_import, ir_version=model.ir_version)
    return bytes(whole.SerializeToString())


def greedy_loop(
    step: GraphProto, parts: Parts, names: Mapping[str, str], results: Mapping[str, str]
) -> list[NodeProto]:
    """Returns the operators of a greedy search, the loop first: ``search_loop`` with ``GREEDY_STEP`` as ``step``."""
    axes = {value.name: len(value.type.tensor_type.shape.dim) for value in step.input}
    types = {value.name: value.type.tensor_type.elem_type for value in step.input}
    state = {"tokens": "follow/next_tokens"}
    state |= {name: f"greedy_step/next_{name}" for name in types if name.startswith(("cache.", "slots."))}
    inside = {**names, **{name: f"greedy_body/{name}" for name in (*state, "iteration")}}
    nodes = parts.function(search_graph.locate, inside)
    nodes += parts.place(step, "greedy_step", inside | {"position": "locate/position"})
    nodes += parts.function(search_graph.follow, {"candidates": "greedy_step/candidates"})
    inputs = [helper.make_tensor_value_info(inside["iteration"], TensorProto.INT64, ())]
    inputs += [helper.make_tensor_value_info("greedy_body/going", TensorProto.BOOL, ())]
    inputs += [helper.make_tensor_value_info(inside[name], types[name], [None] * axes[name]) for name in state]
    found = {"step_log_probs": "greedy_loop/log_probs", "candidates": "greedy_loop/candidates"}
    added = {"greedy_step/log_probs": found["step_log_probs"], "greedy_step/candidates": found["candidates"]}
    outputs = ["follow/going", *state.values(), *added]
    body = helper.make_graph(nodes, "search", inputs, [ValueInfoProto(name=name) for name in outputs])
    last = [results.get(name, f"greedy_loop/{name}") for name in state]
    first = [names["steps"], "", *(names[name] for name in state)]  # "": there is always a first step
    loop = helper.make_node("Loop", first, [*last, *added.values()], "greedy_loop", body=body)
    given = {name.replace("all_", "added_", 1): result for name, result in results.items()}
    nodes = [loop, *parts.function(search_graph.greedy, {**names, **found}, given)]
    if "slots.0" in types:
        nodes += parts.function(search_graph.see_slots, {"slots": results["slots.0"]})
        nodes.append(helper.make_node("Cast", ["see_slots/bias"], [results["cache.0"]], to=types["slots.0"]))
    return nodes


def search_loop(
    step: GraphProto, parts: Parts, names: Mapping[str, str], results: Mapping[str, str], more: Mapping[str, str]
) -> NodeProto:
    """Returns the operator that searches.

    Args:
        step: ``decoder_step.onnx``.
        parts: collects the constants.
        names: names of the values of ``steps`` (the largest number to run), of ``written`` (the number of tokens before
            them), of the settings, of the state before the first step, and of other inputs of ``step``.
        results: names for the state after the last step, and for the history, ``[steps, ...]``.
        more: what each step adds to the history, other than ``HISTORY``.
    """
    types = {value.name: value.type.tensor_type.elem_type for value in step.input}
    axes = {value.name: [None] * len(value.type.tensor_type.shape.dim) for value in step.input}  # of any size
    state = {name: (dtype, after) for name, (dtype, _, after) in _STATE.items()}
    for name, dtype in types.items():
        if name.startswith(("cache.", "slots.")):
            state[name] = (dtype, f"step/next_{name}")
    first = [names["steps"], "", *(names[name] for name in state)]  # "": there is always a first step
    history = {**HISTORY, **more}
    names = {**names, **{name: f"body/{name}" for name in (*state, "iteration")}}
    nodes = parts.function(search_graph.count, names)
    names |= {"step": "count/step", "position": "count/position"}
    nodes += parts.place(step, "step", names)
    names |= {"step_log_probs": "step/log_probs", "candidates": "step/candidates", "alignments": "step/alignments"}
    nodes += parts.function(search_graph.rank, names)
    names |= {"best": "rank/best", "tokens": "rank/tokens", "rows": "rank/rows"}
    nodes += parts.function(search_graph.advance, names)
    for function in (search_graph.check, search_graph.keep_attention):
        if any(value.startswith(f"{function.name}/") for value in more.values()):
            nodes += parts.function(function, names)
    inputs = [helper.make_tensor_value_info("body/iteration", TensorProto.INT64, ())]
    inputs += [helper.make_tensor_value_info("body/going", TensorProto.BOOL, ())]
    inputs += [helper.make_tensor_value_info(f"body/{name}", kind, axes.get(name)) for name, (kind, _) in state.items()]
    outputs = ["advance/going", *(after for _, after in state.values()), *history.values()]
    body = helper.make_graph(nodes, "search", inputs, [ValueInfoProto(name=name) for name in outputs])
    last = [results.get(name, f"loop/last_{name}") for name in state] + [results[name] for name in history]
    return helper.make_node("Loop", first, last, "loop", body=body)
