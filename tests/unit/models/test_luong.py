"""The state of Luong et al.'s decoder; tests/contract/test_transcriptions.py has its equations."""

import pytest
import torch
from torch import Tensor

from softsearch.models.luong import LuongDecoder
from softsearch.testing.models import small_model

SRC, TGT = torch.tensor([[4, 5, 6, 3], [7, 3, 0, 0]]), torch.tensor([[1, 9], [1, 7]])
LAYERS = 2


@pytest.mark.parametrize("input_feeding", [True, False])
def test_the_cache_ends_with_what_is_fed(input_feeding: bool) -> None:
    model = small_model("luong2015", f"model.decoder.input_feeding={input_feeding}")
    state = model.encode(SRC)
    assert len(state.cache) == 2 * LAYERS + input_feeding
    if input_feeding:
        assert state.cache[-1].eq(0).all()
        after = model.decoder.step(TGT[:, 0], state).state
        torch.testing.assert_close(after.cache[-1], model.decoder.features(TGT, state)[:, 0])


def test_what_is_fed_is_not_dropped() -> None:
    """Of equations 5 and 6, the softmax alone reads h~ after dropout."""
    model = small_model("luong2015")
    mask = torch.tensor([0.0, 2.0] * 4, dtype=torch.float64)  # fixed, of all that is dropped
    model.decoder.dropout.register_forward_hook(lambda _module, inputs, _output: inputs[0] * mask)
    state = model.encode(SRC)
    features = model.decoder.features(TGT, state)
    for position in range(TGT.shape[1]):
        state = model.decoder.step(TGT[:, position], state).state
        assert state.cache[-1].ne(0).all()
        torch.testing.assert_close(state.cache[-1] * mask, features[:, position])


def test_dropout_spares_the_recurrent_connections() -> None:
    """Of everything dropped, only the states of the first layer are left as they would be without it."""
    model = small_model("luong2015", "model.decoder.input_feeding=false")
    decoder, state = model.decoder, model.encode(SRC)
    assert isinstance(decoder, LuongDecoder)
    decoder.dropout.rate = 0.99
    torch.manual_seed(1)

    def caches() -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        exact, dropped = (decoder.train(training).step(TGT[:, 0], state).state.cache for training in (False, True))
        return exact, dropped

    exact, dropped = caches()
    assert not torch.equal(dropped[0], exact[0])  # E y was dropped
    with torch.no_grad():
        decoder.embedding.weight.zero_()
    exact, dropped = caches()
    assert torch.equal(dropped[0], exact[0])
    assert not torch.equal(dropped[2], exact[2])  # the second layer read the first one's dropped h
