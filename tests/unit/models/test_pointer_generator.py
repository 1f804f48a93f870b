"""The pointer-generator's mixture in numbers that are hard for it, and what it is for: words that were never seen."""

import numpy as np
import pytest
import torch
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn
from torch.nn import functional

from softsearch.app.config.build import build_model
from softsearch.app.config.validation import build
from softsearch.data.dataset import Batch, pad
from softsearch.errors import ConfigError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.models.loss import CrossEntropy
from softsearch.models.pointer_generator import CopyMixture
from softsearch.models.seq2seq import Seq2Seq
from softsearch.search.greedy import Greedy
from softsearch.testing.models import SRC_VOCAB, model_config
from softsearch.text.tokenizer import train_tokenizer
from softsearch.text.vocabulary import EOS, PAD
from softsearch.training.interface import TrainingStep, teacher_forcing
from softsearch.training.objectives.r_drop import symmetric_divergence

DIM, VOCAB = 6, 17
SRC = torch.tensor([[5, 9, 5, EOS], [9, EOS, PAD, PAD], [4, 5, 6, EOS]])


def mixture(dtype: torch.dtype = torch.float64) -> CopyMixture:
    torch.manual_seed(0)
    return CopyMixture(nn.Linear(DIM, VOCAB, dtype=dtype), DIM)


def rows(gate: float, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The arguments of ``CopyMixture.mix``."""
    draw = torch.Generator().manual_seed(1)
    t, energies = (torch.randn(3, width, dtype=dtype, generator=draw) for width in (DIM, 4))
    alignments = energies.masked_fill(SRC == PAD, -torch.inf).softmax(-1)
    return t, torch.full((3, 1), gate, dtype=dtype), alignments, SRC


@pytest.mark.parametrize("gate", [-3.0, 0.0, 2.0])
def test_equation_9(gate: float) -> None:
    output, (t, gates, alignments, src) = mixture(), rows(gate)
    p_gen = gates.sigmoid()
    copied = (alignments[:, None] * (src[:, None] == torch.arange(VOCAB)[:, None])).sum(-1)  # [rows, vocab]
    expected = p_gen * output.vocabulary_projection(t).softmax(-1) + (1 - p_gen) * copied
    found = output.mix(t, gates, alignments, src)
    torch.testing.assert_close(found, expected.log())
    torch.testing.assert_close(output(output.join(t, gates, alignments, src)), found)
    assert torch.equal(copied[:, PAD], torch.zeros(3, dtype=torch.float64))


@pytest.mark.parametrize("gate", [-200.0, -20.0, 20.0, 200.0])
@pytest.mark.parametrize("alignment", [0.0, 1e-45, 1e-30, 1.0])
def test_a_saturated_gate_has_finite_losses_and_gradients(gate: float, alignment: float) -> None:
    output = mixture(torch.float32)
    t, gates, alignments, src = rows(gate, torch.float32)
    alignments[:, 0] = alignment  # of 5, 9 and 4
    inputs = [x.requires_grad_() for x in (t, gates, alignments)]
    features = output.join(*inputs, src)
    for smoothing in (0.0, 0.1):
        loss = CrossEntropy(smoothing=smoothing)(features, torch.tensor([5, 12, PAD]), output)
        gradients = torch.autograd.grad(loss.smoothed, [*inputs, *output.parameters()], retain_graph=True)
        assert loss.smoothed.isfinite()
        assert all(gradient.isfinite().all() for gradient in gradients)
    if gate < -100:  # 12 and PAD are not in the source: the gate is told to open
        assert gradients[1][1:].max() < -0.9


def test_gradcheck_with_a_word_twice_in_the_source() -> None:
    output, (t, gates, alignments, src) = mixture(), rows(0.3)
    alignments = alignments.masked_fill(SRC == PAD, 0.1)  # at 0 a probability has no gradient on one side
    assert torch.autograd.gradcheck(
        lambda *inputs: output.mix(*inputs, src.where(src != PAD, 7)),
        [x.requires_grad_() for x in (t, gates, alignments)],
    )


def test_ids_are_exact_in_mixed_precision() -> None:
    """In bfloat16, 257 would be 256."""
    vocab = 300
    output = CopyMixture(nn.Linear(DIM, vocab), DIM)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        t = functional.linear(torch.ones(1, DIM), torch.ones(DIM, DIM))
        alignments = torch.tensor([[0.25, 0.75]], dtype=torch.bfloat16)
        features = output.join(t, torch.full((1, 1), -10.0), alignments, torch.tensor([[257, 299]]))
        log_probs = output(features)
    assert t.dtype == torch.bfloat16
    assert log_probs.dtype == torch.float32
    torch.testing.assert_close(log_probs[0, [257, 299]].exp(), torch.tensor([0.25, 0.75]), atol=1e-3, rtol=0)


def test_r_drop_compares_whole_mixtures() -> None:
    output = mixture()
    features = output.join(*rows(0.5)), output.join(*rows(-0.5))
    p, q = (output(x).exp() for x in features)
    torch.testing.assert_close(symmetric_divergence(*features, output), ((p - q) * (p / q).log()).sum())


def test_two_vocabularies_are_refused() -> None:
    src, tgt, more = (
        train_tokenizer([text], kind="word", vocab_size=SRC_VOCAB)
        for text in ("cat dog house", "Katze Hund Haus", "Katze Hund Haus Maus")
    )
    config = model_config("pointer_generator", "model.embeddings.tie=none")
    build_model(config, (tgt, tgt))
    with pytest.raises(ConfigError, match=r"copies source pieces .* but source and target have one each; set tok"):
        build_model(config, (src, tgt))
    with pytest.raises(ConfigError, match=r"copies source pieces .* found 7 source and 8 target pieces; set tokenizer"):
        build_model(config, (src, more))


@pytest.mark.parametrize(
    ("name", "found"), [("lee2017", "has 2 of them"), ("show_attend_tell", "reads feature vectors")]
)
def test_an_encoder_without_a_piece_for_each_position_is_refused(name: str, found: str) -> None:
    config = model_config("pointer_generator").copy()
    config.encoder = model_config(name).encoder
    with pytest.raises(ConfigError, match=f"copies the source piece .* position of model.encoder {found}"):
        build(config, src_vocab_size=SRC_VOCAB, tgt_vocab_size=SRC_VOCAB)


SEEN, UNSEEN = range(36, 100), range(100, 120)  # ids of names


def sentence(rng: np.random.Generator, names: range) -> tuple[list[int], list[int]]:
    """A verb, one to three names and an adverb; their translations the other way round, and the names as they are."""
    verb, adverb = rng.integers(8, size=2).tolist()
    who = rng.choice(names, rng.integers(1, 4)).tolist()
    return [4 + verb, *who, 12 + adverb], [20 + adverb, *who, 28 + verb]


def trained(name: str) -> Seq2Seq:
    """A model of 32 units, after 200 batches of sentences whose names it sees."""
    torch.manual_seed(1)
    widths = {"decoder": {"hidden_dim": 32, "attention": {"dim": 32}, "readout": {"dim": 32}}}
    config = OmegaConf.merge(model_config(name), {"embeddings": {"dim": 32}, "encoder": {"hidden_dim": 32}}, widths)
    assert isinstance(config, DictConfig)
    model: Seq2Seq = build(config, src_vocab_size=UNSEEN.stop, tgt_vocab_size=UNSEEN.stop).train()
    optimizer, rng = torch.optim.Adam(model.parameters(), lr=5e-3), np.random.default_rng(0)
    for _ in range(200):
        src, tgt = zip(*(sentence(rng, SEEN) for _ in range(32)), strict=True)
        batch = Batch(pad([np.array(ids) for ids in src]), pad([np.array(ids) for ids in tgt], bos=True))
        loss, tokens = teacher_forcing(TrainingStep(model, CrossEntropy(), batch))
        optimizer.zero_grad()
        (loss.smoothed / tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


@pytest.mark.nightly
def test_names_that_were_never_seen_are_copied() -> None:
    rng = np.random.default_rng(1)
    src, tgt = zip(*(sentence(rng, UNSEEN) for _ in range(100)), strict=True)
    right = {}
    for name in ("pointer_generator", "nematus"):
        found = Greedy()(TorchStepFunction(trained(name)), src)
        right[name] = sum(list(best.tokens) == ids for (best,), ids in zip(found, tgt, strict=True))
    assert right["pointer_generator"] > 90
    assert right["nematus"] < 10
