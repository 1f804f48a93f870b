"""Models of older checkpoints, in the options of this version."""

from typing import Any

_CELLS = {"rnn": "ElmanCell", "lstm": "LSTMCell", "gru": "GRUCell", "input_forget": "InputForgetCell"}
_OF_CELLS = ("reset", "layer_norm", "recurrent_dropout", "transition_depth")
_CONDITIONAL = ("ConditionalGRUDecoder", "PointerGeneratorDecoder")
_CELL_OF = {"RNNsearchDecoder": "gru", "RNNencdecDecoder": "gru", "LookUpdateGenerateDecoder": "rnn"}
_CELL_OF |= dict.fromkeys(_CONDITIONAL, "gru")  # before November 2026 it was no option of these
_RESET_AFTER = ("RNNencdecDecoder", *_CONDITIONAL)  # by default


def renew(node: Any) -> Any:
    """A config's node ``model`` of any version, in today's options; what no version wrote stays as it is.

    Until November 2026 cells had names, and their options stood beside them.
    """
    if not isinstance(node, dict):
        return node
    new = {key: renew(value) for key, value in node.items()}
    target = str(new.get("_target_")).rpartition(".")[2]
    cell = new.get("cell", _CELL_OF.get(target))
    if isinstance(cell, str) and cell in _CELLS:
        options = {name: new.pop(name) for name in _OF_CELLS if name in new}
        if target in _CONDITIONAL:  # whose options of these names are of more than the cell
            new |= {name: options[name] for name in ("layer_norm", "transition_depth") if name in options}
            options.pop("transition_depth", None)
        reset = options.pop("reset", "after" if target in _RESET_AFTER else "before")
        new["cell"] = _part(f"cells.{_CELLS[cell]}", options | ({"reset": reset} if cell == "gru" else {}))
    return new


def _part(name: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"_target_": f"softsearch.models.{name}", "_partial_": True, **options}
