"""Contract of every architecture with training: its dropout masks, and the gradient of its loss where they are drawn.

Where each mask acts is in test_transcriptions.py.
"""

import pytest
import torch
from torch import Tensor

from softsearch.models.cells import Cell
from softsearch.models.interface import CountedDecoder
from softsearch.models.layers import Dropout, recompute_activations
from softsearch.models.loss import CrossEntropy
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import model_config, random_model
from softsearch.text.vocabulary import BOS, EOS, PAD
from tests.support.models import dropping, every_model

RECURRENT = [
    ("lstm", "+model.cell.recurrent_dropout=0.1"),
    ("gru", "+model.cell.recurrent_dropout=0.1", "+model.cell.transition_depth=2"),
    ("rnnlm", "+model.decoder.cell.recurrent_dropout=0.1"),
    ("decoder_only_rnn", "+model.decoder.cell.recurrent_dropout=0.1"),
]
CASES = every_model() + [pytest.param(case, id="-".join(case)) for case in RECURRENT]
SRC = torch.tensor([[4, 5, 6, 7, 8, 9, EOS], [10, 11, EOS, PAD, PAD, PAD, PAD], [12, 13, 4, 4, EOS, PAD, PAD]])
READ = torch.tensor([[BOS, 7, 8, 9, 10], [BOS, 5, 16, 4, 6], [BOS, 11, 12, 13, 14]])
TARGETS = torch.tensor([7, 8, 9, 10, EOS, 5, 16, 4, 6, EOS, 11, 12, 13, 14, EOS])
# Vectors of a sentence as a whole that are dropped: c of Cho et al. 2014, csm(e) of Kalchbrenner & Blunsom 2013.
WHOLE = {"rnnencdec": 1, "kalchbrenner2013": 1}


def training_model(case: tuple[str, ...]) -> Seq2Seq:
    return random_model(dropping(model_config(*case), 0.3)).train()


def loss(model: Seq2Seq) -> Tensor:
    """The smoothed loss, with masks that are drawn again as they were."""
    torch.manual_seed(0)
    features = model.features(SRC, READ).flatten(0, 1)
    return CrossEntropy(smoothing=0.1)(features, TARGETS, model.decoder.output_projection).smoothed


@pytest.mark.parametrize("case", CASES)
def test_the_gradient_is_that_of_finite_differences(case: tuple[str, ...]) -> None:
    """In a random direction of all parameters together, with dropout."""
    model = training_model(case)
    parameters = list(model.parameters())
    if isinstance(model.decoder, CountedDecoder):
        assert not parameters
        return
    value = loss(model)
    drops = any(module.rate for module in model.modules() if isinstance(module, Dropout))
    assert torch.equal(value, loss(model.eval())) != drops
    model.train()
    gradients = torch.autograd.grad(value, parameters)
    generator = torch.Generator().manual_seed(1)
    directions = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in parameters]
    found = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True))
    step, values = 1e-6, []
    for sign in (1, -2):
        with torch.no_grad():
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter += sign * step * direction
            values.append(float(loss(model)))
    assert found == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_masks_are_drawn_for_each_position_and_those_of_states_for_each_sentence(
    case: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zaremba et al. 2014, Vaswani et al. 2017: one for a vector; Gal & Ghahramani 2016: one for all steps."""
    model, shapes, of_states = training_model(case), list[torch.Size](), list[torch.Size]()
    recurrent = {module.recurrent_dropout for module in model.modules() if isinstance(module, Cell)}
    inner = Dropout.forward

    def recorded(self: Dropout, x: Tensor) -> Tensor:
        if self.rate:
            (of_states if self in recurrent else shapes).append(x.shape)
        return inner(self, x)

    monkeypatch.setattr(Dropout, "forward", recorded)
    model.features(SRC, READ)
    (sentences, src_len), tgt_len = SRC.shape, READ.shape[1]
    positions = {src_len, -(-src_len // model.encoder.description.tokens_per_position), tgt_len}
    positions |= {tgt_len + model.decoder.order - 2} if case[0] in ("feed_forward_lm", "log_bilinear_lm") else set()
    steps = 0  # of vectors that a loop drops one position at a time
    for shape in shapes:
        if len(shape) == 2 and shape[0] in {sentences * count for count in positions}:
            continue  # all positions of a Transformer's side, next to each other
        assert shape[0] == sentences
        assert len(shape) == 2 or shape[1] in positions
        steps += len(shape) == 2
    has_loop = getattr(model.decoder, "feed_projection", None) is not None
    between = len(model.decoder.layers) - 1 if has_loop else 0  # layers
    assert steps == tgt_len * between + WHOLE.get(case[0], 0)
    cells = [m for m in model.modules() if isinstance(m, Cell) and m.recurrent_dropout.rate]
    both = [name for name, m in model.named_modules() if name.endswith("backward_cell") and m.recurrent_dropout.rate]
    assert len(of_states) == len(cells) - len(both)  # both directions draw together
    for shape in of_states:
        assert shape[-2] == sentences
    assert sum(shape.numel() for shape in of_states) == sum(
        sentences * (cell.hidden_dim * (1 + len(cell.transitions)) + cell.input_projection.in_features)
        for cell in cells
    )


@pytest.mark.parametrize("name", ["transformer_tiny", "transformer_ssru", "decoder_only", "transformer_rnn", "gru"])
def test_activations_computed_again_give_the_same_loss_and_gradients_in_less_memory(name: str) -> None:
    losses, gradients, kept = [], [], []
    for recomputes in (False, True):
        model = training_model((name,))
        has_layers = recompute_activations(model) if recomputes else name != "gru"
        assert has_layers == (name != "gru")
        saved: dict[int, int] = {}

        def keep(tensor: Tensor, saved: dict[int, int] = saved) -> Tensor:
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            value = loss(model)
        kept.append(sum(saved.values()))
        value.backward()
        losses.append(value)
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert torch.equal(*losses)
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True) if a is not None and b is not None)
    assert (kept[1] < 0.8 * kept[0]) == (name != "gru")
