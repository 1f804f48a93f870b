"""Guided alignment against a transcription of the papers' equations in NumPy."""

from typing import Any

import numpy as np
import pytest
import torch

from softsearch.data.corpora.parallel import Parallel
from softsearch.errors import ConfigError, CorpusError
from softsearch.models.interface import Decoder
from softsearch.models.loss import CrossEntropy
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import small_model
from softsearch.training.faults.step_guard import placeholder_batch
from softsearch.training.interface import TrainingStep, teacher_forcing
from softsearch.training.objectives.guided_alignment import GuidedAlignment
from tests.unit.training.objectives.batches import BATCH, TOKENS, gradients

GUIDED = ("method=guided_alignment",)
LINKS = torch.tensor([[[0, 1], [0, 0], [1, 0]], [[0, 0], [0, 0], [0, 0]], [[1, 1], [0, 1], [0, 0]]], dtype=torch.float)
# of each target token; the second pair has none, as all EOS
WEIGHTS = torch.nn.functional.pad(LINKS / LINKS.sum(-1, keepdim=True).clamp(min=1), (0, 1, 0, 1))
GUIDED_BATCH = BATCH._replace(links=WEIGHTS)


def cross_entropy_of_attention(model: Seq2Seq) -> float:
    """-sum_t sum_s a*_ts log a_ts over the steps of a decoder (Garg et al., equation 5; Chen et al., section 3)."""
    total, state = 0.0, model.encode(GUIDED_BATCH.src_tokens)
    for step, read in enumerate(GUIDED_BATCH.tgt_tokens[:, :-1].unbind(1)):
        _, attended, state = model.decoder.step(read, state)
        assert attended is not None
        for pair in range(3):
            for s in range(3):
                if step < 3 and s < 2 and LINKS[pair, step, s]:
                    number = float(LINKS[pair, step].sum())  # of source words that target word is linked to
                    total -= np.log(attended[pair, s].item()) / number
    return total


@pytest.mark.parametrize("weight", [0.05, 2.0])
@pytest.mark.parametrize(
    "name", ["rnnsearch", "nematus", "luong2015", "transformer_tiny", "transformer_ssru", "decoder_only"]
)
def test_is_the_papers_loss(name: str, weight: float) -> None:
    model = small_model(name, *GUIDED).train()
    loss, tokens = GuidedAlignment(weight=weight)(TrainingStep(model, CrossEntropy(smoothing=0.1), GUIDED_BATCH))
    usual = teacher_forcing(TrainingStep(model, CrossEntropy(smoothing=0.1), BATCH))[0]
    expected = usual.smoothed.item() + weight * cross_entropy_of_attention(model)
    assert int(tokens) == TOKENS
    assert abs(loss.smoothed.item() - expected) < 1e-9
    torch.testing.assert_close(loss.nll, usual.nll)


def test_one_head_of_the_penultimate_layer_of_a_transformer_is_trained() -> None:
    model = small_model("transformer_tiny", *GUIDED).train()
    layer: Any = model.decoder.alignment_layer
    assert (layer, len(model.decoder.layers)) == (0, 2)  # type: ignore[arg-type]
    loss, plain = (
        GuidedAlignment(weight=weight)(TrainingStep(model, CrossEntropy(), GUIDED_BATCH))[0].smoothed
        for weight in (1.0, 0.0)
    )
    names = [name for name, _ in model.named_parameters()]
    alone = dict(
        zip(names, (a - b for a, b in zip(gradients(loss, model), gradients(plain, model), strict=True)), strict=True)
    )
    attention = f"decoder.layers.{layer}.cross_attention"
    query, key_value = (alone[f"{attention}.{name}_projection.weight"] for name in ("query", "key_value"))
    size = query.shape[0] // 2  # of a head
    assert query[:size].abs().max() > 1e-6
    assert key_value[:size].abs().max() > 1e-6
    for other in (query[size:], key_value[size:]):  # the other head, and all values
        assert other.abs().max() < 1e-12
    after = f"decoder.layers.{layer + 1}"
    assert all(gradient.abs().max() < 1e-12 for name, gradient in alone.items() if name.startswith(after))


def test_pairs_without_links_train_by_their_words_alone() -> None:
    model = small_model("nematus").train()
    batch = BATCH._replace(links=torch.zeros_like(WEIGHTS))
    found = GuidedAlignment()(TrainingStep(model, CrossEntropy(), batch))[0]
    assert torch.equal(found.smoothed, teacher_forcing(TrainingStep(model, CrossEntropy(), BATCH))[0].smoothed)


def test_positions_of_several_characters_share_the_links_of_all() -> None:
    model = small_model("lee2017").train()
    loss = GuidedAlignment(weight=1.0)(TrainingStep(model, CrossEntropy(), GUIDED_BATCH))[0].smoothed
    assert torch.isfinite(loss)
    assert loss > teacher_forcing(TrainingStep(model, CrossEntropy(), BATCH))[0].smoothed


def test_a_placeholder_has_links_too() -> None:
    batch = placeholder_batch(GUIDED_BATCH)
    assert batch.links is not None
    assert batch.links.shape == (1, batch.tgt_tokens.shape[1] - 1, batch.src_tokens.shape[1])
    GuidedAlignment()(TrainingStep(small_model("nematus").train(), CrossEntropy(), batch))


def source(links: Any) -> Parallel:
    return Parallel(train=("a.en", "a.de"), val=("b.en", "b.de"), links=links)


@pytest.mark.parametrize(
    ("model", "links", "message"),
    [
        (("nematus",), None, "data.links names none; set data.links=auto"),
        (("nematus",), {"train": None}, "data.links names none"),
        (("sutskever2014",), "auto", "a RecurrentDecoder, which attends to no source; set model="),
        (("rnnlm",), "auto", "attends to no source"),
        (
            ("decoder_only",),
            "auto",
            "returns the alignments of layer 1 and all heads; set model.decoder.alignment_layer",
        ),
        (("transformer_tiny",), "auto", "returns the alignments of layer 1 and all heads; set model.decoder.alignment"),
        (("transformer_tiny", *GUIDED, "model.decoder.alignment_head=1"), "auto", "layer 0 and head 1"),
    ],
)
def test_what_does_not_fit_is_refused(model: tuple[str, ...], links: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GuidedAlignment().check(small_model(*model), source(links))


def test_attention_that_cannot_be_trained_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("nematus")
    missing = Decoder.features_and_alignments
    monkeypatch.setattr(type(model.decoder), "features_and_alignments", missing)
    with pytest.raises(ConfigError, match="AttentionalDecoder, without features_and_alignments; set model="):
        GuidedAlignment().check(model, source("auto"))


def test_files_of_links_are_looked_for_first() -> None:
    with pytest.raises(CorpusError, match=r"data\.links.train: no such file: none"):
        GuidedAlignment().check(small_model("nematus"), source({"train": "none.txt"}))


def test_other_models_show_the_mean_of_the_last_layer() -> None:
    decoder: Any = small_model("transformer_tiny").decoder
    assert (decoder.alignment_layer, decoder.alignment_head) == (1, None)
    with pytest.raises(ConfigError, match=r"alignment_layer is -3.*expected one of 2 layers"):
        small_model("transformer_tiny", "model.decoder.alignment_layer=-3")
