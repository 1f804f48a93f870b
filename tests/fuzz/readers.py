"""Fuzzing of the readers of foreign files: only errors meant for users may come out.

``python -m tests.fuzz.readers READER -max_total_time=60`` mutates files for a minute, guided by the branches that they
reach (https://github.com/google/atheris); the options are libFuzzer's. What breaks a reader is written to ``crash-*``
in the working folder, and ``python -m tests.fuzz.readers READER crash-*`` reads it again.
"""

import gzip
import json
import lzma
import math
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["softsearch"]):
    from softsearch.errors import SoftsearchError
    from softsearch.runtime.bundle import Bundle
    from softsearch.runtime.graph_check import check_graph
    from softsearch.runtime.manifest import Manifest
    from softsearch.runtime.shortlist_files import FREQUENT, TRANSLATIONS, open_shortlist, shortlist_files
    from softsearch.text.corpus import read_lines, read_raw

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

GOLDEN = Path(__file__).parents[1] / "golden" / "bundle"
MANIFEST = (GOLDEN / "manifest.json").read_bytes()
SMALL = replace(Manifest.parse(MANIFEST), src_vocab_size=4, tgt_vocab_size=100)
VALUES = json.loads(
    '[null, true, 0, -1, 1e99, 1180591620717411303424, NaN, "", "\\u001b[2J", "../x", [], [[]], {}, {"": 0}]'
)


def memory_file(content: bytes = b"") -> Path:
    """A file that leaves nothing behind: libFuzzer ends the process without cleaning up."""
    descriptor = os.memfd_create("fuzz")
    os.write(descriptor, content)
    return Path(f"/proc/self/fd/{descriptor}")


CORPUS = memory_file()


def read_manifest(data: bytes) -> None:
    """A manifest; or, after a first byte of 0, the golden one with some values replaced."""
    if data[:1] == b"\0":
        data = json.dumps(edited(json.loads(MANIFEST), atheris.FuzzedDataProvider(data[1:]))).encode()
    manifest = Manifest.parse(data)
    assert manifest.src_tokenizer in manifest.files
    assert all(name.isascii() and "/" not in name for name in manifest.files)


def edited(tree: Any, provider: Any) -> Any:
    """Replaces, removes or adds values anywhere in a tree."""
    for _ in range(provider.ConsumeIntInRange(1, 3)):
        place = tree
        while isinstance(place, dict) and place:
            key = provider.PickValueInList(sorted(place))
            if not isinstance(place[key], dict) or provider.ConsumeProbability() < 0.2:
                edit = provider.ConsumeIntInRange(0, 3)
                value = provider.PickValueInList(
                    [*deepcopy(VALUES), provider.ConsumeUnicode(8), provider.ConsumeInt(5)]
                )
                place.pop(key) if edit == 0 else place.update({provider.ConsumeUnicode(3) if edit == 1 else key: value})
                break
            place = place[key]
    return tree


def message(provider: Any, depth: int) -> bytes:
    """A message of protobuf's wire format, with fields as ONNX's graphs, nodes, attributes and constants have."""
    content = b""
    for _ in range(provider.ConsumeIntInRange(0, 4)):
        number = provider.PickValueInList([1, 5, 7, 2, 9, 8, 10, 4, 6, 11, 13, 14, 15, 20, 22, 23, 25])
        kind = provider.ConsumeIntInRange(0, 3)
        if kind == 0:
            value = provider.PickValueInList([1, 0, 2, 3, 7, 8, 16, (1 << 31) - 1, 1 << 31, (1 << 64) - 1])
            content += varint(number << 3) + varint(value)
        else:
            inner = message(provider, depth + 1) if kind < 3 and depth < 4 else provider.ConsumeBytes(8)
            content += varint(number << 3 | 2) + varint(len(inner)) + inner
    return content


def varint(value: int) -> bytes:
    """A number in 7 bits of each byte, the lowest first."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def read_graph(data: bytes) -> None:
    """A graph; or, after a first byte of 0, one made of fields that the others say.

    A graph that is accepted is as promised to ONNX's own parser too, or is nothing to it.
    """
    if data[:1] == b"\0":
        data = message(atheris.FuzzedDataProvider(data[1:]), 0)
    check_graph(data)
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError:
        return
    assert not model.functions
    assert not model.training_info
    assert not any(opset.domain for opset in model.opset_import)
    graph = model.graph
    assert_plain(graph)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                assert (node.op_type, node.input[-1]) == ("Scan", "src_tokens")
                assert "src_tokens" in {value.name for value in graph.input}
                assert_plain(attribute.g)
                assert not any(a.HasField("g") for inner in attribute.g.node for a in inner.attribute)


def assert_plain(graph: onnx.GraphProto) -> None:
    """It holds no other libraries' operators, no list of graphs and no constants that are not in it."""
    assert not graph.sparse_initializer
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    assert not any(node.domain for node in graph.node)
    assert not any(a.HasField("sparse_tensor") or a.graphs or a.sparse_tensors for a in attributes)
    in_nodes = chain.from_iterable([*([a.t] if a.HasField("t") else []), *a.tensors] for a in attributes)
    for tensor in (*graph.initializer, *in_nodes):
        assert not tensor.external_data
        assert tensor.data_location == TensorProto.DEFAULT
        held = max(len(getattr(tensor, f"{kind}_data")) for kind in ("float", "double", "int32", "int64", "uint64"))
        held = held or len(tensor.raw_data) // helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        assert 0 <= math.prod(tensor.dims) <= 8 * held  # values of other types may be 8 bytes long


def read_shortlist(data: bytes) -> None:
    """The two tables of a shortlist for 4 source and 100 target words, of which the first byte says where to part."""
    size = 4 * data[0] if data else 0
    files = {FREQUENT: data[1 : size + 1], TRANSLATIONS: data[size + 1 :]}
    shortlist = open_shortlist(Bundle(GOLDEN, SMALL, files, ""), frequent=3)
    words = shortlist([[0, 1], [2, 3, 3]])
    assert words.tokens.min() >= 0
    assert words.tokens.max() < SMALL.tgt_vocab_size
    assert words.mask.any(axis=1).all()


def read_corpus(data: bytes) -> None:
    """A corpus as it is; or, if the first byte is 1 or 2, compressed, damaged and cut off as the next ones say."""
    content = data
    if len(data) > 3 and data[0] in (1, 2):
        packed = bytearray(gzip.compress(data[4:], 1) if data[0] == 1 else lzma.compress(data[4:], preset=0))
        packed[data[1] % len(packed)] ^= data[2]
        content = bytes(packed[: len(packed) - data[3]])
    CORPUS.write_bytes(content)
    lines: list[str] = []
    with suppress(SoftsearchError):
        lines = list(read_lines(CORPUS))
    assert not any("\n" in line or "\r" in line for line in lines)
    pairs = [pair for chunk in read_raw(CORPUS, CORPUS) for pair in zip(chunk.src, chunk.tgt, strict=True)]
    assert len(pairs) == len(lines) or not lines


def small_graph() -> bytes:
    """A graph with constants of several kinds."""
    constants = [numpy_helper.from_array(np.ones((2, 1), dtype=np.float32), "a")]
    constants += [helper.make_tensor("b", TensorProto.INT64, [2], [1, 300])]
    node = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.int8([1, 2])), name="n", domain="")
    listed = helper.make_node("X", ["c"], ["d"], tensors=constants, ints=[1, 2], floats=[0.5], text="x", axis=1)
    graph = helper.make_graph([node, listed], "g", [], [], constants)
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString())


READERS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {  # and files to start from
    "manifest": (read_manifest, [MANIFEST, b"\0" + MANIFEST[:99], b"{}"]),
    "graph": (read_graph, [small_graph(), bytes(40)]),
    "shortlist": (read_shortlist, [b"\4" + b"".join(shortlist_files(np.arange(4, 8), np.arange(-1, 39)).values())]),
    "corpus": (
        read_corpus,
        [b"a\n\xc3\xa4\r\n", b"\1\0\0\0a\nb\n", b"\2\0\0\3a\nb\n", b"\1\x14\1\0a\nb\n", "ab".encode("utf-16")],
    ),
}


def main() -> None:
    """Runs libFuzzer on the reader that the command names."""
    _, name, *options = sys.argv
    reader, seeds = READERS[name]

    def read(data: bytes) -> None:
        with suppress(SoftsearchError):
            reader(data)

    files = ",".join(str(memory_file(seed)) for seed in seeds)
    atheris.Setup([sys.argv[0], "-max_len=4096", "-len_control=0", f"-seed_inputs={files}", *options], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
