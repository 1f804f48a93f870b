"""One ONNX graph with the search inside translates as Python's beam search over the two graphs does."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from softsearch.errors import BundleError, ConfigError
from softsearch.export.parity import TOLERANCE
from softsearch.export.recurrences import OPSET
from softsearch.export.single import check_translations, compare_translations
from softsearch.export.single_graph import beam_search, describe_single, single_graph
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.cli import main
from softsearch.runtime.graph_check import check_graph
from softsearch.runtime.options import Strategy
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.greedy import Greedy
from softsearch.search.sampling import Sampling
from softsearch.text.vocabulary import EOS, PAD, SPECIALS, UNK
from tests.support.bundles import bundle_parts, make_bundle, tokenizers

SEARCHES = {
    "the default": BeamSearch(),
    "greedy": Greedy(),
    "all of the beam": BeamSearch(beam=7, n_best=7),
    "no length penalty": BeamSearch(beam=4, n_best=3, length_penalty=0.0),
    "GNMT's length penalty": BeamSearch(beam=4, n_best=3, length_penalty=0.6, length_norm="gnmt"),
    "mostly cut off": BeamSearch(beam=4, n_best=4, max_length_factor=0.3, max_length_offset=2),
    "one token": BeamSearch(beam=3, n_best=3, max_length_factor=0.0, max_length_offset=1),
    "more than half of the words": BeamSearch(beam=40, n_best=25),
}
BATCHES = [[1], [23], [3, 1, 9, 20, 5], [7] * 12]  # source tokens


@cache
def graphs(seed: int = 0) -> dict[str, bytes]:
    """The graphs of a small model, in the opset of the exporter."""
    files, _ = bundle_parts(seed)
    models = {name: onnx.load_model_from_string(files[name]) for name in ("encoder.onnx", "decoder_step.onnx")}
    for model in models.values():
        model.opset_import[0].version = OPSET
    return {name: model.SerializeToString() for name, model in models.items()}


def session(search: Strategy, seed: int = 0) -> Any:
    return onnxruntime.InferenceSession(single_graph(graphs(seed), search, tokenizers()[1].vocab_size, 64))


@pytest.fixture(scope="module")
def step_fn(tmp_path_factory: pytest.TempPathFactory) -> OnnxStepFunction:
    return OnnxStepFunction(make_bundle(tmp_path_factory.mktemp("single") / "bundle"))


def sources(*lengths: int) -> list[list[int]]:
    rng = np.random.default_rng(len(lengths))
    return [rng.integers(len(SPECIALS), tokenizers()[0].vocab_size, length).tolist() for length in lengths]


@pytest.mark.parametrize("name", SEARCHES)
def test_it_translates_as_the_python_search_does(name: str, step_fn: OnnxStepFunction) -> None:
    graph, search = session(SEARCHES[name]), replace(beam_search(SEARCHES[name]), alignments=True)
    for batch in BATCHES:
        compare_translations(graph, step_fn, search, sources(*batch))


@pytest.mark.parametrize("seed", range(1, 4))
def test_n_best_lists_end_with_translations_that_were_cut_off(seed: int, tmp_path: Path) -> None:
    search = BeamSearch(beam=5, n_best=5, max_length_factor=0.0, max_length_offset=4, alignments=True)
    step_fn = OnnxStepFunction(make_bundle(tmp_path / "bundle", seed=seed))
    src = sources(*range(1, 20))
    found = [tuple(hypothesis.truncated for hypothesis in n_best) for n_best in search(step_fn, src)]
    assert any(True in n_best and False in n_best for n_best in found)
    compare_translations(session(search, seed), step_fn, search, src)


def inputs(src: list[list[int]], **changes: Any) -> dict[str, Any]:
    longest = max(map(len, src))
    rows = [[*ids, EOS] + [PAD] * (longest - len(ids)) for ids in src]
    given = {"beam": 4, "n_best": 3, "max_length": [0], "length_penalty": np.float32(1)} | changes
    return {"src_tokens": np.array(rows)} | {name: np.array(value) for name, value in given.items()}


def test_a_length_limit_of_0_is_the_recommended_one() -> None:
    graph = session(BeamSearch(max_length_factor=0.5, max_length_offset=3))
    src = sources(1, 4, 9)
    usual, given = (graph.run(None, inputs(src, max_length=limits)) for limits in ([0], [3, 5, 7]))
    assert all(np.array_equal(*pair) for pair in zip(usual, given, strict=True))
    one = graph.run(["lengths"], inputs(src, max_length=[2]))[0]
    assert one.max() == 2


def test_what_is_not_there_is_padding() -> None:
    graph = session(BeamSearch())
    names = [output.name for output in graph.get_outputs()]
    src = sources(1, 12)
    found = dict(zip(names, graph.run(None, inputs(src, beam=9, n_best=9, max_length=[1, 9])), strict=True))
    lengths, tokens, alignments = found["lengths"], found["tokens"], found["alignments"]
    assert tokens.shape == (2, 9, lengths.max())
    assert alignments.shape == (*tokens.shape, 13)
    behind = np.arange(lengths.max()) >= lengths[:, :, None]
    assert behind.any()
    assert (tokens[behind] == PAD).all()
    assert (tokens[~behind] != PAD).all()
    assert (alignments[behind] == 0).all()
    assert np.allclose(alignments[~behind].sum(-1), 1)
    assert (alignments[0, :, :, 2:] == 0).all()  # the shorter source's padding


def test_a_beam_is_smaller_than_the_vocabulary_and_no_list_longer_than_the_beam(step_fn: OnnxStepFunction) -> None:
    vocab = step_fn.vocab_size
    graph, src = session(BeamSearch()), sources(3)
    (most,) = graph.run(["tokens"], inputs(src, beam=1000, n_best=1000))
    assert most.shape[1] == vocab - 1
    assert graph.run(["tokens"], inputs(src, beam=2, n_best=5))[0].shape[1] == 2
    assert graph.run(["tokens"], inputs(src, beam=0, n_best=0))[0].shape[1] == 1


def test_the_check_fails_where_the_translations_differ(step_fn: OnnxStepFunction) -> None:
    vocab = step_fn.vocab_size
    for wrong in (
        single_graph(graphs(seed=1), BeamSearch(), vocab, 64),
        single_graph(graphs(), BeamSearch(length_norm="gnmt"), vocab, 64),
    ):
        with pytest.raises(
            BundleError,
            match=r"the single graph's translations differ from those of Python's search .*: token ids by \d",
        ):
            check_translations(wrong, step_fn, BeamSearch(), tokenizers()[0].vocab_size, 24, TOLERANCE)
    right = single_graph(graphs(), BeamSearch(), vocab, 64)
    check_translations(right, step_fn, BeamSearch(beam=vocab), tokenizers()[0].vocab_size, 24, TOLERANCE)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (Sampling(), "Sampling; set search=beam or search=greedy"),
        (ExactSearch(), "ExactSearch"),
        (BeamSearch(coverage_penalty=0.2), "search.coverage_penalty=0.2"),
        (BeamSearch(groups=5), "search.groups=5"),
        (BeamSearch(exact_stop=True), "search.exact_stop=True"),
        (Greedy(banned=(UNK,)), "search.banned"),
        (Greedy(min_length_factor=0.5), "search.min_length_factor=0.5"),
        (Greedy(no_repeat_ngram=3), "search.no_repeat_ngram=3"),
    ],
)
def test_searches_that_it_has_not(search: Strategy, message: str) -> None:
    with pytest.raises(ConfigError, match=f"format=single does not support {message}.*use format=bundle"):
        single_graph(graphs(), search, 60, 64)


def test_it_holds_standard_operators_and_no_notes_of_the_exporter() -> None:
    model = onnx.load_model_from_string(single_graph(graphs(), BeamSearch(), 60, 64))
    nodes = list(model.graph.node)
    for node in nodes:
        nodes += [inner for attribute in node.attribute for inner in attribute.g.node]
    assert {node.op_type for node in nodes} >= {"Loop", "Scan", "TopK", "Tanh"}
    assert {node.domain for node in nodes} == {""}
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", OPSET)]
    assert not any(node.metadata_props for node in nodes)


def test_an_embedding_matrix_that_encoder_and_decoder_share_is_stored_once() -> None:
    encoder, step = (onnx.load_model_from_string(content) for content in graphs().values())
    matrices = [t for model in (encoder, step) for t in model.graph.initializer if t.name == "embeddings"]
    apart = single_graph(graphs(), BeamSearch(), 60, 64)
    matrices[0].CopyFrom(matrices[1])
    tied = {"encoder.onnx": encoder.SerializeToString(), "decoder_step.onnx": step.SerializeToString()}
    shared = onnx.load_model_from_string(single_graph(tied, BeamSearch(), 60, 64))
    assert [tensor.raw_data for tensor in shared.graph.initializer].count(matrices[1].raw_data) == 1
    assert len(onnx.load_model_from_string(apart).graph.initializer) == len(shared.graph.initializer) + 1


def test_the_runtime_says_what_the_folder_is_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, manifest = bundle_parts()
    model = single_graph(graphs(), BeamSearch(), tokenizers()[1].vocab_size, 64)
    rest = {name: content for name, content in files.items() if name.endswith(".model")}
    folder = tmp_path / "single"
    description = {"model": describe_single(graphs())}
    bundle = write_bundle(folder, {"model.onnx": model} | rest, manifest | {"graphs": description})
    assert bundle.manifest.is_single
    with pytest.raises(BundleError, match=r"model\.onnx is for ONNX Runtime in other programming languages.*format="):
        Translator(folder)
    assert main(["verify", str(folder)]) == 0
    assert "OK, written by softsearch" in (printed := capsys.readouterr().out)
    assert "model.onnx was not loaded, because it is for other programming languages" in printed
    with pytest.raises(BundleError, match="an operator with an inner graph"):
        check_graph(model)
    (folder / "model.onnx").write_bytes(model[:-1] + bytes([model[-1] ^ 1]))
    with pytest.raises(BundleError, match="altered or damaged"):
        Bundle.open(folder)
