"""Graph checks: what an ONNX file of a bundle may hold, checked in its bytes before ONNX Runtime sees them.

A graph is a plain sequence of ONNX's own operators over constants in the same file. So nothing in it is repeated
without limit (``Loop``, ``Scan``, ``If`` and ``SequenceMap`` have graphs inside, functions have bodies), no operator is
another library's, and no constant is read from another file of the host.

Field numbers are those of ``onnx.proto`` (onnx 1.18, IR version 11).
"""

from collections.abc import Iterator

from softsearch.errors import BundleError

MAX_NODES = 20_000
_Value = int | memoryview
_MODEL_GRAPH, _MODEL_TRAINING, _MODEL_FUNCTIONS = 7, 20, 25
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_SPARSE_INITIALIZER = 1, 5, 15
_NODE_ATTRIBUTE, _NODE_DOMAIN = 5, 7
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS, _ATTRIBUTE_SPARSE = (5, 10), (6, 11), (22, 23)
_TENSOR_EXTERNAL = (13, 14)  # external_data, data_location


def check_graph(model: bytes) -> None:
    """Refuses a model that is more than a plain sequence of operators.

    Raises:
        BundleError: says what else it holds, or that it is no ONNX model.
    """
    try:
        for field, value in _fields(memoryview(model)):
            if field in (_MODEL_TRAINING, _MODEL_FUNCTIONS):
                raise _error("functions or training steps of its own")
            if field == _MODEL_GRAPH:
                _check_nodes(value)
    except (IndexError, TypeError, ValueError) as error:
        raise BundleError(f"it is no ONNX model ({error}); copy or export the bundle again") from error


def _check_nodes(graph: _Value) -> None:
    nodes = 0
    for field, value in _fields(graph):
        if field == _GRAPH_SPARSE_INITIALIZER:
            raise _error("sparse constants")
        if field == _GRAPH_INITIALIZER:
            _check_tensor(value)
        if field == _GRAPH_NODE:
            _check_node(value)
            nodes += 1
            if nodes > MAX_NODES:
                raise _error(f"more than {MAX_NODES} operators")


def _check_node(node: _Value) -> None:
    for field, value in _fields(node):
        if field == _NODE_DOMAIN and bytes(_message(value)):
            raise _error(f"an operator of the domain {bytes(_message(value))!r}, which is not ONNX's own")
        if field == _NODE_ATTRIBUTE:
            for part, content in _fields(value):
                if part in _ATTRIBUTE_GRAPHS:
                    raise _error("an operator with a graph inside, as loops and branches have")
                if part in _ATTRIBUTE_SPARSE:
                    raise _error("sparse constants")
                if part in _ATTRIBUTE_TENSORS:
                    _check_tensor(content)


def _check_tensor(tensor: _Value) -> None:
    if any(field in _TENSOR_EXTERNAL and value not in (0, b"") for field, value in _fields(tensor)):
        raise _error("constants that are in another file")


def _fields(message: _Value) -> Iterator[tuple[int, _Value]]:
    """The fields of a message in protobuf's wire format: number, and value or content.

    Raises:
        IndexError: the message ends in the middle of a number.
        TypeError: it is a number itself.
        ValueError: a field is longer than the message, or of a kind that ONNX does not use.
    """
    content, offset = _message(message), 0
    while offset < len(content):
        tag, offset = _varint(content, offset)
        kind = tag & 7
        if tag >> 32:
            raise ValueError("a field's number is too large")  # parsers cut it to 32 bits, which may be another field
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


def _message(value: _Value) -> memoryview:
    if isinstance(value, int):
        raise TypeError("a number stands where a message is expected")
    return value


def _varint(content: memoryview, offset: int) -> tuple[int, int]:
    """A number in 7 bits of each byte, the lowest first, and the offset after it."""
    number = 0
    for shift in range(0, 64, 7):
        byte = content[offset]
        number |= (byte & 127) << shift
        offset += 1
        if byte < 128:
            return number, offset
    raise ValueError("a number has more than 64 bits")


def _error(what: str) -> BundleError:
    return BundleError(f"the graph holds {what}, expected a plain sequence of operators; do not use this bundle")
