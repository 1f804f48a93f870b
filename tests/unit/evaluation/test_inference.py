"""A PyTorch model behind the search, against a loop without batches, beams and NumPy; scores of its translations."""

from contextlib import nullcontext
from functools import partial
from typing import cast

import numpy as np
import pytest
import torch
from torch.nn import functional

from softsearch.errors import ConfigError
from softsearch.evaluation.inference import TorchStepFunction, evaluate, evaluating, translate_sources
from softsearch.evaluation.test_set import HeldOutText
from softsearch.models.attention import AdditiveAttention
from softsearch.models.attentional import AttentionalDecoder
from softsearch.models.interface import over_tokens
from softsearch.models.output_layers import OutputLayer
from softsearch.models.seq2seq import Seq2Seq
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.search.shortlist import Shortlist, ShortlistStep
from softsearch.testing.models import SRC_VOCAB, TGT_VOCAB, small_model
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS, with_eos
from tests.support.default_metrics import METRICS, corpus_scores
from tests.support.models import every_model

SOURCES = [[4, 9, 6, 12], [7], [16, 5, 5], [], [8, 10, 11, 13, 14, 15]]
MODELS = ["rnnsearch", "transformer_tiny", "lee2017"]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return small_model(request.param, seed=3)


@torch.no_grad()
def best_path(model: Seq2Seq, source: list[int], limit: int) -> tuple[list[int], float, list[list[float]]]:
    """Greedy search of one sentence, through the model's forward pass alone."""
    read, log_prob = [BOS], 0.0
    while True:
        logits = model(torch.tensor([source]), torch.tensor([read]))[0, -1]
        token = int(logits.argmax())
        log_prob += float(logits.log_softmax(-1)[token])
        if token == EOS or len(read) == limit:
            tokens = read[1:] if token == EOS else [*read[1:], token]
            return tokens, log_prob, alignments_of(model, source, read)
        read.append(token)


def alignments_of(model: Seq2Seq, source: list[int], read: list[int]) -> list[list[float]]:
    state, rows, real = model.encode(torch.tensor([source])), [], torch.ones(1, len(source), dtype=torch.bool)
    for token in read:
        output = model.decoder.step(torch.tensor([token]), state)
        per_position = model.encoder.description.tokens_per_position
        rows.append(over_tokens(output.alignments, real, per_position)[0].tolist())
        state = output.state
    return rows


def test_greedy_search_equals_a_loop(model: Seq2Seq) -> None:
    search = Greedy(max_length_factor=1.0, max_length_offset=4, alignments=True)
    found = translate_ids(TorchStepFunction(model), search, SOURCES, batch_tokens=100)
    for source, (hypothesis,) in zip(SOURCES, found, strict=True):
        tokens, log_prob, alignments = best_path(model, with_eos(source), limit=len(source) + 4)
        assert list(hypothesis.tokens) == tokens
        assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-4)
        assert hypothesis.alignments is not None
        for row, expected in zip(hypothesis.alignments, alignments, strict=True):
            assert row.tolist() == pytest.approx(expected, abs=1e-5)


@torch.no_grad()
def test_beam_search_scores_are_the_models(model: Seq2Seq) -> None:
    search = BeamSearch(beam=4, n_best=4, max_length_factor=1.0, max_length_offset=4)
    found = translate_ids(TorchStepFunction(model), search, SOURCES, batch_tokens=100)
    greedy = translate_ids(
        TorchStepFunction(model), Greedy(max_length_factor=1.0, max_length_offset=4), SOURCES, batch_tokens=100
    )
    for source, hypotheses, (single,) in zip(SOURCES, found, greedy, strict=True):
        assert len(hypotheses) == 4
        assert len({hypothesis.tokens for hypothesis in hypotheses}) == 4
        assert single.truncated or hypotheses[0].score >= single.score - 1e-4
        for hypothesis in hypotheses:
            targets = hypothesis.written
            logits = model(torch.tensor([with_eos(source)]), torch.tensor([[BOS, *targets[:-1]]]))[0]
            log_probs = logits.log_softmax(-1)[range(len(targets)), targets]
            assert hypothesis.log_prob == pytest.approx(float(log_probs.sum()), abs=1e-4)


def test_batches_do_not_change_translations(model: Seq2Seq) -> None:
    search = BeamSearch(beam=3, max_length_factor=1.0, max_length_offset=4)
    together = translate_ids(TorchStepFunction(model), search, SOURCES, batch_tokens=1000)
    alone = translate_ids(TorchStepFunction(model), search, SOURCES, batch_tokens=1)
    assert [n_best[0].tokens for n_best in together] == [n_best[0].tokens for n_best in alone]


def test_attention_that_is_still_even_is_attention() -> None:
    """As at the start of training, where v_a is 0 (Bahdanau et al. 2015, appendix B.1)."""
    model = small_model("rnnsearch")
    with torch.no_grad():
        cast(AdditiveAttention, cast(AttentionalDecoder, model.decoder).attention).energy_weight.zero_()
    step_fn = TorchStepFunction(model)
    candidates, _ = step_fn.step(np.array([BOS]), step_fn.start([[4, 5]]), 1)
    assert candidates.alignments == pytest.approx(1 / 3)
    assert step_fn.has_attention
    assert not TorchStepFunction(small_model("gru")).has_attention


def test_candidates_are_the_best_first(model: Seq2Seq) -> None:
    step_fn = TorchStepFunction(model)
    assert step_fn.vocab_size == TGT_VOCAB
    state = step_fn.start(SOURCES)
    tokens = torch.full((len(SOURCES),), BOS).numpy()
    every, _ = step_fn.step(tokens, state, TGT_VOCAB)
    assert every.log_probs.shape == every.tokens.shape == (len(SOURCES), TGT_VOCAB)
    assert [sorted(row) for row in every.tokens.tolist()] == [list(range(TGT_VOCAB))] * len(SOURCES)
    totals = torch.from_numpy(every.log_probs).exp().sum(-1)
    torch.testing.assert_close(totals, torch.ones(len(SOURCES)))
    best, _ = step_fn.step(tokens, state, 5)
    order = np.argsort(-every.log_probs, axis=1)[:, :5]
    np.testing.assert_array_equal(best.tokens, np.take_along_axis(every.tokens, order, axis=1))
    np.testing.assert_array_equal(best.log_probs, np.take_along_axis(every.log_probs, order, axis=1))


SHORTLIST = Shortlist(np.array([EOS, 5, 6]), np.array([[t % TGT_VOCAB, (3 * t) % TGT_VOCAB] for t in range(SRC_VOCAB)]))


@pytest.mark.parametrize("case", every_model())
def test_a_shortlist_is_a_softmax_over_its_words(case: tuple[str, ...]) -> None:
    model = small_model(*case, seed=3)
    if isinstance(model.decoder.output_projection, OutputLayer):
        with pytest.raises(ConfigError, match="a shortlist needs a linear output layer, but the model has "):
            TorchStepFunction(model, SHORTLIST)
        return
    whole, short = TorchStepFunction(model), TorchStepFunction(model, SHORTLIST)
    states, tokens = [whole.start(SOURCES), short.start(SOURCES)], np.full(len(SOURCES), BOS)
    sentences, beams = np.arange(len(SOURCES)), 1
    for _ in range(3):
        (every, first), (few, second) = (f.step(tokens, s, 30) for f, s in zip((whole, short), states, strict=True))
        for row in range(len(tokens)):
            own = SHORTLIST([SOURCES[sentences[row // beams]]]).tokens.tolist()
            logits = dict(zip(every.tokens[row].tolist(), every.log_probs[row].tolist(), strict=True))
            expected = torch.tensor([logits[token] for token in own]).log_softmax(-1).tolist()
            found = dict(zip(few.tokens[row].tolist(), few.log_probs[row].tolist(), strict=True))
            assert [found.pop(token) for token in own] == pytest.approx(expected, abs=1e-5)
            assert set(found.values()) <= {-np.inf}
        kept = np.flatnonzero(np.arange(len(sentences)) != 1)
        rows = (np.arange(len(kept))[:, None] * beams + [0, beams - 1]).reshape(-1)
        states = [f.select(f.keep(s, kept), rows) for f, s in zip((whole, short), (first, second), strict=True)]
        sentences, beams, tokens = sentences[kept], 2, 4 + np.arange(2 * len(kept))


@pytest.mark.parametrize("name", MODELS)
def test_translations_keep_to_the_shortlist_whatever_the_batch(name: str) -> None:
    step_fn = TorchStepFunction(small_model(name, seed=3), SHORTLIST)
    search = BeamSearch(beam=4, n_best=4, max_length_factor=1.0, max_length_offset=4)
    together = translate_ids(step_fn, search, SOURCES, batch_tokens=1000)
    alone = translate_ids(step_fn, search, SOURCES, batch_tokens=1)
    for source, ours, theirs in zip(SOURCES, together, alone, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        for hypothesis in ours:
            assert set(hypothesis.tokens) <= set(SHORTLIST([source]).tokens.tolist())


@pytest.mark.parametrize("name", MODELS)
def test_a_shortlist_over_the_finished_distribution_finds_the_same(name: str) -> None:
    model = small_model(name, seed=3)
    search = BeamSearch(beam=4, n_best=4, max_length_factor=1.0, max_length_offset=4)
    inside, over = (
        translate_ids(step_fn, search, SOURCES, batch_tokens=1000)
        for step_fn in (TorchStepFunction(model, SHORTLIST), ShortlistStep(TorchStepFunction(model), SHORTLIST))
    )
    for ours, theirs in zip(inside, over, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        assert [h.log_prob for h in ours] == pytest.approx([h.log_prob for h in theirs], abs=1e-5)


def test_a_shortlist_smaller_than_the_beam_is_enough() -> None:
    nothing = Shortlist(np.array([EOS]), np.full((SRC_VOCAB, 1), 7))
    search = BeamSearch(beam=5, max_length_factor=0.0, max_length_offset=2)
    found = translate_ids(TorchStepFunction(small_model(MODELS[0]), nothing), search, SOURCES, batch_tokens=99)
    assert {hypotheses[0].tokens for hypotheses in found} <= {(), (7,), (7, 7)}


LINES = ["abc def", "g", "", "fed cba abc"]
REFERENCES = ["fed", "abc g", "d", "cab"]
TEXT = HeldOutText("t", LINES, REFERENCES, "lc_tok", "en", "de")


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieceTokenizer:
    tokenizer = train_tokenizer(["abcdefghijkl abc"] * 3, kind="char", vocab_size=TGT_VOCAB)
    assert tokenizer.vocab_size == TGT_VOCAB
    return tokenizer


@pytest.fixture
def training_model() -> Seq2Seq:
    return small_model("rnnsearch").train()


def test_translations_keep_the_order_of_the_lines(training_model: Seq2Seq, tokenizer: SentencePieceTokenizer) -> None:
    search = Greedy(max_length_factor=1.0, max_length_offset=5)
    src = [tokenizer.encode(line) for line in LINES]
    together = translate_sources(training_model, tokenizer, search, src)
    alone = [translate_sources(training_model, tokenizer, search, [ids])[0] for ids in src]
    assert together == alone
    assert len(set(together)) > 1
    assert training_model.training  # as it was


@torch.no_grad()
@pytest.mark.parametrize("seconds", [-1.0, 100.0])
def test_a_translation_may_have_a_limit_of_time(
    seconds: float, training_model: Seq2Seq, tokenizer: SentencePieceTokenizer
) -> None:
    limited = partial(translate_sources, training_model, tokenizer, Greedy(), [[5, 6]] * 3)
    with nullcontext() if seconds > 0 else pytest.raises(TimeoutError, match="of 3 sentences takes more than"):
        assert limited(seconds=seconds) == limited()
    assert training_model.training


def test_the_loss_is_the_mean_over_target_tokens(training_model: Seq2Seq, tokenizer: SentencePieceTokenizer) -> None:
    total, tokens = 0.0, 0
    training_model.eval()
    for source, reference in zip(LINES, REFERENCES, strict=True):
        ids = [*tokenizer.encode(reference), EOS]
        logits = training_model(torch.tensor([[*tokenizer.encode(source), EOS]]), torch.tensor([[BOS, *ids[:-1]]]))[0]
        total += functional.cross_entropy(logits, torch.tensor(ids), reduction="sum").item()
        tokens += len(ids)
    _, scores = evaluate(training_model.train(), (tokenizer, tokenizer), Greedy(), TEXT, METRICS)
    assert scores.values["loss"] == pytest.approx(total / tokens, rel=1e-5)


def test_scores_carry_the_loss(training_model: Seq2Seq, tokenizer: SentencePieceTokenizer) -> None:
    hypotheses, scores = evaluate(training_model, (tokenizer, tokenizer), Greedy(), TEXT, METRICS)
    assert set(scores.values) == {"bleu", "chrf", "ter", "exact_match", "loss"}
    assert len(hypotheses) == len(LINES)


def test_each_language_that_tags_ask_for_is_scored(training_model: Seq2Seq, tokenizer: SentencePieceTokenizer) -> None:
    text = HeldOutText("t", ["<2de> abc", "<2fr> abc def", "<2de> fed"], REFERENCES[:3], "lc_tok", "en", "de+fr")
    hypotheses, scores = evaluate(training_model, (tokenizer, tokenizer), Greedy(), text, METRICS)
    names = {"bleu", "chrf", "ter", "exact_match"}
    assert set(scores.values) == {"loss"} | {f"{lang}{name}" for name in names for lang in ("", "de/", "fr/")}
    places = {"de": [0, 2], "fr": [1]}
    for lang, chosen in places.items():
        alone = corpus_scores(
            [hypotheses[i] for i in chosen], [REFERENCES[i] for i in chosen], text_form="lc_tok", tgt_lang=lang
        )
        assert {name: scores.values[f"{lang}/{name}"] for name in names} == alone.values
        assert scores.signatures[f"{lang}/bleu"] == alone.signatures["bleu"]


def test_the_mode_is_restored_after_an_error(training_model: Seq2Seq) -> None:
    modes = []

    def fail() -> None:
        with evaluating(training_model):
            modes.append(training_model.training)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert modes == [False]
    assert training_model.training
