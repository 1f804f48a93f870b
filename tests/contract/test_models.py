"""The contract of softsearch.testing holds for every architecture."""

import copy
from functools import partial

import pytest
import torch
from torch import Tensor

from softsearch.export.forms import make_exportable
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.contract import *  # noqa: F403
from softsearch.testing.contract import after_steps, scan
from softsearch.testing.models import small_model
from tests.support.models import every_model


@pytest.fixture(params=every_model())
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return small_model(*request.param)


def test_the_exportable_form_computes_the_same(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    """Without a graph: test_onnx.py converts one model of each family of operators."""
    exportable = copy.deepcopy(model)
    make_exportable(exportable)
    near = partial(torch.testing.assert_close, rtol=0, atol=1e-6)  # ONNX's rotary embedding has angles in float32
    with torch.no_grad():
        near(scan(exportable, src, tgt), model(src, tgt))
        found, expected = (after_steps(one, src, tgt, steps=3).alignments for one in (exportable, model))
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            near(found, expected)
