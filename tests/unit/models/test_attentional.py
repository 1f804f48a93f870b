"""Parts of recurrent decoders, in any combination."""

import copy

import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.export.forms import make_exportable
from softsearch.testing.models import small_model
from tests.support.models import CONFIGS

SRC, TGT = torch.tensor([[5, 6, 7, 8, 3], [9, 3, 0, 0, 0]]), torch.tensor([[2, 6, 7], [2, 5, 4]])
ATTENTIONS = sorted(path.stem for path in (CONFIGS / "model" / "attention").glob("*.yaml"))
DECODERS = ["rnnsearch", "nematus", "luong2015", "multi_source"]


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_takes_every_attention(name: str, attention: str) -> None:
    feeding = (
        ("model.decoder.input_feeding=false",) if name == "luong2015" else ()
    )  # it may attend at all steps at once
    model = small_model(name, f"model/attention={attention}", *feeding)
    model.decoder.requires_grad_(requires_grad=False)
    exportable = copy.deepcopy(model)
    make_exportable(exportable)
    for one in (model, exportable):
        state, steps = one.encode(SRC), []
        for tokens in TGT.unbind(1):
            output = one.decoder.step(tokens, state)
            steps.append(output.logits)
            state = output.state
            assert output.alignments is not None
            torch.testing.assert_close(output.alignments.sum(-1), torch.ones(2).double())
        torch.testing.assert_close(torch.stack(steps, dim=1), model(SRC, TGT))


MEAN = "model.decoder.initial_state._target_=softsearch.models.MeanState"
LSTM_AFTER = "+model.decoder.context_cell={_target_: softsearch.models.LSTMCell, _partial_: true}"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("rnnsearch", [MEAN, "+model.decoder.initial_state.num_states=2"], "GRUCell, has 1; set"),
        ("rnnsearch", [LSTM_AFTER], "GRUCell, has 1 .*LSTMCell, 2;"),
        ("chung2016", [LSTM_AFTER], "needs one BiScaleCell, found a BiScaleCell and context_cell=LSTMCell; set"),
        ("chung2016", ["+model.decoder.cell.layer_norm=true"], "layer_norm is not an option of BiScaleCell"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(name: str, options: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small_model(name, *options)
