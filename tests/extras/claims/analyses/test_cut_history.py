"""The loss after the last tokens alone, against single steps of the decoder."""

import pytest
import torch

from softsearch.data.dataset import pad
from softsearch.extras.claims.analyses.contexts import cut_losses
from softsearch.testing.models import small_model

TGT = pad([torch.tensor([5, 6, 7, 8, 9]).numpy(), torch.tensor([9, 4]).numpy()], bos=True)
SRC = torch.full((2, 1), 3)


@torch.no_grad()
@pytest.mark.parametrize("context", [1, 3, 50])
def test_a_token_is_predicted_from_those_before_it(context: int) -> None:
    model = small_model("rnnlm", seed=2)
    expected = []
    for row, length in zip(TGT, (6, 3), strict=True):
        for place in range(1, length + 1):
            state = model.encode(SRC[:1])
            for token in row[max(0, place - context) : place]:
                logits, _, state = model.decoder.step(token[None], state)
            expected.append(-float(logits.log_softmax(-1)[0, row[place]]))
    assert cut_losses(model, SRC, TGT, context).tolist() == pytest.approx(expected, abs=1e-5)
