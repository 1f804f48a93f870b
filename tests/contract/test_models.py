"""The contract of softsearch.testing holds for every architecture."""

import pytest

from softsearch.models.interface import Seq2Seq
from softsearch.testing.contract import *  # noqa: F403
from softsearch.testing.models import small_model
from tests.contract.models import every_model


@pytest.fixture(params=every_model())
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return small_model(*request.param)
