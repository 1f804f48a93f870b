"""Checks of the bytes of a bundle's ONNX files before ONNX Runtime opens them.

A graph is a plain sequence of ONNX's own operators over constants in the same file. So nothing in it is repeated
without limit (``Loop``, ``If`` and ``SequenceMap`` contain graphs, functions have bodies), no operator comes from
another library, and no constant is read from another file on the host. The constants of a large graph are in a file of
the bundle, from which the runtime takes them.

Two operators may contain a graph, itself a plain sequence. A ``Scan`` over the tokens that the runtime feeds, which
recurrent encoders need, runs it once for each token: one of its scanned inputs is ``src_tokens``, and ONNX Runtime
refuses scanned inputs of other lengths. A ``Loop``, the search of a block of steps, runs it at most ``steps`` times,
which is also an input that the runtime feeds.

Parsing takes memory in proportion to the file: a constant takes as much as its bytes, and the rest, whose messages may
take a few hundred times their bytes when parsed, is short. What operators such as ``ConstantOfShape`` make of small
constants is bounded at run time by ``softsearch.runtime.session``.

Field numbers are those of ``onnx.proto`` (onnx 1.18, IR version 11).
"""

import math
from collections.abc import Collection, Iterator

from softsearch.errors import BundleError

MAX_NODES = 20_000
MAX_METADATA_BYTES = 16 << 20  # bytes of a file without the constants' raw data; 200 operators have less than 0.1 MB
_MAX_DIMS, _MAX_DIM = 16, (1 << 31) - 1  # limits for a constant
Value = int | memoryview
MODEL_GRAPH, _MODEL_OPSET, _MODEL_TRAINING, _MODEL_FUNCTIONS = 7, 8, 20, 25
_OPSET_DOMAIN = 1
_GRAPH_NODE, GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_SPARSE_INITIALIZER = 1, 5, 11, 12, 15
_VALUE_NAME = 1
_NODE_INPUT, _NODE_OUTPUT, _NODE_TYPE, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 4, 5, 7
_NODE_COPIED = (_NODE_INPUT, _NODE_TYPE, _NODE_ATTRIBUTE)
_ATTRIBUTE_NAME, _ATTRIBUTE_INT, _ATTRIBUTE_GRAPH = 1, 3, 6
_ATTRIBUTE_TENSOR, _ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS, _ATTRIBUTE_SPARSE = 5, 10, (6, 11), (22, 23)
_SCANNED = b"src_tokens"  # an encoder input, from the sentences
STEPS = "steps"  # a block input, from the search
TENSOR_DIMS, TENSOR_TYPE, TENSOR_NAME, TENSOR_RAW, _TENSOR_VALUES = 1, 2, 8, 9, (4, 5, 7, 10, 11)
MAX_EXACT_INT8 = 64  # for weights: 2 * 255 * 64 fits into 16 bits, in which CPUs without VNNI add two products
_MAX_HEADS = 10_000  # in all layers
TENSOR_EXTERNAL = (13, 14)  # external_data, data_location
_MAX_DIGITS = 15  # of a place in a file
_BYTES = {  # bytes per element by TensorProto.DataType, for numbers of whole bytes
    **dict.fromkeys((2, 3, 9), 1),  # uint8, int8, bool
    **dict.fromkeys((4, 5, 10, 16), 2),  # uint16, int16, float16, bfloat16
    **dict.fromkeys((1, 6, 12), 4),  # float, int32, uint32
    **dict.fromkeys((7, 11, 13), 8),  # int64, double, uint64
}


def check_graph(model: bytes, outside: int = 0) -> None:
    """Refuses a model that is more than a plain sequence of operators, or declares more than it holds.

    Args:
        model: the file.
        outside: bytes of the file with those of its constants that are not in it; 0 if there is none.

    Raises:
        BundleError: the file holds something else, or is not an ONNX model.
    """
    graphs = data = 0
    ranges: list[range] | None = [] if outside else None
    try:
        for field, value in fields(memoryview(model)):
            if field in (_MODEL_TRAINING, _MODEL_FUNCTIONS):
                raise _error("its own functions or training steps")
            if field == _MODEL_OPSET:
                _check_domain(value, _OPSET_DOMAIN, "operators")
            if field == MODEL_GRAPH:
                data += _check_nodes(value, ranges=ranges)[0]
                graphs += 1
        if graphs != 1:  # parsers merge several graphs into one
            raise ValueError(f"{graphs} graphs")
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise BundleError(f"it is not an ONNX model ({error}); copy or export the bundle again") from error
    # Each byte is one constant's, so that a short file cannot ask for memory that it does not fill.
    if ranges and (sum(map(len, ranges)) > outside or max(each.stop for each in ranges) > outside):
        raise _error("constants beyond the end of their file, or several of one place", f"{outside} bytes")
    if len(model) - data > MAX_METADATA_BYTES:
        raise _error(
            f"{len(model) - data} bytes besides the raw data of its constants", f"at most {MAX_METADATA_BYTES}"
        )


def heads_by_layer(step: bytes, memory: Collection[str]) -> list[int]:
    """The number of heads of each layer of a checked graph that attends to ``memory``, in their order.

    Raises:
        BundleError: there are too many.
    """
    attributes = [field_values(node, _NODE_ATTRIBUTE) for node in _source_attention(step, memory)]
    found = [part for each in attributes for part in each if _names(part, _ATTRIBUTE_NAME) == [b"q_num_heads"]]
    heads = [number_of(value) for part in found for value in field_values(part, _ATTRIBUTE_INT)]
    if sum(heads) > _MAX_HEADS:
        raise _error(f"{sum(heads)} heads", f"at most {_MAX_HEADS}")
    return heads


def with_weights(step: bytes, memory: Collection[str]) -> bytes:
    """Adds to a checked graph the outputs ``weights.i``: what each head of layer i gives each part of ``memory``.

    The operators that attend are there a second time, because most of them do not return their weights.
    """
    added = b""
    for layer, node in enumerate(_source_attention(step, memory)):
        outputs = [f"attended.{layer}", "", "", f"weights.{layer}"]
        copied = [(number, bytes(message_of(value))) for number, value in fields(node) if number in _NODE_COPIED]
        copied += [(_NODE_OUTPUT, name.encode()) for name in outputs]
        added += encoded(_GRAPH_NODE, b"".join(encoded(*each) for each in copied))
        added += encoded(_GRAPH_OUTPUT, encoded(_VALUE_NAME, outputs[-1].encode()))
    return step + encoded(MODEL_GRAPH, added)


def _source_attention(step: bytes, memory: Collection[str]) -> list[Value]:
    """The operators that attend to the source: their keys are an output of the encoder."""
    nodes = [node for graph in field_values(memoryview(step), MODEL_GRAPH) for node in field_values(graph, _GRAPH_NODE)]
    keys = {name.encode() for name in memory}
    nodes = [node for node in nodes if _names(node, _NODE_TYPE) == [b"Attention"]]
    return [node for node in nodes if keys & {*_names(node, _NODE_INPUT)[1:2]}]


def _check_nodes(graph: Value, *, inside: bool = False, ranges: list[range] | None = None) -> tuple[int, int]:
    """Checks a graph; returns the number of raw data bytes in its constants, and of its operators.

    ``inside``: the graph is inside a ``Scan`` or a ``Loop``. ``ranges`` takes the places of constants in another file,
    if there is one.
    """
    nodes = data = 0
    inputs, constants, counted = set(), set(), set()  # counted: the inputs that set how often an inner graph runs
    for field, value in fields(graph):
        if field == _GRAPH_SPARSE_INITIALIZER:
            raise _error("sparse constants")
        if field == GRAPH_INITIALIZER:
            data += _check_tensor(value, ranges)
            constants.update(_names(value, TENSOR_NAME))
        if field == _GRAPH_INPUT:
            inputs.update(_names(value, _VALUE_NAME))
        if field == _GRAPH_NODE:
            _check_domain(value, _NODE_DOMAIN, "an operator")
            count, body = (b"", None) if inside else _inner_graph(value)
            found = (0, 0) if body is None else _check_nodes(body, inside=True)
            data += found[0] + sum(
                _check_attribute(each, repeats=body is not None) for each in field_values(value, _NODE_ATTRIBUTE)
            )
            nodes += 1 + found[1]
            counted.update([count] if body is not None else [])
            if nodes > MAX_NODES:
                raise _error(f"more than {MAX_NODES} operators")
    if counted - (inputs - constants):  # a constant is an input's default value
        raise _error("a scan over values other than its tokens, or a loop with its own count")
    return data, nodes


def _inner_graph(node: Value) -> tuple[bytes, Value | None]:
    """The graph inside a ``Scan`` or ``Loop``, and the input that counts its runs; None for other operators."""
    types, inputs = _names(node, _NODE_TYPE), _names(node, _NODE_INPUT)
    attributes = field_values(node, _NODE_ATTRIBUTE)
    graphs = [graph for attribute in attributes for graph in field_values(attribute, _ATTRIBUTE_GRAPH)]
    numbers = [each for each in attributes if _names(each, _ATTRIBUTE_NAME) == [b"num_scan_inputs"]]
    counts = [number_of(value) for attribute in numbers for value in field_values(attribute, _ATTRIBUTE_INT)]
    # The scanned inputs come last. Parsers merge several graphs, and take the last of several numbers.
    scans = types == [b"Scan"] and inputs[-1:] == [_SCANNED] and len(counts) == 1 and 0 < counts[0] < 1 << 31
    loops = types == [b"Loop"] and inputs[:1] == [STEPS.encode()]
    return _SCANNED if scans else STEPS.encode(), graphs[0] if (scans or loops) and len(graphs) == 1 else None


def _check_attribute(attribute: Value, *, repeats: bool) -> int:
    singles = data = 0
    for part, content in fields(attribute):
        if part in _ATTRIBUTE_GRAPHS and not (repeats and part == _ATTRIBUTE_GRAPH):
            raise _error("an operator with an inner graph, such as a loop or a branch")
        if part in _ATTRIBUTE_SPARSE:
            raise _error("sparse constants")
        if part in (_ATTRIBUTE_TENSOR, _ATTRIBUTE_TENSORS):
            data += _check_tensor(content)
            singles += part == _ATTRIBUTE_TENSOR
    if singles > 1:  # parsers merge several constants into one, with the dimensions of all
        raise ValueError(f"an attribute with {singles} constants instead of one")
    return data


def _names(message: Value, number: int) -> list[bytes]:
    return [bytes(message_of(value)) for value in field_values(message, number)]


def field_values(message: Value, number: int) -> list[Value]:
    """The values or contents of a message's fields with this number."""
    return [value for field, value in fields(message) if field == number]


def _check_domain(message: Value, number: int, what: str) -> None:
    if domains := [name for name in _names(message, number) if name]:
        raise _error(f"{what} from the domain {domains[0]!r}, which is not ONNX's own")


def _check_tensor(tensor: Value, ranges: list[range] | None = None) -> int:
    """Checks a constant and returns the bytes of its raw data; ``ranges`` takes its place in another file."""
    dims: list[int] = []
    kind = raw = values = inside = 0
    for field, value in fields(tensor):
        if field in TENSOR_EXTERNAL and value not in (0, b"") and ranges is None:
            raise _error("constants that are in another file")
        if field == TENSOR_DIMS:
            dims.append(number_of(value))
            if len(dims) > _MAX_DIMS:
                raise _error("a constant of more dimensions", f"at most {_MAX_DIMS}")
        elif field == TENSOR_TYPE:
            kind = number_of(value)
        elif field == TENSOR_RAW:
            raw = inside = len(message_of(value))
        elif field in _TENSOR_VALUES:
            values += len(message_of(value))
    if ranges is not None and (place := place_outside(tensor)) is not None:
        if raw or values:
            raise ValueError("a constant both in the file and in another one")
        ranges.append(place)
        raw = len(place)
    if kind not in _BYTES:
        raise _error(f"a constant of the ONNX type {kind}", "numbers of whole bytes")
    elements = math.prod(dims)
    # Values outside the raw data take at least one byte each; ONNX Runtime checks the rest.
    if max(dims, default=0) > _MAX_DIM or (elements > values if values else elements * _BYTES[kind] != raw):
        shape = " x ".join(map(str, dims)) or "1"
        raise _error(f"a constant of {shape} elements in {raw or values} bytes", "as many as its bytes hold")
    return inside


def place_outside(tensor: Value) -> range | None:
    """The bytes of a constant in the file with the graph's constants; None of one that is in the graph."""
    entries = field_values(tensor, TENSOR_EXTERNAL[0])
    where = field_values(tensor, TENSOR_EXTERNAL[1])[-1:]
    if not entries and where in ([], [0]):
        return None
    texts = {}
    for entry in entries:
        (key,), (value,) = _names(entry, 1), _names(entry, 2)
        texts[key] = value
    begin, size = (texts[key] for key in (b"offset", b"length"))
    if where != [1] or not (begin.isdigit() and size.isdigit()) or max(len(begin), len(size)) > _MAX_DIGITS:
        raise ValueError("the place of a constant is not numbers")
    return range(int(begin), int(begin) + int(size))


def encoded(number: int, value: Value | bytes) -> bytes:
    """A field in protobuf's wire format."""
    if isinstance(value, int):
        return _to_varint(number << 3) + _to_varint(value)
    return _to_varint(number << 3 | 2) + _to_varint(len(value)) + value


def _to_varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def fields(message: Value) -> Iterator[tuple[int, Value]]:
    """Yields the fields of a message in protobuf's wire format: number, and value or content.

    Raises:
        IndexError: the message ends in the middle of a number.
        TypeError: it is a number.
        ValueError: a field is longer than the message, or of a kind that ONNX does not use.
    """
    content, offset = message_of(message), 0
    while offset < len(content):
        tag, offset = _varint(content, offset)
        kind = tag & 7
        if tag >> 32:
            raise ValueError("a field's number is too large")  # parsers cut it to 32 bits, which may name another field
        if kind == 0:
            value, offset = _varint(content, offset)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, offset = _varint(content, offset)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if offset + size > len(content):
            raise ValueError("a field is longer than its message")
        yield tag >> 3, content[offset : offset + size]
        offset += size


def message_of(value: Value) -> memoryview:
    """The content; raises a TypeError of a number."""
    if isinstance(value, int):
        raise TypeError("found a number where a message is expected")
    return value


def number_of(value: Value) -> int:
    """The number; raises a TypeError of a content."""
    if not isinstance(value, int):
        raise TypeError("found a message where a number is expected")
    return value


def _varint(content: memoryview, offset: int) -> tuple[int, int]:
    """Decodes a varint (7 bits a byte, the lowest first); returns it and the next offset."""
    number = 0
    for shift in range(0, 64, 7):
        byte = content[offset]
        number |= (byte & 127) << shift
        offset += 1
        if byte < 128:
            return number, offset
    raise ValueError("a number has more than 64 bits")


def _error(what: str, expected: str = "a plain sequence of operators") -> BundleError:
    return BundleError(f"the graph holds {what}, expected {expected}; do not use this bundle")
