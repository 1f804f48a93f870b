"""Steps in blocks translate as single steps do, and share their constants."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest

from softsearch.errors import BundleError, InputError
from softsearch.export.search_loop import with_block
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import bundle_of, write_bundle
from softsearch.runtime.contract import read_choices
from softsearch.runtime.graph_check import check_graph
from softsearch.runtime.manifest import DECODER_BLOCK, DECODER_STEP
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search import blocks
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Hypothesis
from tests.support.bundles import bundle_parts
from tests.unit.export.test_single import SEARCHES, graphs, sources


def small_bundle(seed: int = 0) -> Bundle:
    files, manifest = bundle_parts(seed)
    return bundle_of("small", files | graphs(seed), manifest)


@cache
def both(seed: int = 0) -> tuple[OnnxStepFunction, OnnxStepFunction]:
    bundle = small_bundle(seed)
    return OnnxStepFunction(bundle), OnnxStepFunction(with_block(bundle, 1e-4))


def told(lists: list[list[Hypothesis]]) -> list[list[tuple[Any, ...]]]:
    return [[(h.tokens, h.truncated, pytest.approx(h.score, abs=1e-5)) for h in n_best] for n_best in lists]


@pytest.mark.parametrize("name", SEARCHES)
def test_blocks_translate_as_single_steps_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    single, block = both()
    monkeypatch.setattr(block, "step", None)
    for steps in (1, 9, 32):
        monkeypatch.setattr(blocks, "_STEPS", 4 * steps)
        for lengths in ([1], [23], [3, 1, 9, 20]):
            src = sources(*lengths)
            assert told(SEARCHES[name](block, src)) == told(SEARCHES[name](single, src))


@pytest.mark.parametrize(
    "options",
    [{"alignments": True}, {"exact_stop": True}, {"banned": (9,)}, {"min_length_offset": 4}, {"groups": 2}],
    ids=str,
)
def test_what_blocks_cannot_do_stays_in_single_steps(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    single, block = both(1)
    monkeypatch.setattr(block, "run_block", None)
    search, src = BeamSearch(beam=4, n_best=4, **options), sources(3, 8)
    assert told(search(block, src)) == told(search(single, src))
    assert BeamSearch()(block, src, prefixes=[[7], []])[0][0].tokens[0] == 7


def test_constants_are_in_a_bundle_once(tmp_path: Any) -> None:
    bundle, (files, manifest) = with_block(small_bundle(), 1e-4), bundle_parts(0)
    check_graph(bundle.files[DECODER_BLOCK])
    step, block = (onnx.load_from_string(bundle.files[name]).graph for name in (DECODER_STEP, DECODER_BLOCK))
    assert max(np.prod(t.dims) for t in block.initializer) <= 2 < len(step.initializer)
    described = manifest | {"graphs": bundle.manifest.graphs}
    written = write_bundle(tmp_path / "bundle", files | bundle.files, described)
    assert OnnxStepFunction(written).has_block
    wrong = replace(bundle.manifest, graphs=bundle.manifest.graphs | {"decoder_block": {}})
    with pytest.raises(BundleError, match=r"inputs of decoder_block\.onnx"):
        OnnxStepFunction(replace(bundle, manifest=wrong))


def test_numbers_that_are_none_are_an_error() -> None:
    files, manifest = bundle_parts(0)
    good = with_block(bundle_of("small", files | graphs(), manifest), 1e-4)
    step = onnx.load_from_string(good.files[DECODER_STEP])
    broken = next(t for t in step.graph.initializer if t.data_type == 1 and len(t.dims) == 2)
    broken.raw_data = np.full(broken.dims, np.nan, dtype=np.float32).tobytes()
    step_fn = OnnxStepFunction(replace(good, files=good.files | {DECODER_STEP: step.SerializeToString()}))
    with pytest.raises(InputError, match="expected finite numbers"):
        BeamSearch()(step_fn, sources(3))


@pytest.mark.parametrize(("value", "passes"), [(np.nan, False), (np.inf, False), (-np.inf, True), (-3.0, True)])
def test_a_block_with_what_is_no_log_probability_is_left_to_single_steps(
    value: float, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, block = both()
    run_block = block.run_block

    def with_value(*arguments: Any) -> Any:
        chosen, state = run_block(*arguments)
        chosen["checked"] = np.append(chosen["checked"][:-1], np.float32(value))
        return chosen, state

    monkeypatch.setattr(block, "run_block", with_value)
    found = blocks.in_blocks(block, sources(3), BeamSearch())
    assert (found is not None) == passes


@pytest.mark.parametrize(
    ("name", "value"),
    [("all_parents", 2), ("end_rows", -1), ("all_tokens", 9), ("next_ended", None), ("checked", None)],
)
def test_choices_that_there_are_not_are_refused(name: str, value: int | None) -> None:
    whole = np.zeros((3, 1, 2), dtype=np.int64)
    outputs: dict[str, Any] = dict.fromkeys(("all_parents", "all_tokens", "end_rows"), whole)
    outputs |= {"survivors": whole * 0.0, "end_log_probs": whole * 0.0, "next_log_probs": np.zeros((1, 2))}
    outputs |= {"next_best_scores": np.zeros((1, 1)), "next_ended": np.zeros((1, 1)), "checked": np.zeros(3)}
    assert read_choices(outputs, (3, 1, 2, 1), 9).keys() == outputs.keys()
    outputs[name] = np.zeros(5) if value is None else whole + value
    with pytest.raises(BundleError, match=r"decoder_block\.onnx: \w+ (has the axes|holds numbers)"):
        read_choices(outputs, (3, 1, 2, 1), 9)
