"""The contract of a bundle's graphs: names, types and shapes of their inputs and outputs."""

from softsearch.errors import BundleError
from softsearch.runtime.manifest import DECODER_STEP, EMBEDDING_TABLE, ENCODER, FEATURES

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


def check_contract(
    encoder_inputs: dict[str, str], encoded: dict[str, str], step_inputs: dict[str, str], step_outputs: dict[str, str]
) -> None:
    """Refuses inputs and outputs (name to dtype) that are missing, unknown or of the wrong dtype."""
    passed_on = {name: dtype for name, dtype in encoded.items() if name.startswith(("memory.", "cache.", "slots."))}
    cache = [name for name in passed_on if not name.startswith("memory.")]
    outputs = STEP_OUTPUTS | {f"next_{name}": encoded[name] for name in cache}
    check_ports(ENCODER, "input", encoder_inputs, _ENCODER_INPUTS, needed=["src_tokens"])
    check_ports(ENCODER, "output", encoded, passed_on, needed=[])
    needed = ["tokens", "k", *cache, *(["parents"] if cache else [])]
    if SHORTLIST_INPUTS.keys() & step_inputs.keys():
        needed += [*SHORTLIST_INPUTS, "all"]
    check_ports(DECODER_STEP, "input", step_inputs, _STEP_INPUTS | SHORTLIST_INPUTS | passed_on, needed=needed)
    check_ports(DECODER_STEP, "output", step_outputs, outputs | _OPTIONAL_OUTPUTS, needed=list(outputs))


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
            f"{file}: {name} came with the axes {list(axes)}, expected {list(expected)}; export the bundle again"
        )
