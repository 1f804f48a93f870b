"""The explicit state: what belongs to a sentence is never copied, what belongs to a hypothesis moves with it."""

import torch

from softsearch.models.interface import DecoderState, Memory
from softsearch.text.vocabulary import EOS, PAD
from tests.contract.models import small_model


def state(sentences: int, beams: int) -> DecoderState:
    rows = sentences * beams
    memory = Memory(
        torch.arange(sentences * 4.0).reshape(sentences, 2, 2),
        torch.ones(sentences, 2, dtype=torch.bool),
        (torch.arange(sentences * 2.0).reshape(sentences, 2),),
    )
    return DecoderState(memory, (torch.arange(rows * 3.0).reshape(rows, 3),), torch.arange(rows))


def test_select_moves_rows_and_leaves_the_memory() -> None:
    before = state(2, 2)
    after = before.select(torch.tensor([1, 1, 2, 3]))
    assert after.memory is before.memory
    assert after.position.tolist() == [1, 1, 2, 3]
    assert torch.equal(after.cache[0], before.cache[0][[1, 1, 2, 3]])
    assert before.position.tolist() == [0, 1, 2, 3]


def test_keep_takes_all_rows_of_a_sentence() -> None:
    after = state(3, 2).keep(torch.tensor([0, 2]))
    assert after.position.tolist() == [0, 1, 4, 5]
    assert after.memory.projected[0].tolist() == [[0.0, 1.0], [4.0, 5.0]]
    assert after.memory.states.shape[0] == after.memory.mask.shape[0] == 2


def test_encode_masks_padding() -> None:
    src = torch.tensor([[4, 5, EOS], [6, EOS, PAD]])
    assert small_model("rnnsearch").encode(src).memory.mask.tolist() == [[True, True, True], [True, True, False]]
