"""The decoder whose context is projected before it is summed computes what the model does, without the annotations."""

import copy

import pytest
import torch
from softsearch.export.additive_attention import project_annotations

from softsearch.models.interface import DecoderState
from softsearch.text.vocabulary import BOS, EOS, PAD
from tests.contract.models import small_model


@pytest.mark.parametrize("name", ["rnnsearch", "nematus", "nematus_deep", "chorowski2015"])
def test_steps_are_the_same_without_the_annotations(name: str) -> None:
    model = small_model(name).eval()
    rewritten = copy.deepcopy(model)
    project_annotations(rewritten.decoder)
    src = torch.tensor([[5, 6, 7, EOS], [8, EOS, PAD, PAD]])
    one, other = model.encode(src), rewritten.encode(src)
    other = DecoderState(other.memory._replace(states=torch.full((2, 4, 1), torch.nan)), other.cache, other.position)
    for token in (BOS, 9):
        expected, found = (m.decoder.step(torch.full((2,), token), s) for m, s in ((model, one), (rewritten, other)))
        torch.testing.assert_close(found.logits, expected.logits)
        torch.testing.assert_close(found.alignments, expected.alignments)
        one, other = expected.state, found.state


def test_other_decoders_stay_as_they_are() -> None:
    model = small_model("luong2015")
    before = str(model)
    project_annotations(model.decoder)
    assert str(model) == before
