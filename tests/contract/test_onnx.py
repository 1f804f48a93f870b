"""Contract (g): the exported graphs equal the model at lengths and batch sizes that the traced example did not have.

And the single graph made of them translates as the search does.
"""

import logging
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from omegaconf import DictConfig, OmegaConf
from onnx import helper

from softsearch.app.config.validation import build
from softsearch.errors import BundleError, ConfigError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.export.bundle import BundleFormat, export_bundle
from softsearch.export.graph_parts import GREEDY_STEP
from softsearch.export.parity import LOW_TOLERANCE, TOLERANCE, Parity
from softsearch.export.precision import LowPrecision, lower_precision
from softsearch.export.quantization import product_inputs
from softsearch.export.search_loop import with_block
from softsearch.export.single import SingleFormat, compare_translations
from softsearch.export.single_graph import single_graph
from softsearch.models.output_layers import OutputLayer
from softsearch.models.seq2seq import Seq2Seq
from softsearch.models.transformer import TransformerDecoder
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.graph_session import open_graph
from softsearch.runtime.manifest import DECODER_GREEDY, DECODER_STEP, EMBEDDING_TABLE, ENCODER
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.shortlist_files import open_shortlist
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.forced_decoding import forced_alignments
from softsearch.search.greedy import Greedy
from softsearch.search.interface import Sentences, full_log_probs
from softsearch.search.shortlist import ShortlistStep
from softsearch.testing.models import count, model_config
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS, SPECIALS
from tests.support.models import POSITIONS, as_sources, every_model

FEWEST = {"num_layers": 1, "transition_depth": 2, "order": 3, "highway_layers": 1, "max_src_len": 64}
WIDER = {"decoder_only": {"embeddings": {"dim": 32}, "decoder": {"d_ff": 40}}}  # equal matrices from 1 kB on are shared
ROUNDING = TOLERANCE / 2  # input_forget, whose memory grows, needs a third of it on an AMD EPYC; others stay below 1e-5


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieceTokenizer:
    return train_tokenizer(["abcdefghij", "jihgfedcba"] * 3, kind="char", vocab_size=32)


def random_model(case: tuple[str, ...], vocab_size: int, seed: int) -> Seq2Seq:
    torch.manual_seed(seed)
    config = cast(DictConfig, OmegaConf.merge(model_config(*case), WIDER.get(case[0], {})))
    if case in DAYS_CASES and case[0] not in OF_TWO_LAYERS:
        config = of_one_layer(config)
    model: Seq2Seq = build(config, src_vocab_size=vocab_size, tgt_vocab_size=vocab_size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    count(model)
    return model.eval()


def of_one_layer(config: DictConfig) -> DictConfig:
    """A copy whose stacks have a layer: the time of an export is that of its operators."""
    copied = config.copy()
    for node in (copied, *(copied[part] for part in ("encoder", "decoder") if part in copied)):
        for part in (node, *(value for value in node.values() if isinstance(value, DictConfig))):
            part.update({key: size for key, size in FEWEST.items() if isinstance(part.get(key), int)})
    return copied


def export(model: Seq2Seq, reference: Seq2Seq, tokenizer: SentencePieceTokenizer, path: Path, **options: Any) -> Any:
    return export_bundle(
        model,
        TorchStepFunction(reference),
        (tokenizer, tokenizer),
        path,
        search=BeamSearch(),
        max_src_tokens=64,
        facts={"model": "test"},
        **options,
    )


class Exported:
    """A random model as a bundle, and in the forms that are made of the same traces."""

    def __init__(self, case: tuple[str, ...], tokenizer: SentencePieceTokenizer, folder: Path) -> None:
        self.name, self.model = case[0], random_model(case, tokenizer.vocab_size, seed=1)
        self.tokenizer, self.folder = tokenizer, folder
        before = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.bundle, self.parity = self.export("bundle", finish=self.finish)
        self.unchanged = all(torch.equal(tensor, before[name]) for name, tensor in self.model.state_dict().items())
        rng, manifest = np.random.default_rng(0), self.bundle.manifest
        ids = [rng.integers(len(SPECIALS), manifest.src_vocab_size, size).tolist() for size in (1, 2, 5, 9, 17)]
        self.src = as_sources(ids, manifest.feature_dim)  # for other precisions

    def finish(self, traced: Bundle, tolerance: float) -> tuple[dict[str, bytes], dict[str, Any]]:
        self.traced = traced  # of which all other forms are made
        return BundleFormat().finish(traced, tolerance)

    def export(self, name: str, **options: Any) -> tuple[Bundle, Parity]:
        return export(self.model, self.model, self.tokenizer, self.folder / name, **options)

    def in_precision(self, precision: LowPrecision) -> Bundle:
        lowered, loss = lower_precision(self.traced, precision, self.src, bleu=len)
        assert loss.sentences == 5
        graphs = (open_graph(lowered.files, file) for file in (ENCODER, DECODER_STEP))
        whole = [graph for graph in graphs if precision == "int8" or not has_scan(graph.model)]  # see _float16
        assert {product for graph in whole for product in product_inputs(graph)} == set()
        return lowered

    @cached_property
    def int8(self) -> Bundle:
        return self.in_precision("int8")


ROTARY = "-".join(["transformer_tiny", *POSITIONS["transformer_tiny"][0]])
DECODER_ONLY = "decoder_only-decoder.pre_norm=true"
OF_TWO_LAYERS = {"decoder_only", "luong2015", "lstm", "input_forget"}  # each kind of stack
BY_DAY = {  # one of each family of operators; the other models at night, and by day in test_models.py
    "rnnsearch", "lstm", "ngram", "rnn", "input_forget", "nematus_deep", "lee2017", "show_attend_tell", "multi_source",
    "rnnlm", "pointer_generator", "rnnsearch-class_factored", "rnn-cell._target_=tests.support.models.OwnCell",
    "transformer_base-encoder.pre_norm=true-decoder.pre_norm=true", DECODER_ONLY, ROTARY,
}  # fmt: skip
OF_MAKE_TEST = {"rnnsearch", "ngram", "nematus_deep", "pointer_generator", DECODER_ONLY, ROTARY}
DAYS_CASES = {case.values[0] for case in every_model() if case.id in BY_DAY}
PRECISE = {"rnnsearch", "ngram", DECODER_ONLY}  # one of each kind, in all precisions and with a shortlist


def cases(of_make_test: set[str], of_the_day: set[str]) -> pytest.MarkDecorator:
    """Gives a test every model, the others at night."""
    params = [
        pytest.param(*case.values, id=case.id, marks=[
            *([] if case.id in of_make_test else [pytest.mark.day]),
            *([] if case.id in of_the_day else [pytest.mark.nightly]),
        ])
        for case in every_model()
    ]  # fmt: skip
    return pytest.mark.parametrize("exported", params, indirect=True, scope="module")


every_case, every_precise_case = cases(OF_MAKE_TEST, BY_DAY), cases({"rnnsearch"}, PRECISE)


@pytest.fixture(scope="module")
def exported(
    request: pytest.FixtureRequest, tokenizer: SentencePieceTokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Exported:
    return Exported(request.param, tokenizer, tmp_path_factory.mktemp("exports"))


@every_case
def test_graphs_equal_the_model(exported: Exported) -> None:
    model, bundle = exported.model, exported.bundle
    assert max(exported.parity.values()) < ROUNDING
    assert exported.unchanged
    assert "parents" in str(bundle.manifest.graphs["decoder_step"])
    assert not any(b"graphs.py" in content for content in bundle.files.values())  # as in stack traces
    is_shared = model.encoder.embedding is not None and model.encoder.embedding is model.decoder.embedding
    assert (EMBEDDING_TABLE in str(bundle.manifest.graphs["encoder"])) == is_shared
    assert OnnxStepFunction(bundle).has_attention == model.decoder.has_attention
    if exported.name in ATTENTIONS:
        operators = [n.op_type for n in onnx.load_from_string(bundle.files[DECODER_STEP]).graph.node]
        assert operators.count("Attention") == ATTENTIONS[exported.name] * len(list(model.decoder.layers))
        assert "Softmax" not in operators
    if exported.name in RECURRENCES:
        check = RECURRENCES[exported.name]
        nodes = [n for n in onnx.load_from_string(bundle.files[ENCODER]).graph.node if n.op_type in OPERATORS]
        assert len(nodes) == len(list(model.encoder.layers))
        for node in nodes:
            check(node, {a.name: helper.get_attribute_value(a) for a in node.attribute})


@every_case
def test_the_weights_of_each_head_are_the_models(exported: Exported) -> None:
    graphs, model, tgt = OnnxStepFunction(exported.bundle), TorchStepFunction(exported.model), [7, 9, 4, 8]
    assert bool(graphs.heads) == isinstance(exported.model.decoder, TransformerDecoder)
    for src in exported.src if graphs.heads else ():
        heads = model.all_heads(src, [*tgt, EOS])
        assert heads is not None
        assert len(graphs.heads) == 1 + heads.shape[0] * heads.shape[1]
        for name, chosen in graphs.heads.items():
            (found,) = forced_alignments(graphs.with_head(name), [src], [tgt], batch_tokens=100) or []
            np.testing.assert_allclose(found, np.mean([heads[each] for each in chosen], axis=0), atol=1e-5)


def is_lstm_that_gives_its_memory(node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
    """A cell without an output gate."""
    assert attributes["activations"] == [b"Sigmoid", b"Tanh", b"Affine"] * 2


def is_scan_of_the_tokens(node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
    """A cell with options that no operator has."""
    assert node.input[-1] == "src_tokens"
    assert attributes["scan_input_axes"][-1] == 1
    assert not any(part.metadata_props for part in attributes["body"].node)


def is_gru_that_resets(place: str, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
    """The form that was trained."""
    assert attributes.get("linear_before_reset", 0) == (place == "after")
    assert (attributes["direction"], attributes["hidden_size"]) == (b"bidirectional", 8)


ATTENTIONS = {"transformer_base": 2, "decoder_only": 1}  # of a layer
OPERATORS = ("GRU", "LSTM", "Scan")
RECURRENCES = {
    "input_forget": is_lstm_that_gives_its_memory,
    "nematus_deep": is_scan_of_the_tokens,
    "rnnsearch": partial(is_gru_that_resets, "before"),
    "pointer_generator": partial(is_gru_that_resets, "after"),
}


@every_case
def test_the_single_graph_translates_as_the_search_does(exported: Exported) -> None:
    model, bundle = exported.model, exported.bundle
    vocab_size = bundle.manifest.tgt_vocab_size
    if model.encoder.embedding is None or model.encoder.description.feature_dim is not None:
        with pytest.raises(ConfigError, match=r"this model reads (none|feature vectors); use format=bundle"):
            single_graph(bundle.files, BeamSearch(), vocab_size, 64)
        return
    search = BeamSearch(beam=4, n_best=3, alignments=model.decoder.has_attention)
    graph = single_graph(bundle.files, search, vocab_size, 64)
    single = onnxruntime.InferenceSession(graph)
    rng = np.random.default_rng(0)
    for lengths in ([1], [37], [2, 9, 1, 5], [6] * 3):
        src = [rng.integers(len(SPECIALS), vocab_size, length).tolist() for length in lengths]
        compare_translations(single, OnnxStepFunction(bundle), search, src)
    if exported.name in WIDER:  # a decoder-only stack is there once
        of_step, of_single = (
            sorted(t.dims[:] for t in onnx.load_from_string(content).graph.initializer if len(t.dims) == 2)
            for content in (bundle.files[DECODER_STEP], graph)
        )
        assert of_single == of_step
        layers = len(list(model.decoder.layers))
        assert len(of_step) == 1 + 4 * layers  # embeddings; attention and feed-forward, in and out


@every_case
def test_greedy_search_of_one_sentence_is_that_of_blocks_and_single_steps(exported: Exported) -> None:
    check_greedy(exported.bundle, exported.src)


@every_precise_case
@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_greedy_search_in_other_precisions_is_that_of_blocks(precision: LowPrecision, exported: Exported) -> None:
    if list(exported.model.parameters()):
        lowered = exported.int8 if precision == "int8" else exported.in_precision(precision)
        check_greedy(with_block(lowered, LOW_TOLERANCE), exported.src, atol=0.02)


def check_greedy(bundle: Bundle, sources: Sentences, *, atol: float = 1e-4) -> None:
    """Translates one by one with ``decoder_greedy.onnx``, with ``decoder_block.onnx`` and in single steps."""
    assert GREEDY_STEP not in bundle.files
    own, of_step = (
        {t.raw_data for t in onnx.load_from_string(bundle.files[name]).graph.initializer if len(t.raw_data) >= 1024}
        for name in (DECODER_GREEDY, DECODER_STEP)
    )
    assert not own & of_step
    greedy, beams = (OnnxStepFunction(bundle) for _ in range(2))
    beams._greedy_graph = None
    for src in sources:
        lists = [Greedy()(each, [src]) for each in (greedy, beams, greedy.without_block())]
        assert len({(h.tokens, h.truncated) for ((h,),) in lists}) == 1
        numbers = [[h.log_prob, h.score] for ((h,),) in lists]
        np.testing.assert_allclose(numbers, [numbers[0]] * 3, atol=atol * (1 + len(lists[0][0][0].tokens)))
    assert "_greedy" in vars(greedy)
    wrong = replace(bundle.manifest, graphs=bundle.manifest.graphs | {"decoder_greedy": {}})
    with pytest.raises(BundleError, match=r"inputs of decoder_greedy\.onnx"):
        Greedy()(OnnxStepFunction(replace(bundle, manifest=wrong)), sources[:1])
    settings = {"limits": np.array([[40]]), "norms": np.arange(41.0), "limit_norms": np.array([[40.0]])}
    settings |= {name: np.array([size]) for name, size in {"size": 1, "returned": 1, "k": 2, "twice": 2}.items()}
    before = {"tokens": np.array([[BOS]]), "log_probs": np.array([[-0.5]]), "best_scores": np.array([[-np.inf]])}
    before["ended"] = np.array([[0]])
    (found, state), (expected, other) = (
        each.run_block(settings | before, each.start(sources[-1:]), 32) for each in (greedy, beams)
    )
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=40 * atol, err_msg=name)
    for values, others in zip(state.cache, other.cache, strict=True):
        np.testing.assert_allclose(values, others, atol=10 * atol)


@pytest.mark.day
def test_a_single_graph_is_written_with_a_description(
    tokenizer: SentencePieceTokenizer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = random_model(("rnnsearch",), tokenizer.vocab_size, seed=3)
    bundle, _ = export(model, model, tokenizer, tmp_path / "single", finish=SingleFormat().finish)
    shown = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not [record for record in shown if record.name.startswith("onnx")]
    assert bundle.files.keys() == {"model.onnx", "joint.model", "tokenizer.json", "README.md"}
    session = onnxruntime.InferenceSession(bundle.files["model.onnx"])
    described = bundle.manifest.graphs["model"]
    for side, ports in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
        names = {"tensor(int64)": "int64", "tensor(float)": "float32"}
        actual = [(port.name, names[port.type], port.shape) for port in ports]
        assert actual == [(port["name"], port["dtype"], port["shape"]) for port in described[side]]
        assert all(f"| `{name}` | {dtype} |" in bundle.files["README.md"].decode() for name, dtype, _ in actual)


@every_precise_case
def test_the_words_of_a_shortlist_have_the_probabilities_of_a_masked_model(exported: Exported) -> None:
    model, size = exported.model, exported.tokenizer.vocab_size
    tables = np.arange(4, size)[::-1], np.arange(size)[:, None] * [1, 0] - [0, 1]  # the word itself
    if isinstance(model.decoder.output_projection, OutputLayer):
        name = type(model.decoder.output_projection).__name__
        with pytest.raises(ConfigError, match=f"a shortlist needs a linear output layer, but the model has {name}"):
            exported.export("short", shortlist=tables)
        assert not (exported.folder / "short").exists()
        return
    bundle, parity = exported.export("short", shortlist=tables)
    assert max(parity.values()) < ROUNDING
    words = open_shortlist(bundle, 3)
    restricted = OnnxStepFunction(bundle).with_shortlist(words)
    assert not isinstance(restricted, ShortlistStep)
    search = BeamSearch(beam=4, n_best=4, max_length_factor=0.0, max_length_offset=5)
    sources = as_sources([[4, 5], [6], [], [7, 8, 9, 4]], bundle.manifest.feature_dim)
    together = search(restricted, sources)
    masked = search(ShortlistStep(TorchStepFunction(model), words), sources)
    for source, found, expected in zip(sources, together, masked, strict=True):
        (alone,) = search(restricted, [source])
        assert [h.tokens for h in found] == [h.tokens for h in alone] == [h.tokens for h in expected]
        assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in expected], abs=1e-4)
        assert {token for h in found for token in h.tokens} <= set(words([source]).tokens.tolist())


@every_precise_case
@pytest.mark.parametrize(("precision", "error"), [("fp16", 0.005), ("int8", 0.2)])
def test_other_precisions_compute_nearly_the_same(precision: LowPrecision, error: float, exported: Exported) -> None:
    if not list(exported.model.parameters()):
        with pytest.raises(ConfigError, match=f"precision={precision} needs weight matrices"):
            exported.in_precision(precision)
        return
    lowered = exported.int8 if precision == "int8" else exported.in_precision(precision)
    expected, actual = (log_probs_of(OnnxStepFunction(b), exported.src) for b in (exported.bundle, lowered))
    assert 0 < np.abs(actual - expected).mean() < error * expected.std()


@every_precise_case
def test_a_sentence_in_int8_does_not_depend_on_its_batch_mates(exported: Exported) -> None:
    if not list(exported.model.parameters()):
        pytest.skip("there is no int8 of counts")
    step_fn = OnnxStepFunction(exported.int8)
    together, alone = (translate_ids(step_fn, BeamSearch(), exported.src, batch_tokens=tokens) for tokens in (100, 1))
    differences = []
    for n_best, n_best_alone in zip(together, alone, strict=True):
        assert [h.tokens for h in n_best] == [h.tokens for h in n_best_alone]
        differences.append(max(abs(h.score - other.score) for h, other in zip(n_best, n_best_alone, strict=True)))
    # A value between two integers may fall to either side: float32 sums differ in their last bits with the batch.
    assert sorted(differences)[-2] < 1e-5
    assert max(differences) < 1e-3


def has_scan(graph: bytes) -> bool:
    return any(node.op_type == "Scan" for node in onnx.load_from_string(graph).graph.node)


def log_probs_of(step_fn: OnnxStepFunction, src: Sentences) -> Any:
    """The log probabilities ``[steps, sentences, vocab]`` of some words."""
    state, steps = step_fn.start(src), []
    for token in (BOS, 5, 9, 7):
        log_probs, _, state = full_log_probs(step_fn, np.full(len(src), token), state)
        steps.append(log_probs)
    return np.stack(steps)


@pytest.mark.day  # unit/export/test_parity.py
def test_graphs_that_differ_are_refused(tokenizer: SentencePieceTokenizer, tmp_path: Path) -> None:
    model = random_model(("rnnsearch",), tokenizer.vocab_size, seed=1)
    other = random_model(("rnnsearch",), tokenizer.vocab_size, seed=2)
    with pytest.raises(BundleError, match="differ from the model"):
        export(model, other, tokenizer, tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "exported", [case for case in every_model() if case.id in (ROTARY, DECODER_ONLY)], indirect=True, scope="module"
)
def test_slots_that_no_hypothesis_sees_are_dropped(exported: Exported) -> None:
    beams, steps, sentences = 4, 13, [[5, 9, 12], [7], [10, 11, 12, 13, 9, 8, 7, 6, 5, 4, 10]]
    backends = (TorchStepFunction(exported.model), OnnxStepFunction(exported.bundle))
    states: list[Any] = [backend.start(sentences) for backend in backends]
    rows, tokens = np.repeat(np.arange(3), beams), np.full(3, BOS)
    rng = np.random.default_rng(0)
    slots = [states[1].cache[0].shape[2]]  # those of the source, of a decoder-only model
    for step in range(steps):
        outputs = [full_log_probs(b, tokens, state) for b, state in zip(backends, states, strict=True)]
        for found, expected in zip(outputs[1][:2], outputs[0][:2], strict=True):  # log probabilities and alignments
            np.testing.assert_allclose(found, expected, atol=TOLERANCE)
        states = [backend.select(after, rows) for backend, (*_, after) in zip(backends, outputs, strict=True)]
        if step == 0:  # the longest source ends
            states = [backend.keep(after, np.arange(2)) for backend, after in zip(backends, states, strict=True)]
        bias, keys, *_ = states[1].cache
        assert bias.shape[2] == keys.shape[2]
        slots.append(bias.shape[2])
        # The first sentence's beams have all but their last word in common, those of the second less and less.
        rows = np.concatenate([np.zeros(beams, dtype=np.int64), beams + rng.integers(0, beams, beams)])
        tokens = rng.integers(len(SPECIALS), exported.tokenizer.vocab_size, 2 * beams)
    assert slots[-1] < slots[0] + 1 + beams * (steps - 1)
    assert slots[0] == 0 or min(slots) < slots[0]  # there may be fewer than the longest source had tokens
