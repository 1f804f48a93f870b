"""Graphs whose constants are in a file of their own, as those beyond 2 GB are; here the limit is a few bytes."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from softsearch.errors import BundleError, ConfigError
from softsearch.export import graph_parts, single_graph
from softsearch.export.precision import lower_precision
from softsearch.export.search_loop import with_block
from softsearch.files import MANIFEST
from softsearch.runtime import graph_session
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import bundle_of, write_bundle
from softsearch.runtime.graph_session import describe_graphs
from softsearch.runtime.manifest import DATA_SUFFIX, DECODER_STEP, ENCODER
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.text.plain_values import read_json
from tests.support.bundles import SRC_LINES, bundle_parts
from tests.unit.export.test_search_loop import small_bundle
from tests.unit.export.test_single import sources

DATA = f"{DECODER_STEP}{DATA_SUFFIX}"


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (graph_session, graph_parts):
        monkeypatch.setattr(module, "LARGE", 200)
    monkeypatch.setattr(graph_parts, "MOST_INSIDE", 0)


def in_two_files(bundle: Bundle) -> Bundle:
    files = dict(bundle.files)
    for name in (ENCODER, DECODER_STEP):
        files |= graph_parts.write_graph(name, onnx.load_from_string(files[name]))
    return replace(bundle, files=files)


def written(path: Path, bundle: Bundle) -> Bundle:
    _, manifest = bundle_parts()
    return write_bundle(path, bundle.files, manifest | {"graphs": bundle.manifest.graphs})


def translations(bundle: Bundle) -> list[tuple[str, float]]:
    return [(found.text, pytest.approx(found.score, abs=1e-5)) for found in Translator(bundle).translate(SRC_LINES[:9])]


def test_a_bundle_translates_as_with_its_constants_inside(tmp_path: Path) -> None:
    whole, parted = small_bundle(), in_two_files(small_bundle())
    assert len(parted.files[DECODER_STEP]) < len(whole.files[DECODER_STEP]) / 2
    assert {name for name in parted.files if name.endswith(DATA_SUFFIX)} == {DATA, f"{ENCODER}{DATA_SUFFIX}"}
    read = onnx.load(written(tmp_path / "b", with_block(parted, 1e-4)).path / DECODER_STEP)  # by another program
    expected = {t.name: t.raw_data for t in onnx.load_from_string(whole.files[DECODER_STEP]).graph.initializer}
    assert {tensor.name: tensor.raw_data for tensor in read.graph.initializer} == expected
    assert read_json(tmp_path / "b" / MANIFEST)["format_version"] == 2  # which older versions refuse in plain words
    found = Bundle.open(tmp_path / "b")
    assert translations(found) == translations(whole)
    assert describe_graphs(found.files) == {name: found.manifest.graphs[name] for name in ("encoder", "decoder_step")}


@pytest.mark.parametrize("precision", ["int8", "fp16"])
def test_a_lower_precision_is_that_of_one_file(precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parted, loss = lower_precision(in_two_files(small_bundle()), precision, sources(3, 5, 9), len)  # type: ignore[arg-type]
    assert DATA in parted.files
    with monkeypatch.context() as usual:
        for module in (graph_session, graph_parts):
            usual.setattr(module, "LARGE", 1 << 20)
        whole, expected = lower_precision(small_bundle(), precision, sources(3, 5, 9), len)  # type: ignore[arg-type]
        assert DATA not in whole.files
    assert loss == expected
    assert translations(written(tmp_path / "b", with_block(parted, 0.1))) == translations(whole)


def test_one_graph_is_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    parted, whole = (
        single_graph.single_graph(bundle.files, BeamSearch(), bundle.manifest.tgt_vocab_size, 64)
        for bundle in (in_two_files(small_bundle()), small_bundle())
    )
    assert parted == whole
    monkeypatch.setattr(single_graph, "_MOST_BYTES", 1000)
    with pytest.raises(ConfigError, match=r"one file of at most 1,000 bytes, .* set precision=int8 or"):
        single_graph.single_graph(small_bundle().files, BeamSearch(), 60, 64)


def entry(key: str, value: str) -> Callable[[onnx.TensorProto, Path], None]:
    def change(tensor: onnx.TensorProto, folder: Path) -> None:
        next(pair for pair in tensor.external_data if pair.key == key).value = value

    return change


def without(key: str) -> Callable[[onnx.TensorProto, Path], None]:
    def change(tensor: onnx.TensorProto, folder: Path) -> None:
        tensor.external_data.remove(next(pair for pair in tensor.external_data if pair.key == key))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (entry("offset", "99999999"), "constants beyond the end of their file, or several of one place"),
        (entry("offset", "-64"), "the place of a constant is not numbers"),
        (entry("offset", "9" * 30), "the place of a constant is not numbers"),
        (entry("length", "7"), "elements in 7 bytes"),
        (without("length"), "is not an ONNX model"),
        (lambda tensor, _: tensor.dims.append(2), "elements in"),
        (lambda tensor, _: setattr(tensor, "raw_data", b"1234"), "both in the file and in another one"),
        (lambda tensor, _: setattr(tensor, "data_type", onnx.TensorProto.STRING), "the ONNX type 8"),
    ],
)
def test_constants_that_their_file_does_not_hold_are_refused(
    change: Callable[[onnx.TensorProto, Path], None], message: str, tmp_path: Path
) -> None:
    """Fault: constants beyond the end of their file, or of a size that their bytes do not have. Effect: refused."""
    parted = in_two_files(small_bundle())
    step = onnx.load_from_string(parted.files[DECODER_STEP])
    change(next(tensor for tensor in step.graph.initializer if tensor.external_data), tmp_path)
    bundle = replace(parted, files=parted.files | {DECODER_STEP: step.SerializeToString()})
    with pytest.raises(BundleError, match=rf"{DECODER_STEP}: .*{message}"):
        Translator(written(tmp_path / "b", bundle))


def test_bytes_are_one_constant_s_only(tmp_path: Path) -> None:
    """Fault: a few bytes as the values of many constants. Effect: refused."""
    parted = in_two_files(small_bundle())
    step = onnx.load_from_string(parted.files[DECODER_STEP])
    tensor = next(tensor for tensor in step.graph.initializer if tensor.external_data)
    for number in range(100):
        step.graph.initializer.add().MergeFrom(tensor)
        step.graph.initializer[-1].name = f"again{number}"
    bundle = replace(parted, files=parted.files | {DECODER_STEP: step.SerializeToString()})
    with pytest.raises(BundleError, match="several of one place"):
        Translator(written(tmp_path / "b", bundle))


def test_a_file_of_constants_is_checked_and_needed(tmp_path: Path) -> None:
    """Fault: a file of constants that is altered, or that is another file of the host. Effect: refused."""
    good = written(tmp_path / "good", in_two_files(small_bundle())).path
    altered = Path(shutil.copytree(good, tmp_path / "altered"))
    content = bytearray((altered / DATA).read_bytes())
    content[100] ^= 1
    (altered / DATA).write_bytes(content)
    with pytest.raises(BundleError, match=f"{DATA} has sha256"):
        Bundle.open(altered)
    parted = in_two_files(small_bundle())
    lacking = bundle_of(tmp_path / "c", {n: f for n, f in parted.files.items() if n != DATA}, bundle_parts()[1])
    (tmp_path / DATA).write_bytes(parted.files[DATA])
    with pytest.raises(BundleError, match="constants that are in another file"):
        Translator(lacking)
