"""Graphs of a bundle as sessions of ONNX Runtime, which gets large constants separately from the graph.

A graph that is parsed with its constants takes several times their memory, and one beyond 2 GB cannot be written. So a
large graph, ``decoder_step.onnx``, has them in ``decoder_step.onnx.data``, as ONNX's external data, and of any graph
ONNX Runtime gets the bytes that were checked, and opens no file.
"""

import ctypes
import functools
import math
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError, printable
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.graph_check import (
    GRAPH_INITIALIZER,
    MAX_EXACT_INT8,
    MODEL_GRAPH,
    TENSOR_DIMS,
    TENSOR_EXTERNAL,
    TENSOR_NAME,
    TENSOR_RAW,
    TENSOR_TYPE,
    Value,
    check_graph,
    encoded,
    field_values,
    fields,
    message_of,
    number_of,
    place_outside,
)
from softsearch.runtime.manifest import DATA_SUFFIX, DECODER_STEP, EMBEDDING_TABLE, ENCODER
from softsearch.runtime.providers import Provider, check_provider, find_provider, not_installed

try:
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors
except ModuleNotFoundError as error:
    raise not_installed() from error

ORT_ERRORS = (
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
    UnicodeDecodeError,  # a name, or a message that quotes one
)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h
_DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(int64)": "int64", "tensor(bool)": "bool"}
LARGE = 1 << 20  # bytes; larger constants are passed separately
_NUMPY_TYPES = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 7: "<i8", 10: "<f2", 11: "<f8"}  # by TensorProto.DataType
_FLOAT, _INT8 = 1, 3
_EMPTY = memoryview(b"")


class Graph(NamedTuple):
    """A checked graph."""

    model: bytes
    constants: Mapping[str, NDArray[Any]]  # that the model lacks; they share the memory of the files


def open_graph(files: Mapping[str, bytes], name: str, of: str = "") -> Graph:
    """Checks a graph, and takes its large constants out of it.

    Args:
        files: of a bundle.
        name: of the graph.
        of: what begins messages, as ``bundle PATH: ``.

    Raises:
        BundleError: the file is not a plain sequence of operators, see ``check_graph``.
    """
    model, data = files[name], memoryview(files.get(f"{name}{DATA_SUFFIX}", b""))
    constants: dict[str, NDArray[Any]] = {}
    try:
        check_graph(model, len(data))
        parts = [
            _without(value, data, constants) if number == MODEL_GRAPH else encoded(number, value)
            for number, value in fields(memoryview(model))
        ]
    except BundleError as error:
        raise BundleError(f"{of}{name}: {error}") from error
    return Graph(b"".join(parts) if constants else model, constants)


def with_constants(graph: Graph, other: Graph) -> Graph:
    """Adds the constants of another graph."""
    constants = b"".join(encoded(GRAPH_INITIALIZER, tensor) for tensor in _initializers(other.model))
    # Parsers make one graph of two.
    return Graph(graph.model + encoded(MODEL_GRAPH, constants), {**graph.constants, **other.constants})


def has_wide_int8(graph: Graph) -> bool:
    """Tells whether a graph has int8 weights above ``MAX_EXACT_INT8``, as older bundles do."""
    arrays = [array for array in graph.constants.values() if array.dtype == np.int8]
    arrays += [np.frombuffer(_raw(tensor), np.int8) for tensor in _initializers(graph.model) if _kind(tensor) == _INT8]
    return any(array.size and max(int(array.max()), -int(array.min())) > MAX_EXACT_INT8 for array in arrays)


def embedding_table(bundle: Bundle, step: Graph) -> NDArray[np.float32]:
    """The table ``[vocab, dim]``; an empty one if the encoder has its own.

    Raises:
        BundleError: the step has no such table.
    """
    for port in bundle.manifest.graphs["encoder"]["inputs"]:
        if port["name"] == EMBEDDING_TABLE:
            try:
                return read_table(step, EMBEDDING_TABLE, port["shape"])
            except BundleError as error:
                raise BundleError(f"bundle {bundle.path}: {DECODER_STEP}: {error}") from error
    return np.zeros((0, 0), dtype=np.float32)


def read_table(graph: Graph, name: str, shape: Sequence[object]) -> NDArray[np.float32]:
    """A float32 matrix, a constant of a graph.

    Raises:
        BundleError: there is none of this name, or it has another type, shape or size.
    """
    for tensor in _initializers(graph.model):
        if _name(tensor) != name:
            continue
        dims, kind = [number_of(size) for size in field_values(tensor, TENSOR_DIMS)], _kind(tensor)
        raw = graph.constants[name].data.cast("B") if name in graph.constants else _raw(tensor)
        if kind != _FLOAT or dims != list(shape) or len(raw) != 4 * math.prod(dims):
            raise BundleError(
                f"the constant {name} has type {kind}, shape {dims} and {len(raw)} bytes, expected type {_FLOAT} "
                f"(float32), shape {list(shape)} and 4 bytes for each number; export the bundle again"
            )
        return np.frombuffer(raw, "<f4").reshape(dims).astype(np.float32, copy=False)
    raise BundleError(f"the graph has no constant {name}, which the encoder reads; export the bundle again")


def describe_onnx(graph: bytes | Graph) -> dict[str, Any]:
    """The inputs and outputs of an ONNX graph, as in the manifest's ``graphs``.

    Raises:
        BundleError: ONNX Runtime cannot load the graph.
    """
    what = "the graph"
    return describe(open_session(graph if isinstance(graph, Graph) else open_graph({what: graph}, what), what))


def describe_graphs(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The manifest's ``graphs`` of the encoder and of the step."""
    return {file.removesuffix(".onnx"): describe_onnx(open_graph(files, file)) for file in (ENCODER, DECODER_STEP)}


def describe(session: Any) -> dict[str, Any]:
    """The inputs and outputs of a session: name, dtype and shape, with names for the dimensions that vary."""
    return {
        side: [
            {
                "name": printable(port.name),
                "dtype": _DTYPES.get(port.type, port.type),
                "shape": [printable(axis) if isinstance(axis, str) else axis for axis in port.shape],
            }
            for port in ports
        ]
        for side, ports in (("inputs", session.get_inputs()), ("outputs", session.get_outputs()))
    }


class LazySession:
    """A session that is opened when it first runs, by one of the threads; a graph is checked before, in little time.

    An open session has a copy of the weights, in the order that products read them.

    Args:
        graph: the graph.
        what: its name in messages.
        provider: ONNX Runtime's.

    Attributes:
        described: the inputs and outputs.

    Raises:
        BundleError: ONNX Runtime cannot load the graph; also where it runs.
        ConfigError: it lacks the provider, or does not use it.
    """

    def __init__(self, graph: Graph, what: str, provider: Provider) -> None:
        self._open = functools.partial(open_session, graph, what, provider)
        self.described = describe(self._open(runs=False))
        self._lock = threading.Lock()
        self._session: Any = None

    def run(self, outputs: list[str], feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Runs the graph; returns these outputs."""
        with self._lock:
            self._session = self._session or self._open()
        return list(self._session.run(outputs, feeds))


def open_session(graph: Graph, what: str, provider: Provider = "cpu", *, runs: bool = True) -> Any:
    """A session of ONNX Runtime; ``what`` is its name in messages.

    Without ``runs`` it is for a look at the graph, which is neither optimized nor copied.

    Raises:
        BundleError: ONNX Runtime cannot load the graph.
        ConfigError: it lacks the provider, or does not use it.
    """
    name = find_provider(provider)
    _manage_memory()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if runs else levels.ORT_DISABLE_ALL
    if not runs:
        options.add_session_config_entry("session.disable_prepacking", "1")
    options.log_severity_level = 4  # errors are raised; the log would repeat them
    # Memory plans are cached per input shape, and no two steps have the same shapes.
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.use_env_allocators", "1")
    if has_wide_int8(graph):  # ONNX Runtime makes them uint8, which is exact on any processor but slower
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.add_session_config_entry("session.load_model_format", "ONNX")  # the format that was checked
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in graph.constants.items()}
    for constant, value in values.items():
        options.add_initializer(constant, value)  # not copied, and one for all sessions
    try:
        options.add_external_initializers([*values], [*values.values()])  # what the optimizers read
        # Constant folding takes memory without limit, and the exporter has done it already.
        session = onnxruntime.InferenceSession(
            graph.model, options, providers=[name], disabled_optimizers=["ConstantFolding"]
        )
        describe(session)  # reads all names
    except ORT_ERRORS as error:
        raise BundleError(
            f"{what} cannot be loaded by ONNX Runtime {onnxruntime.__version__}: {printable(str(error))}"
        ) from error
    check_provider(session, provider, name)
    session.values = values  # it does not keep their memory itself
    return session


@functools.cache
def _manage_memory() -> None:
    """Limits all sessions of this process together to half of the machine's memory, and lets glibc keep what is freed.

    A few bytes of a graph can ask for any amount, and Linux kills the process that uses it, or another one. Caches that
    are copied between steps would be returned and asked for again each time: page faults, 5 % of a translation in int8.
    """
    if not hasattr(os, "sysconf"):
        return  # on Windows
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    arena = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(arena, onnxruntime.OrtArenaCfg({"max_mem": half}))
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):  # glibc
        mallopt(_M_TRIM_THRESHOLD, 64 * 2**20)
        mallopt(_M_MMAP_THRESHOLD, 32 * 2**20)  # the most that it takes


def _without(graph: Value, data: memoryview, constants: dict[str, NDArray[Any]]) -> bytes:
    """The field of a graph whose large constants are references; adds their values to ``constants``."""
    parts = []
    for number, value in fields(graph):
        array = _large(value, data) if number == GRAPH_INITIALIZER else None
        if array is not None:
            constants[_name(value)] = array
            kept = b"".join(
                encoded(field, each) for field, each in fields(value) if field not in (TENSOR_RAW, *TENSOR_EXTERNAL)
            )
            value = memoryview(kept + reference("separate", 0, array.nbytes))
        parts.append(encoded(number, value))
    return encoded(MODEL_GRAPH, b"".join(parts))


def reference(file: str, begin: int, size: int) -> bytes:
    """The fields of a constant that is somewhere else."""
    entries = {"location": file, "offset": str(begin), "length": str(size)}
    places, location = TENSOR_EXTERNAL
    pairs = (encoded(1, key.encode()) + encoded(2, value.encode()) for key, value in entries.items())
    return b"".join(encoded(places, pair) for pair in pairs) + encoded(location, 1)


def _large(tensor: Value, data: memoryview) -> NDArray[Any] | None:
    """The values of a constant that is large, or not in the graph."""
    place, kind = place_outside(tensor), _kind(tensor)
    if place is not None and kind not in _NUMPY_TYPES:
        raise BundleError(f"a constant of the ONNX type {kind} is in another file; export the bundle again")
    raw = _raw(tensor) if place is None else data[place.start : place.stop]
    if kind not in _NUMPY_TYPES or (place is None and len(raw) < LARGE):
        return None
    return np.frombuffer(raw, _NUMPY_TYPES[kind]).reshape(
        [number_of(size) for size in field_values(tensor, TENSOR_DIMS)]
    )


def _raw(tensor: Value) -> memoryview:
    return next((message_of(raw) for raw in field_values(tensor, TENSOR_RAW)[-1:]), _EMPTY)


def _name(tensor: Value) -> str:
    """The name; of one that is not UTF-8 another, which nothing reads."""
    return b"".join(message_of(name) for name in field_values(tensor, TENSOR_NAME)[-1:]).decode(errors="replace")


def _kind(tensor: Value) -> int:
    return next((number_of(kind) for kind in field_values(tensor, TENSOR_TYPE)[-1:]), 0)


def _initializers(model: bytes) -> list[Value]:
    """The constants of a graph."""
    graphs = field_values(memoryview(model), MODEL_GRAPH)
    return [tensor for graph in graphs for tensor in field_values(graph, GRAPH_INITIALIZER)]
