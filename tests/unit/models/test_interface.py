"""The explicit state: what belongs to a sentence is never copied, what belongs to a hypothesis moves with it."""

import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.models.interface import DecoderState, EncoderDescription, Memory, over_tokens
from softsearch.testing.models import small_model
from softsearch.text.vocabulary import EOS, PAD


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


@pytest.mark.parametrize(
    "name",
    [
        "rnnsearch",
        "chorowski2015",
        "nematus",
        "rnnencdec",
        "kalchbrenner2013",
        "kalchbrenner2013_rctm2",
        "lee2017",
        "gru",
        "lstm",
        "rnn",
    ],
)
def test_recurrent_states_stay_precise_under_autocast(name: str) -> None:
    """In bfloat16 a state would round its small changes away."""
    model = small_model(name).float()
    src, tokens = torch.tensor([[4, 5, EOS], [6, EOS, PAD]]), torch.tensor([4, 9])
    (exact, *_) = model.decoder.step(tokens, model.encode(src)).state.cache
    with torch.autocast("cpu", dtype=torch.bfloat16):
        state = model.encode(src)
        after = model.decoder.step(tokens, state).state
    assert {tensor.dtype for tensor in (*state.cache, *after.cache)} == {torch.float32}
    torch.testing.assert_close(after.cache[0], exact, rtol=0, atol=0.05)


@pytest.mark.parametrize("tokens_per_position", [1, 2, 3, 9])
def test_the_tokens_of_a_position_share_its_alignment(tokens_per_position: int) -> None:
    lengths, beams, src_len = (7, 1, 3), 2, 7
    positions = -(-src_len // tokens_per_position)
    src_mask = torch.arange(src_len) < torch.tensor(lengths)[:, None]
    alignments = torch.rand(len(lengths) * beams, positions, generator=torch.Generator().manual_seed(0))
    expected = torch.zeros(len(lengths) * beams, src_len)
    for row in range(len(expected)):
        length = lengths[row // beams]
        alignments[row, -(-length // tokens_per_position) :] = 0
        for position in range(positions):
            tokens = range(length)[position * tokens_per_position : (position + 1) * tokens_per_position]
            for token in tokens:
                expected[row, token] = alignments[row, position] / len(tokens)
    found = over_tokens(alignments, src_mask, tokens_per_position)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(1), alignments.sum(1))


def test_a_decoder_that_needs_a_final_state_refuses_an_encoder_without() -> None:
    with pytest.raises(ConfigError, match=r"model\.decoder starts from the encoder's last state, but model\.encoder"):
        EncoderDescription(4).top_layer()


@pytest.mark.parametrize(
    ("name", "attends"), [("rnnsearch", True), ("transformer_tiny", True), ("luong2015", True), ("gru", False)]
)
def test_each_parameter_is_in_one_part(name: str, attends: bool) -> None:
    for tie in ("none", "all"):
        model = small_model(name, f"model.embeddings.tie={tie}")
        parts = model.parts()
        assert sorted(id(p) for part in parts.values() for p in part) == sorted(id(p) for p in model.parameters())
        assert ("attention" in parts) == attends == model.decoder.has_attention
        assert len(parts["embeddings"]) == (1 if tie == "all" else 2)
