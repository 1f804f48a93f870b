"""The contract of a bundle's graphs: names, types and shapes of their inputs and outputs.

``decoder_block.onnx`` runs several decoder steps with beam search's choice: at most ``steps``, fewer if every sentence
is done. It reads the search's state: ``tokens`` and ``log_probs`` of the hypotheses (-inf where nothing may follow),
``[sentences, beams]``, the best scores of ended hypotheses, ``[sentences, n_best]``, and how many have ended. It
returns the next state and each step's choices. Its constants are those of ``decoder_step.onnx``.
``decoder_greedy.onnx`` returns the same for one sentence without padding and one hypothesis.
"""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.runtime.graph_check import STEPS
from softsearch.runtime.manifest import DECODER_BLOCK, DECODER_GREEDY, DECODER_STEP, EMBEDDING_TABLE, ENCODER, FEATURES

_ENCODER_INPUTS = {"src_tokens": "int64", "src_mask": "bool", EMBEDDING_TABLE: "float32", FEATURES: "float32"}
_STEP_INPUTS = {
    "tokens": "int64",
    "position": "int64",
    "parents": "int64",
    "k": "int64",
    "src_mask": "bool",
    "all": "int64",
}
SHORTLIST_INPUTS = {"shortlist": "int64", "shortlist_bias": "float32"}
STEP_OUTPUTS = {"log_probs": "float32", "candidates": "int64"}
_OPTIONAL_OUTPUTS = {"alignments": "float32", "all_log_probs": "float32"}
SETTINGS = {  # see softsearch.search.blocks
    "limits": "int64",
    "norms": "float64",
    "limit_norms": "float64",
    **dict.fromkeys(("size", "returned", "k", "twice"), "int64"),
}
STATE = {"log_probs": "float64", "best_scores": "float64", "ended": "int64"}
HISTORY = {  # for each step, [steps, sentences, beams]
    **dict.fromkeys(("all_parents", "all_tokens", "end_rows"), "int64"),
    **dict.fromkeys(("survivors", "end_log_probs"), "float64"),
}
CHECKED = "checked"  # [steps] sum of log probabilities: NaN or +inf if one is
Ports = tuple[list[str], dict[str, str]]  # required names, and the dtypes of all allowed names


def check_contract(
    bundle: str, graphs: Mapping[str, Mapping[str, Any]], described: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, dict[str, str]]]:
    """Checks the inputs and outputs of a bundle's graphs.

    Args:
        bundle: its name, for messages.
        graphs: what the manifest says of them.
        described: what they are, by graph and side.

    Returns:
        Their dtypes by graph, side and name.

    Raises:
        BundleError: the manifest says something else, or one is missing, unknown or of the wrong dtype.
    """
    ports: dict[str, dict[str, dict[str, str]]] = {}
    for name, sides in described.items():
        for side, actual in sides.items():
            if actual != (expected := graphs[name].get(side)):
                raise BundleError(
                    f"{bundle}: the {side} of {name}.onnx are {actual}, but manifest.json says {expected}; export the "
                    "bundle again"
                )
            ports.setdefault(name, {})[side] = {port["name"]: port["dtype"] for port in actual}
    encoded, step = ports["encoder"]["outputs"], ports["decoder_step"]
    passed_on = {name: dtype for name, dtype in encoded.items() if name.startswith(("memory.", "cache.", "slots."))}
    cache = [name for name in passed_on if not name.startswith("memory.")]
    outputs = STEP_OUTPUTS | {f"next_{name}": encoded[name] for name in cache}
    check_ports(ENCODER, "input", ports["encoder"]["inputs"], _ENCODER_INPUTS, needed=["src_tokens"])
    check_ports(ENCODER, "output", encoded, passed_on, needed=[])
    needed = ["tokens", "k", *cache, *(["parents"] if cache else [])]
    if SHORTLIST_INPUTS.keys() & step["inputs"].keys():
        needed += [*SHORTLIST_INPUTS, "all"]
    check_ports(DECODER_STEP, "input", step["inputs"], _STEP_INPUTS | SHORTLIST_INPUTS | passed_on, needed=needed)
    check_ports(DECODER_STEP, "output", step["outputs"], outputs | _OPTIONAL_OUTPUTS, needed=list(outputs))
    for file in (DECODER_BLOCK, DECODER_GREEDY):
        if block := ports.get(file.removesuffix(".onnx")):
            for side, (needed, allowed) in _block_ports(file, encoded, step["inputs"]).items():
                check_ports(file, side, block[f"{side}s"], allowed, needed=needed)
    return ports


def check_ports(file: str, side: str, ports: dict[str, str], allowed: dict[str, str], *, needed: list[str]) -> None:
    """Refuses inputs or outputs of one graph that are missing, unknown or of the wrong dtype."""
    for name, dtype in ports.items():
        if allowed.get(name) != dtype:
            expected = f"{name} of {allowed[name]}" if name in allowed else f"one of {sorted(allowed)}"
            raise BundleError(f"{file}: {side} {name} is of {dtype}, expected {expected}; export the bundle again")
    missing = [name for name in needed if name not in ports]
    if missing:
        raise BundleError(f"{file}: {side}s are {sorted(ports)}, expected also {missing}; export the bundle again")


def check_shape(file: str, name: str, axes: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Refuses an output of a wrong shape, which would otherwise fail somewhere in the search."""
    if axes != expected:
        raise BundleError(
            f"{file}: {name} has the axes {list(axes)}, expected {list(expected)}; export the bundle again"
        )


def _block_ports(file: str, encoded: dict[str, str], step_inputs: dict[str, str]) -> dict[str, Ports]:
    """The required and allowed ports of a block, by side, derived from the other graphs."""
    inputs = {STEPS: "int64", "written": "int64", "tokens": "int64", **SETTINGS, **STATE}
    caches = {name: dtype for name, dtype in encoded.items() if name.startswith(("cache.", "slots."))}
    outputs = {**{f"next_{name}": dtype for name, dtype in (STATE | caches).items()}, **HISTORY, CHECKED: "float32"}
    needed = [*inputs, *caches] if file == DECODER_BLOCK else [STEPS]
    return {"input": (needed, step_inputs | inputs), "output": (list(outputs), outputs)}


def read_choices(
    outputs: Mapping[str, NDArray[Any]], sizes: tuple[int, int, int, int], vocab_size: int
) -> dict[str, NDArray[Any]]:
    """Reads and checks the outputs of a block, without caches.

    Args:
        outputs: the outputs by name.
        sizes: the maximum steps, the sentences, the hypotheses of each, and the translations to return.
        vocab_size: size of the target vocabulary.

    Raises:
        BundleError: an output has a wrong shape, or names a word or a hypothesis that does not exist.
    """
    most, sentences, beams, n_best = sizes
    steps = len(outputs[CHECKED])
    shapes = dict.fromkeys(HISTORY, (steps, sentences, beams)) | {
        "next_log_probs": (sentences, beams),
        "next_best_scores": (sentences, n_best),
        "next_ended": (sentences, 1),
        CHECKED: (steps,),
    }
    most_of = {"all_tokens": vocab_size, "all_parents": beams, "end_rows": beams}
    for name, shape in shapes.items():
        values = outputs[name]
        if values.shape != shape or not 0 < steps <= most:
            raise BundleError(
                f"{DECODER_BLOCK}: {name} has the axes {list(values.shape)}, expected {list(shape)} and at most "
                f"{most} steps; export the bundle again"
            )
        if name in most_of and not 0 <= values.min() <= values.max() < most_of[name]:
            raise BundleError(
                f"{DECODER_BLOCK}: {name} holds numbers from {values.min()} to {values.max()}, expected 0 to "
                f"{most_of[name] - 1}; export the bundle again"
            )
    return {name: outputs[name] for name in shapes}
