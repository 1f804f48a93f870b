"""ONNX step function: reordering, padding, dropped sentences and checks of the graphs."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from softsearch.errors import BundleError, InputError
from softsearch.runtime import graph_session
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.graph_session import describe_onnx
from softsearch.runtime.onnx_state import OnnxState
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import full_log_probs
from softsearch.search.shortlist import Shortlist
from softsearch.text.vocabulary import BOS
from tests.support.bundles import bundle_parts, tokenizers

FILES, ENCODER, STEP = bundle_parts()[0], "encoder.onnx", "decoder_step.onnx"
SOURCES = [[5, 9, 12], [7], [20, 21, 22, 23, 24], []]


@pytest.fixture(scope="module")
def step_fn(bundle_dir: Path) -> OnnxStepFunction:
    return OnnxStepFunction(Bundle.open(bundle_dir))


def forced(step_fn: OnnxStepFunction, src: list[int], tokens: list[int]) -> tuple[float, np.ndarray[Any, Any]]:
    """The log probability and alignments of a translation, one sentence and one row at a time, without reordering."""
    state = step_fn.start([src])
    total, looks = 0.0, []
    for before, token in zip([BOS, *tokens], tokens, strict=False):
        candidates, state = step_fn.step(np.array([before]), state, step_fn.vocab_size)
        total += float(candidates.log_probs[0, candidates.tokens[0].tolist().index(token)])
        assert candidates.alignments is not None
        looks.append(candidates.alignments[0])
    return total, np.stack(looks)


def test_beam_search_over_a_padded_batch_scores_as_forced_decoding_of_each_sentence(step_fn: OnnxStepFunction) -> None:
    found = BeamSearch(beam=5, n_best=5, alignments=True)(step_fn, SOURCES)
    reordered = 0
    for src, n_best in zip(SOURCES, found, strict=True):
        assert len(n_best) == 5
        for hypothesis in n_best:
            tokens = list(hypothesis.written)
            log_prob, looks = forced(step_fn, src, tokens)
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-4)
            assert hypothesis.alignments is not None
            np.testing.assert_allclose(hypothesis.alignments, looks, atol=1e-5)
        reordered += len({hypothesis.tokens[:2] for hypothesis in n_best})
    assert reordered > len(SOURCES)


def test_the_step_is_opened_once_when_it_first_runs(bundle_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, opened = graph_session.open_session, list[bool]()

    def spy(*arguments: Any, runs: bool = True) -> Any:
        opened.append(runs)
        return real(*arguments, runs=runs)

    monkeypatch.setattr(graph_session, "open_session", spy)
    step_fn = OnnxStepFunction(Bundle.open(bundle_dir))
    assert opened == [False]  # a look at it
    copies = [step_fn, step_fn.without_alignments(), step_fn.without_block()] * 2
    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(lambda each: BeamSearch(beam=2)(each, SOURCES), copies))
    assert opened == [False, True]


@pytest.mark.parametrize("kept", [[2, 3], [1, 2, 3, 4, 5]], ids=["copied", "left in the batch"])
def test_keep_and_select_commute_with_step(kept: list[int], step_fn: OnnxStepFunction) -> None:
    sources = [*SOURCES, *SOURCES[:2]]
    state = step_fn.start(sources)
    _, state = step_fn.step(np.full(6, BOS), state, 2)
    state = step_fn.select(state, np.repeat(np.arange(6), 3))
    first, after = step_fn.step(np.arange(4, 22), state, 2)
    rows = np.array([2, 0, 1, 3, 3, 3, 8, 7, 6, 9, 11, 10, 12, 14, 13, 17, 16, 15])
    tokens = np.arange(20, 38)
    whole, further = step_fn.step(tokens, step_fn.select(after, rows), 2)
    own = (3 * np.array(kept)[:, None] + np.arange(3)).reshape(-1)
    shifted = (rows[own].reshape(-1, 3) % 3 + 3 * np.arange(len(kept))[:, None]).reshape(-1)
    part, ended = step_fn.step(tokens[own], step_fn.keep(step_fn.select(after, rows), np.array(kept)), 2)
    swapped, _ = step_fn.step(tokens[own], step_fn.select(step_fn.keep(after, np.array(kept)), shifted), 2)
    assert first.log_probs.shape == (18, 2)
    for got in (part, swapped):
        np.testing.assert_allclose(got.log_probs, whole.log_probs[own], atol=1e-6)
        np.testing.assert_array_equal(got.tokens, whole.tokens[own])
    last, _ = step_fn.step(tokens[own[-6:]], step_fn.keep(ended, np.arange(len(kept))[-2:]), 2)
    expected, _ = step_fn.step(tokens, further, 2)
    np.testing.assert_allclose(last.log_probs, expected.log_probs[own[-6:]], atol=1e-6)


def test_a_state_can_be_stepped_twice(step_fn: OnnxStepFunction) -> None:
    state = step_fn.start(SOURCES)
    first, _ = step_fn.step(np.full(4, BOS), state, 3)
    again, _ = step_fn.step(np.full(4, BOS), state, 3)
    np.testing.assert_array_equal(first.log_probs, again.log_probs)


def test_alignments_are_distributions_over_the_real_tokens(step_fn: OnnxStepFunction) -> None:
    candidates, _ = step_fn.step(np.full(4, BOS), step_fn.start(SOURCES), 1)
    assert candidates.alignments is not None
    np.testing.assert_allclose(candidates.alignments.sum(axis=1), 1.0, atol=1e-6)
    for row, src in zip(candidates.alignments, SOURCES, strict=True):
        assert (row[len(src) + 1 :] == 0).all()


def test_alignments_are_not_fetched_where_nobody_reads_them(bundle_dir: Path) -> None:
    step_fn = OnnxStepFunction(Bundle.open(bundle_dir)).without_alignments()
    candidates, _ = step_fn.step(np.full(4, BOS), step_fn.start(SOURCES), 1)
    assert candidates.alignments is None


def opened(path: Path, changed: dict[str, bytes], *, describe: bool = True) -> OnnxStepFunction:
    """Opens a bundle with changed files, correct hashes, and with ``describe`` a manifest that describes its graphs."""
    files, manifest = bundle_parts()
    files |= changed
    if describe:
        manifest["graphs"] = {name: describe_onnx(files[f"{name}.onnx"]) for name in ("encoder", "decoder_step")}
    return OnnxStepFunction(write_bundle(path / "b", files, manifest))


def renamed(model: bytes, old: str, new: str) -> bytes:
    """The graph with one of its inputs or outputs renamed."""
    graph = onnx.load_from_string(model)
    for port in (*graph.graph.input, *graph.graph.output):
        port.name = new if port.name == old else port.name
    for node in graph.graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                names[place] = new if name == old else name
    content: bytes = graph.SerializeToString()
    return content


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("encoder.onnx", "memory.0", "annotations", r"encoder\.onnx: output annotations is of float32"),
        ("encoder.onnx", "cache.1", "cache.7", r"decoder_step\.onnx: input cache\.1 .*expected one of"),
        ("decoder_step.onnx", "tokens", "previous_tokens", r"decoder_step\.onnx: input previous_tokens"),
        ("decoder_step.onnx", "next_cache.0", "next_cache.5", r"decoder_step\.onnx: output next_cache\.5"),
    ],
)
def test_graphs_that_break_the_contract_are_refused(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    with pytest.raises(BundleError, match=message):
        opened(tmp_path, {file: renamed(FILES[file], old, new)})


def test_an_output_that_is_missing_is_named(tmp_path: Path) -> None:
    graph = onnx.load_from_string(FILES[STEP])
    graph.graph.output.remove(next(port for port in graph.graph.output if port.name == "next_cache.1"))
    with pytest.raises(BundleError, match=r"expected also \['next_cache.1'\]"):
        opened(tmp_path, {STEP: graph.SerializeToString()})


def test_a_bundle_without_an_output_of_all_log_probs_gives_the_same(tmp_path: Path, step_fn: OnnxStepFunction) -> None:
    graph = onnx.load_from_string(FILES[STEP])
    for ports, name in ((graph.graph.output, "all_log_probs"), (graph.graph.input, "all")):
        ports.remove(next(port for port in ports if port.name == name))
    graph.graph.node.remove(next(node for node in graph.graph.node if "all" in node.input))
    older = opened(tmp_path, {STEP: graph.SerializeToString()})
    found, expected = (full_log_probs(each, np.full(4, BOS), each.start(SOURCES)) for each in (older, step_fn))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(np.exp(found[0]).sum(axis=1), 1.0, atol=1e-5)


def test_all_log_probs_are_those_of_the_candidates(step_fn: OnnxStepFunction) -> None:
    tokens, state = np.full(4, BOS), step_fn.start(SOURCES)
    (candidates, _), (by_id, _, _) = step_fn.step(tokens, state, 7), full_log_probs(step_fn, tokens, state)
    np.testing.assert_array_equal(np.take_along_axis(by_id, candidates.tokens, axis=1), candidates.log_probs)
    assert (candidates.log_probs[:, -1:] >= np.sort(by_id, axis=1)[:, -7:]).sum() == len(tokens)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({STEP: renamed(FILES[STEP], "position", "step")}, r"decoder_step\.onnx are .* but manifest\.json says"),
        ({ENCODER: FILES[STEP], STEP: FILES[ENCODER]}, r"encoder\.onnx"),
        ({ENCODER: b""}, r"encoder\.onnx(:| cannot be loaded by ONNX Runtime)"),
        ({ENCODER: FILES[STEP][:500]}, r"encoder\.onnx(:| cannot be loaded by ONNX Runtime)"),
    ],
    ids=["another input", "swapped", "empty", "truncated"],
)
def test_graphs_other_than_the_manifest_says_are_refused(
    tmp_path: Path, changed: dict[str, bytes], message: str
) -> None:
    """Fault: graphs that differ from the manifest. Effect: refused."""
    with pytest.raises(BundleError, match=message):
        opened(tmp_path, changed, describe=False)


def test_an_opset_from_the_future_is_refused(tmp_path: Path) -> None:
    graph = onnx.load_from_string(FILES[ENCODER])
    del graph.opset_import[:]
    graph.opset_import.append(helper.make_opsetid("", 999))
    with pytest.raises(BundleError, match=r"encoder\.onnx cannot be loaded"):
        opened(tmp_path, {ENCODER: graph.SerializeToString()}, describe=False)


def test_a_token_outside_the_graphs_vocabulary_is_an_input_error(step_fn: OnnxStepFunction) -> None:
    with pytest.raises(InputError, match="ONNX Runtime failed"):
        step_fn.start([[tokenizers()[0].vocab_size + 7]])


def test_a_wide_beam_over_the_whole_vocabulary_works(step_fn: OnnxStepFunction) -> None:
    search = BeamSearch(beam=100, n_best=100, max_length_factor=0.0, max_length_offset=2)
    for n_best in search(step_fn, SOURCES):
        assert len({(h.tokens, h.truncated) for h in n_best}) == 100


def with_an_input(model: bytes, name: str, dtype: int, shape: list[str]) -> bytes:
    """The graph with an input more, which it passes on to nothing."""
    graph = onnx.load_from_string(model)
    graph.graph.input.append(helper.make_tensor_value_info(name, dtype, shape))
    graph.graph.node.append(helper.make_node("Shape", [name], [f"{name}_shape"]))
    content: bytes = graph.SerializeToString()
    return content


def test_half_a_shortlist_breaks_the_contract(tmp_path: Path) -> None:
    step = with_an_input(FILES[STEP], "shortlist", TensorProto.INT64, ["w"])
    with pytest.raises(BundleError, match=r"expected also \['shortlist_bias'\]"):
        opened(tmp_path, {STEP: step})


def test_a_step_that_computes_other_words_than_the_shortlist_is_refused(tmp_path: Path) -> None:
    step = with_an_input(FILES[STEP], "shortlist", TensorProto.INT64, ["w"])
    step = with_an_input(step, "shortlist_bias", TensorProto.FLOAT, ["n", "1", "w"])
    graph = onnx.load_from_string(step)
    top_k = next(node for node in graph.graph.node if node.op_type == "TopK")
    top_k.output[1] = "near"
    graph.graph.node.append(helper.make_node("Add", ["near", "far"], ["candidates"]))
    graph.graph.initializer.append(numpy_helper.from_array(np.array([64]), "far"))
    shortlist = Shortlist(np.arange(5), np.full((tokenizers()[0].vocab_size, 1), -1))
    restricted = opened(tmp_path, {STEP: graph.SerializeToString()}).with_shortlist(shortlist)
    with pytest.raises(BundleError, match=r"candidates holds numbers from \d+ to \d+, expected 0 to 63"):
        restricted.step(np.full(4, BOS), restricted.start(SOURCES), 5)


def test_an_older_bundle_masks_the_words_that_a_shortlist_leaves_out(step_fn: OnnxStepFunction) -> None:
    shortlist = Shortlist(np.arange(5), np.full((tokenizers()[0].vocab_size, 1), -1))
    restricted = step_fn.with_shortlist(shortlist)
    by_id, _, _ = full_log_probs(restricted, np.full(4, BOS), restricted.start(SOURCES))
    np.testing.assert_allclose(np.exp(by_id[:, :5]).sum(axis=1), 1.0, atol=1e-6)
    assert np.isneginf(by_id[:, 5:]).all()


@pytest.mark.parametrize("shapes", [[], [(2, 2, 6, 8)], [(2, 2, 5, 8), (2, 3, 5, 8)]])
def test_slots_of_several_shapes_are_refused(shapes: list[tuple[int, ...]]) -> None:
    cache = tuple(np.zeros(shape, dtype=np.float32) for shape in ((2, 3, 5), *shapes))
    state = OnnxState(np.ones((2, 4), bool), (), cache, np.zeros((2, 3), np.int64), 5, None, np.arange(2))
    with pytest.raises(BundleError, match="expected 4, the same for all, the third of 5"):
        state.without_dead_slots()
