"""How parameters start where a paper says it."""

from functools import partial

import pytest
import torch
from omegaconf import OmegaConf
from torch import Tensor, nn

from softsearch.app.config.validation import build
from softsearch.models.cells import GRUCell
from softsearch.models.init import gaussian, nematus, uniform
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import SRC_VOCAB, TGT_VOCAB, model_config, small_model


@pytest.fixture
def model() -> Seq2Seq:
    model = small_model("rnnsearch")  # which has random values everywhere, biases included
    torch.manual_seed(0)
    return model


def test_uniform_reaches_every_parameter(model: Seq2Seq) -> None:
    uniform(model, scale=0.1)
    values = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    assert 0.099 < values.abs().max() <= 0.1
    assert values.mean().abs() < 0.01
    assert float(values.std()) == pytest.approx(0.1 / 3**0.5, rel=0.05)


def test_gaussian_is_bahdanaus(model: Seq2Seq) -> None:
    recurrent = {
        f"{name}.{matrix}": getattr(module, matrix).clone()
        for name, module in model.named_modules()
        if isinstance(module, GRUCell)
        for matrix in ("recurrent_gate_weight", "recurrent_candidate_weight")
    }
    gaussian(model, std=0.01, attention_std=0.001)
    parameters = dict(model.named_parameters())
    for name, before in recurrent.items():
        assert torch.equal(parameters.pop(name), before)
    assert parameters.pop("decoder.attention.energy_weight").eq(0).all()
    for side in ("query", "memory"):
        assert_normal(parameters.pop(f"decoder.attention.{side}_projection.weight"), 0.001)
    matrices = []
    for name, parameter in parameters.items():
        if name.endswith("bias"):
            assert parameter.eq(0).all(), name
        else:
            matrices.append(parameter.flatten())
    assert_normal(torch.cat(matrices), 0.01)


@pytest.mark.parametrize("start", [partial(gaussian, std=0.01, attention_std=0.001), partial(nematus, std=0.01)])
def test_attention_without_content_has_no_matrices_of_content(start: partial[None]) -> None:
    model = small_model("chorowski2015", "model/attention=location")
    start(model)
    assert model.decoder.get_parameter("attention.location_filters.weight").abs().max() < 0.1
    assert model.decoder.get_parameter("attention.location_projection.bias").eq(0).all()


def test_nematus_is_that_of_its_code() -> None:
    # The proportions of the experiment: context 2 * hidden, attention as wide as the context.
    decoder = {"hidden_dim": 16, "attention": {"dim": 32}, "readout": {"dim": 8}}
    sizes = {"encoder": {"hidden_dim": 16, "num_layers": 1}, "decoder": decoder}
    config = OmegaConf.merge(model_config("nematus"), sizes)
    torch.manual_seed(0)
    model: Seq2Seq = build(config, src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)
    nematus(model, std=0.01)
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    assert_orthogonal(parameters.pop("decoder.attention.memory_projection.weight"))  # Wc_att
    gates, candidate = parameters.pop("decoder.context_cell.input_projection.weight").split([32, 16])  # Wc, Wcx
    assert_orthogonal(gates)
    assert_normal(candidate, 0.01)
    recurrent = [
        parameters.pop(name) for name in list(parameters) if name.endswith(("_gate_weight", "_candidate_weight"))
    ]
    assert len(recurrent) == 8
    for matrices in recurrent:
        for matrix in matrices.split(16, dim=1):
            assert_orthogonal(matrix)
    for name, parameter in parameters.items():
        if name.endswith("bias"):
            assert parameter.eq(0).all(), name
        else:
            assert parameter.abs().max() < 0.06, name
    assert_normal(torch.cat([p.flatten() for name, p in parameters.items() if not name.endswith("bias")]), 0.01)


def test_nematus_has_a_matrix_for_each_block_of_any_cell() -> None:
    model = small_model("lstm", "model.bidirectional=false").float()
    nematus(model, std=0.01)
    for matrix in model.get_parameter("encoder.layers.0.forward_cell.input_projection.weight").detach().split(8):
        assert_orthogonal(matrix)


def assert_orthogonal(matrix: Tensor) -> None:
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(len(matrix)))


def assert_normal(values: Tensor, std: float) -> None:
    values = values.detach()
    assert float(values.std()) == pytest.approx(std, rel=0.3)
    assert values.mean().abs() < std / 3
    assert values.abs().max() > 1.5 * std


@pytest.mark.parametrize(
    "start",
    [partial(uniform, scale=0.1), partial(gaussian, std=0.01, attention_std=0.001)],
    ids=["uniform", "gaussian"],
)
def test_norms_stay_as_they_are(start: partial[None]) -> None:
    model = small_model("transformer_tiny")
    before = {name: p.clone() for name, p in model.named_parameters() if "norm" in name}
    start(model)
    assert before
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters() if name in before)


def test_a_config_names_how_a_model_starts() -> None:
    init = "+model.init={_target_: softsearch.models.uniform, _partial_: true, scale: 0.001}"
    model: Seq2Seq = build(model_config("rnnsearch", init), src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)
    assert 0 < max(float(parameter.detach().abs().max()) for parameter in model.parameters()) <= 0.001


def test_further_transitions_start_orthogonal() -> None:
    model = small_model("nematus_deep")
    cells = [module for module in model.modules() if isinstance(module, GRUCell)]
    assert len(cells) == 2 * 2 * 3 + 1 + 3  # layers, directions and transitions of the encoder; those of the decoder
    before = [cell.recurrent_candidate_weight.clone() for cell in cells]
    norms = [norm.weight.clone() for norm in model.modules() if isinstance(norm, nn.LayerNorm)]
    nematus(model, std=0.01)
    assert all(torch.equal(cell.recurrent_candidate_weight, w) for cell, w in zip(cells, before, strict=True))
    found = [norm.weight for norm in model.modules() if isinstance(norm, nn.LayerNorm)]
    assert all(torch.equal(one, other) for one, other in zip(found, norms, strict=True))
    assert all(bool((cell.input_bias == 0).all()) for cell in cells if hasattr(cell, "input_bias"))
