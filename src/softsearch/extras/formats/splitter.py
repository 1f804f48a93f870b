"""A sentence splitter as an ONNX graph, in the form of MiniSBD (https://github.com/LibreTranslate/MiniSBD).

A mark, with closing quotes or brackets, ends a sentence if it is followed by a space and then neither a digit nor a
lower-case letter; a wide mark needs no space. A dot does not end one after a single character, after another dot, or
after two characters unless the first is a lower-case letter: "z. B.", "U.S.", "3. Mai", "13. Mai", "Dr. No". Longer
abbreviations are mistaken for ends.
"""

# The function is converted to ONNX and never run; its types are those of ONNX.
# mypy: ignore-errors
# ruff: noqa: F821

import json

from onnxscript import FLOAT, INT64, script
from onnxscript import opset17 as op

_PAD, _SPACE, _OTHER, _DOT, _MARK, _CLOSING, _WIDE, _LOWER, _DIGIT = range(9)  # kinds of characters
_LATIN_TO_ARMENIAN = [chr(code) for code in range(0x590)]  # scripts with lower-case letters
_KINDS = {
    " ": _SPACE,
    ".": _DOT,
    **dict.fromkeys("!?\u2026\u061f\u0964", _MARK),  # also those of Arabic and Hindi
    **dict.fromkeys("\"')]\u00bb\u2019\u201c\u201d\u203a\u300d\u300f\uff09", _CLOSING),
    **dict.fromkeys("\u3002\uff01\uff1f", _WIDE),
    **{c: _LOWER if c.islower() else _DIGIT for c in _LATIN_TO_ARMENIAN if c.islower() or c.isdigit()},
}


@script(default_opset=op)
def _ends(units: INT64["texts", "length"], features: FLOAT["texts", "length", "none"]) -> FLOAT["texts", "length", 3]:
    """Gives class 2 the greatest value at the last character of a sentence, else class 0; ``units`` are kinds."""
    padded = op.Pad(units, [0, 3, 0, 2])
    third = padded[:, :-5]
    second = padded[:, 1:-4]
    before = padded[:, 2:-3]
    after = padded[:, 4:-1]
    following = padded[:, 5:]
    closing = units == _CLOSING
    is_marked = (units == _DOT) | (units == _MARK) | (closing & ((before == _DOT) | (before == _MARK)))
    is_short = (second < _OTHER) | (second == _DOT) | ((third < _OTHER) & (second != _LOWER))
    goes_on = (following == _LOWER) | (following == _DIGIT) | ((units == _DOT) & is_short)
    is_wide = (units == _WIDE) | (closing & (before == _WIDE))
    ends_wide = is_wide & op.Not((after == _WIDE) | (after == _CLOSING))
    ends = (is_marked & (after == _SPACE) & op.Not(goes_on)) | ends_wide
    return op.OneHot(op.Where(ends, 2, 0), 3, [0.0, 1.0])


def sentence_splitter() -> bytes:
    """Returns the graph as a file."""
    model = _ends.to_model_proto(ir_version=8)
    vocab = {"lang": "", "lower": False, "_unit2id": {"<PAD>": _PAD, "<UNK>": _OTHER, **_KINDS}}
    config = {"feat_funcs": ["numeric"], "batch_size": 1}
    for key, value in {"config": config, "vocab": vocab, "lexicon": None}.items():
        model.metadata_props.add(key=key, value=json.dumps(value))
    return model.SerializeToString()
