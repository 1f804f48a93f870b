"""Models of older checkpoints, in the options and with the names of weights of this version."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

_CELLS = {"rnn": "ElmanCell", "lstm": "LSTMCell", "gru": "GRUCell", "input_forget": "InputForgetCell"}
_OF_CELLS = ("reset", "layer_norm", "recurrent_dropout", "transition_depth")
_CONDITIONAL = ("ConditionalGRUDecoder", "PointerGeneratorDecoder")
_CELL_OF = {"RNNsearchDecoder": "gru", "RNNencdecDecoder": "gru", "LookUpdateGenerateDecoder": "rnn"}
_CELL_OF |= dict.fromkeys(_CONDITIONAL, "gru") | {"ShowAttendTellDecoder": "lstm"}  # once no option of these
_RESET_AFTER = ("RNNencdecDecoder", *_CONDITIONAL)  # by default
_ATTENTIONS = {"content": "AdditiveAttention", "hybrid": "HybridAttention", "location": "LocationAttention"}
_ATTENTIONAL: dict[str, dict[str, Any]] = {  # by class: what was no option; the readout is by the option of its width
    "RNNsearchDecoder": {"initial_state": "BackwardState", "order": "look_generate_update"},
    "LookUpdateGenerateDecoder": {"initial_state": "BackwardState", "order": "look_update_generate"},
    "ConditionalGRUDecoder": {"initial_state": "MeanState"},
    "PointerGeneratorDecoder": {"initial_state": "MeanState"},
    "ShowAttendTellDecoder": {"initial_state": "MeanState"},
    "BiScaleDecoder": {"initial_state": "MeanState"},
}
_OWN_CLASS = ("PointerGeneratorDecoder", "BiScaleDecoder")  # which are still classes of their own
_LUONG = ("LuongDecoder", "MultiSourceDecoder")
_OF_LUONG = ("score", "window", "half_window", "location_length")
_WEIGHTS = {
    "decoder.initial_state_projection.": "decoder.initial_state.projection.",
    "decoder.readout_projections.": "decoder.readout.projections.",
    "decoder.gate_projection.": "decoder.attention.gate_projection.",
}


def renew(node: Any) -> Any:
    """A config's node ``model`` of any version, in today's options; what no version wrote stays as it is.

    Until November 2026 cells had names, and their options stood beside them; so did those of the other parts.
    """
    if not isinstance(node, dict):
        return node
    new = {key: renew(value) for key, value in node.items()}
    target = _class_of(new)
    cell = new.get("cell", _CELL_OF.get(target))
    if isinstance(cell, str) and cell in _CELLS:
        options = {name: new.pop(name) for name in _OF_CELLS if name in new}
        if target in _CONDITIONAL:  # whose options of these names are of more than the cell
            new |= {name: options[name] for name in ("layer_norm", "transition_depth") if name in options}
            options.pop("transition_depth", None)
        reset = options.pop("reset", "after" if target in _RESET_AFTER else "before")
        new["cell"] = _part(f"cells.{_CELLS[cell]}", options | ({"reset": reset} if cell == "gru" else {}))
    if target == "FeatureEncoder":
        new["_target_"] = "softsearch.models.feature_encoder.FeatureEncoder"
    if isinstance(new.get("attention"), dict):
        return new
    if target in _LUONG:
        attention = {name: new.pop(name) for name in _OF_LUONG if name in new}
        new["attention"] = _part("luong_attention.LuongAttention", attention)
    return _with_parts(new, target) if target in _ATTENTIONAL else new


def renew_weights(node: Mapping[str, Any], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a model by their names of today; ``node`` is its config of any version."""
    new = dict(weights)
    if _class_of(node.get("decoder")) in _ATTENTIONAL:
        for old, today in _WEIGHTS.items():
            new = {today + name.removeprefix(old) if name.startswith(old) else name: new[name] for name in new}
        of_state, of_embedding = (f"decoder.readout.projections.{part}" for part in ("state", "embedding"))
        if f"{of_embedding}.weight" in new and f"{of_embedding}.bias" not in new and f"{of_state}.bias" in new:
            new[f"{of_embedding}.bias"] = new.pop(f"{of_state}.bias")  # the bias of their sum
    return new


def _with_parts(old: dict[str, Any], target: str) -> dict[str, Any]:
    """The options of an attentional decoder whose parts were options of its own."""
    new = old | _ATTENTIONAL[target]
    norm = {"layer_norm": new.pop("layer_norm")} if target in _CONDITIONAL and "layer_norm" in new else {}
    names = {"attention_dim": "dim", "location_filters": "filters", "location_half_width": "half_width"}
    kind = str(new.pop("attention", "content"))
    kind = _ATTENTIONS.get(kind, kind)
    attention = {today: new.pop(name) for name, today in names.items() if name in new}
    if kind == "AdditiveAttention":  # which did not read the others
        attention = {name: attention[name] for name in ("dim",) if name in attention}
    kind = "GatedAttention" if target == "ShowAttendTellDecoder" else kind
    new["attention"] = _part(f"attention.{kind}", attention | norm)
    two = {"num_states": 2} if target in ("ShowAttendTellDecoder", "BiScaleDecoder") else {}
    mean = new["initial_state"] == "MeanState"
    new["initial_state"] = _part(f"initial_state.{new['initial_state']}", two | (norm if mean else {}))
    if "maxout_dim" in new:
        new["readout"] = _part("readout.Maxout", {"dim": new.pop("maxout_dim")})
    elif "output_dim" in new:
        new["readout"] = _part("readout.Tanh", {"dim": new.pop("output_dim")} | norm)
    else:
        new["readout"] = _part("readout.EmbeddingSum", {})
    if target == "BiScaleDecoder":
        new["cell"] = _part("bi_scale.BiScaleCell", {})
    if target in _CONDITIONAL and isinstance(new.get("cell"), dict):
        depth = new.pop("transition_depth", 2)
        new["cell"].pop("transition_depth", None)
        new["context_cell"] = {**new["cell"], "transition_depth": depth - 1 if isinstance(depth, int) else depth}
    if target not in _OWN_CLASS:
        new["_target_"] = "softsearch.models.attentional.AttentionalDecoder"
    return new


def _class_of(node: Any) -> str:
    return str(node.get("_target_") if isinstance(node, Mapping) else None).rpartition(".")[2]


def _part(name: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"_target_": f"softsearch.models.{name}", "_partial_": True, **options}
