"""Translating and scoring text with a PyTorch model."""

import pytest
import torch
from torch.nn import functional

from softsearch.evaluation.inference import evaluate, evaluating, translate_sources
from softsearch.evaluation.test_set import HeldOutText
from softsearch.models.interface import Seq2Seq
from softsearch.search.greedy import Greedy
from softsearch.testing.models import TGT_VOCAB, small_model
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS
from tests.unit.evaluation.default_metrics import METRICS, corpus_scores

SOURCES = ["abc def", "g", "", "fed cba abc"]
REFERENCES = ["fed", "abc g", "d", "cab"]
TEXT = HeldOutText("t", SOURCES, REFERENCES, "lc_tok", "en", "de")


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieceTokenizer:
    tokenizer = train_tokenizer(["abcdefghijkl abc"] * 3, kind="char", vocab_size=TGT_VOCAB)
    assert tokenizer.vocab_size == TGT_VOCAB
    return tokenizer


@pytest.fixture
def model() -> Seq2Seq:
    return small_model("rnnsearch").train()


def test_translations_keep_the_order_of_the_lines(model: Seq2Seq, tokenizer: SentencePieceTokenizer) -> None:
    search = Greedy(max_length_factor=1.0, max_length_offset=5)
    src = [tokenizer.encode(line) for line in SOURCES]
    together = translate_sources(model, tokenizer, search, src)
    alone = [translate_sources(model, tokenizer, search, [ids])[0] for ids in src]
    assert together == alone
    assert len(set(together)) > 1
    assert model.training  # as it was


@torch.no_grad()
def test_the_loss_is_the_mean_over_target_tokens(model: Seq2Seq, tokenizer: SentencePieceTokenizer) -> None:
    total, tokens = 0.0, 0
    model.eval()
    for source, reference in zip(SOURCES, REFERENCES, strict=True):
        ids = [*tokenizer.encode(reference), EOS]
        logits = model(torch.tensor([[*tokenizer.encode(source), EOS]]), torch.tensor([[BOS, *ids[:-1]]]))[0]
        total += float(functional.cross_entropy(logits, torch.tensor(ids), reduction="sum"))
        tokens += len(ids)
    _, scores = evaluate(model.train(), (tokenizer, tokenizer), Greedy(), TEXT, METRICS)
    assert scores.values["loss"] == pytest.approx(total / tokens, rel=1e-5)


def test_scores_carry_the_loss(model: Seq2Seq, tokenizer: SentencePieceTokenizer) -> None:
    hypotheses, scores = evaluate(model, (tokenizer, tokenizer), Greedy(), TEXT, METRICS)
    assert set(scores.values) == {"bleu", "chrf", "ter", "exact_match", "loss"}
    assert len(hypotheses) == len(SOURCES)


def test_each_language_that_tags_ask_for_is_scored(model: Seq2Seq, tokenizer: SentencePieceTokenizer) -> None:
    text = HeldOutText("t", ["<2de> abc", "<2fr> abc def", "<2de> fed"], REFERENCES[:3], "lc_tok", "en", "de+fr")
    hypotheses, scores = evaluate(model, (tokenizer, tokenizer), Greedy(), text, METRICS)
    names = {"bleu", "chrf", "ter", "exact_match"}
    assert set(scores.values) == {"loss"} | {f"{lang}{name}" for name in names for lang in ("", "de/", "fr/")}
    places = {"de": [0, 2], "fr": [1]}
    for lang, chosen in places.items():
        alone = corpus_scores(
            [hypotheses[i] for i in chosen],
            [REFERENCES[i] for i in chosen],
            text_form="lc_tok",
            tgt_lang=lang,
        )
        assert {name: scores.values[f"{lang}/{name}"] for name in names} == alone.values
        assert scores.signatures[f"{lang}/bleu"] == alone.signatures["bleu"]


def test_the_mode_is_restored_after_an_error(model: Seq2Seq) -> None:
    modes = []

    def fail() -> None:
        with evaluating(model):
            modes.append(model.training)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert modes == [False]
    assert model.training
