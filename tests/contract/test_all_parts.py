"""The models of `make test` have every class of every model between them."""

import pytest

from softsearch.testing.models import small_model
from tests.support.models import HAVE_ALL_PARTS, every_model

BASES = {"HybridAttention"}  # of LocationAttention, which differs in an option of the class
pytestmark = pytest.mark.day


def test_no_part_is_missing() -> None:
    ours, all_parts = set[str](), set[str]()
    for case in every_model():
        kinds = {type(part) for part in small_model(*case.values[0]).modules()}
        parts = {kind.__name__ for kind in kinds if kind.__module__.startswith("softsearch.")}
        all_parts |= parts
        if case.id in HAVE_ALL_PARTS:
            ours |= parts
    assert len(HAVE_ALL_PARTS) == 22
    assert all_parts - ours <= BASES
