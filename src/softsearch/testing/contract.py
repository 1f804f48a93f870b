"""The contract of every model with search, training and export; the tests use the fixture ``model``."""

import io

import pytest
import torch
from torch import Tensor

from softsearch.models.feature_encoder import FeatureEncoder
from softsearch.models.interface import CountedDecoder, Decoder, DecoderState, StepOutput, over_tokens
from softsearch.models.loss import CrossEntropy
from softsearch.models.recurrent import NoSource
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import SRC_VOCAB, TGT_VOCAB
from softsearch.text.vocabulary import BOS, EOS, PAD, SPECIALS

SRC_LENGTHS = (5, 2, 7)
TGT_LEN = 6
TOLERANCE = 1e-10  # in float64; the promise is 1e-5 in float32


@pytest.fixture
def src() -> Tensor:
    """Three padded sentences, [batch, src_len]."""
    tokens = _ids(len(SRC_LENGTHS), max(SRC_LENGTHS), SRC_VOCAB)
    for row, length in zip(tokens, SRC_LENGTHS, strict=True):
        row[length - 1] = EOS
        row[length:] = PAD
    return tokens


@pytest.fixture
def tgt() -> Tensor:
    """The target tokens that the decoder reads, [batch, tgt_len]."""
    tokens = _ids(len(SRC_LENGTHS), TGT_LEN, TGT_VOCAB)
    tokens[:, 0] = BOS
    return tokens


def test_forward_equals_the_scan_of_step(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    scanned, at_once = scan(model, src, tgt), model(src, tgt)
    assert_close(scanned, at_once)
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    factors = torch.linspace(-1, 1, TGT_VOCAB, dtype=torch.float64)  # factors of the logits' gradients
    for found, expected in zip(*(_gradients(x.exp() @ factors, weights) for x in (at_once, scanned)), strict=True):
        assert_close(found, expected)


def test_single_precision_keeps_the_promise(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    model = model.float()
    torch.testing.assert_close(scan(model, src, tgt), model(src, tgt), rtol=0, atol=1e-5)


def test_alignments_are_distributions_over_the_real_source(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    alignments = after_steps(model, src, tgt, steps=3).alignments
    assert (alignments is not None) == model.decoder.has_attention
    if alignments is not None:
        alignments = over_tokens(alignments, src != PAD, model.encoder.description.tokens_per_position)
        assert alignments.shape == src.shape
        assert_close(alignments.sum(-1), torch.ones(len(src), dtype=torch.float64))
        assert alignments.min() >= 0
        assert alignments[src == PAD].abs().max() == 0


def test_alignments_at_once_equal_those_of_the_steps(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    if type(model.decoder).features_and_alignments is Decoder.features_and_alignments:
        return  # method=guided_alignment refuses it
    features, alignments = model.decoder.features_and_alignments(tgt, model.encode(src))
    assert_close(features, model.decoder.features(tgt, model.encode(src)))
    for steps in range(1, tgt.shape[1] + 1):
        stepped = after_steps(model, src, tgt, steps=steps).alignments
        assert stepped is not None
        assert_close(alignments[:, steps - 1], stepped)


def test_the_encoder_is_as_described(model: Seq2Seq, src: Tensor) -> None:
    encoded, described = model.encoder(src, src != PAD), model.encoder.description
    tokens = described.tokens_per_position
    positions = -(-src.shape[1] // tokens)
    assert encoded.states.shape == (len(src), positions, described.output_dim)
    unread = isinstance(model.encoder, FeatureEncoder)  # EOS
    assert encoded.mask.sum(1).tolist() == [-(-(length - unread) // tokens) for length in SRC_LENGTHS]
    assert len(encoded.final) == len(described.layers)
    for final, layer in zip(encoded.final, described.layers, strict=True):
        directions = [state for state in final if state is not None]
        assert len(directions) == layer.directions
        for state in directions:
            assert [tensor.shape for tensor in state] == [(len(src), layer.dim)] * layer.num_states
        assert final.joined()[0].shape == (len(src), layer.joined_dim)


def test_select_commutes_with_step(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    state = two_beams(model, src, tgt)
    tokens = torch.tensor([4, 5, 6, 7, 8, 9])
    expected = model.decoder.step(tokens, state)
    for rows in (
        torch.tensor([1, 0, 2, 2, 5, 4]),  # within a sentence: swapped, repeated, swapped
        torch.tensor([1, 0, 1, 3, 3, 2, 4, 5, 5]),  # another number of beams
    ):
        found = model.decoder.step(tokens[rows], state.select(rows))
        assert_same_step(model, found, select_output(expected, rows))


def test_keep_commutes_with_step(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    state = two_beams(model, src, tgt)
    tokens = torch.tensor([4, 5, 6, 7, 8, 9])
    expected = model.decoder.step(tokens, state)
    for sentences in ([0, 2], [1], [2, 0]):
        kept, rows = torch.tensor(sentences), torch.tensor([row for s in sentences for row in (2 * s, 2 * s + 1)])
        found = model.decoder.step(tokens[rows], state.keep(kept))
        assert_same_step(model, found, select_output(expected, rows)._replace(state=expected.state.keep(kept)))


def test_a_step_leaves_its_state_alone(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    state = two_beams(model, src, tgt)
    before = [tensor.clone() for tensor in tensors(state)]
    model.decoder.step(torch.tensor([4, 5, 6, 7, 8, 9]), state)
    for tensor, copy in zip(tensors(state), before, strict=True):
        assert torch.equal(tensor, copy)


def test_padding_changes_nothing(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    wider = torch.cat((src, torch.full((len(src), 4), PAD)), dim=1)
    assert_close(model(wider, tgt), model(src, tgt))
    padded, plain = (after_steps(model, tokens, tgt, steps=3) for tokens in (wider, src))
    assert_close(padded.logits, plain.logits)
    if model.decoder.has_attention:
        assert padded.alignments is not None
        assert plain.alignments is not None
        assert_close(padded.alignments[:, : plain.alignments.shape[1]], plain.alignments)


def test_a_batch_of_one_equals_a_batch_of_many(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    together = model(src, tgt)
    stepped = after_steps(model, src, tgt, steps=3)
    for row, length in enumerate(SRC_LENGTHS):
        alone_src, alone_tgt = src[row : row + 1, :length], tgt[row : row + 1]
        assert_close(model(alone_src, alone_tgt)[0], together[row])
        alone = after_steps(model, alone_src, alone_tgt, steps=3)
        assert_close(alone.logits[0], stepped.logits[row])
        if model.decoder.has_attention:
            assert alone.alignments is not None
            assert stepped.alignments is not None
            assert_close(alone.alignments[0], stepped.alignments[row, : alone.alignments.shape[1]])


def test_beams_of_a_sentence_do_not_see_each_other(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    state = two_beams(model, src, tgt)
    first, second = torch.tensor([4, 5, 6, 7, 8, 9]), torch.tensor([4, 10, 6, 11, 8, 12])
    one, other = model.decoder.step(first, state), model.decoder.step(second, state)
    assert_close(one.logits[::2], other.logits[::2])
    assert (one.logits[1::2] - other.logits[1::2]).abs().amax(-1).min() > 1e-4


def test_future_tokens_do_not_change_the_past(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    before = model(src, tgt)
    for changed in range(1, TGT_LEN):
        other = tgt.clone()
        other[:, changed:] = torch.where(tgt[:, changed:] == 4, 5, 4)
        after = model(src, other)
        assert_close(after[:, :changed], before[:, :changed])
        assert (after[:, changed] - before[:, changed]).abs().amax(-1).min() > 1e-4  # but the present matters


def test_every_source_token_counts_except_to_a_language_model(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    for position in range(SRC_LENGTHS[0]):
        other = src.clone()
        other[0, position] = 4 if src[0, position] != 4 else 5
        difference = (model(other, tgt) - model(src, tgt))[0].abs().max()
        ignored = isinstance(model.encoder, NoSource)
        if isinstance(model.encoder, FeatureEncoder):  # has no vector for EOS
            ignored = position == SRC_LENGTHS[0] - 1
        assert difference == 0 if ignored else difference > 1e-6


def test_every_parameter_gets_a_gradient(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    if isinstance(model.decoder, CountedDecoder):
        assert not list(model.parameters())
        return
    model.train()
    targets = _ids(len(tgt), TGT_LEN, TGT_VOCAB)
    features = model.features(src, tgt)
    CrossEntropy(smoothing=0.1)(
        features.flatten(0, 1), targets.flatten(), model.decoder.output_projection
    ).smoothed.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 1e-8, name


def test_saved_weights_load_as_plain_tensors(model: Seq2Seq, src: Tensor, tgt: Tensor) -> None:
    file = io.BytesIO()
    torch.save({"state_dict": model.state_dict()}, file)
    expected = model(src, tgt)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    file.seek(0)
    model.load_state_dict(torch.load(file, weights_only=True)["state_dict"])
    assert torch.equal(model(src, tgt), expected)


def scan(model: Seq2Seq, src: Tensor, tgt: Tensor) -> Tensor:
    """The logits of all steps, one after another, ``[batch, tgt_len, vocab]``."""
    state, logits = model.encode(src), []
    for position, tokens in enumerate(tgt.unbind(1)):
        assert state.position.tolist() == [position] * len(tgt)
        output = model.decoder.step(tokens, state)
        logits.append(output.logits)
        state = output.state
    return torch.stack(logits, dim=1)


def two_beams(model: Seq2Seq, src: Tensor, tgt: Tensor) -> DecoderState:
    """A state with two different hypotheses for each sentence, two tokens long."""
    first = model.decoder.step(tgt[:, 0], model.encode(src)).state
    rows = torch.arange(len(src)).repeat_interleave(2)
    return model.decoder.step(torch.tensor([5, 6, 7, 8, 9, 10]), first.select(rows)).state


def after_steps(model: Seq2Seq, src: Tensor, tgt: Tensor, *, steps: int) -> StepOutput:
    output = model.decoder.step(tgt[:, 0], model.encode(src))
    for tokens in tgt[:, 1:steps].unbind(1):
        output = model.decoder.step(tokens, output.state)
    return output


def select_output(output: StepOutput, rows: Tensor) -> StepOutput:
    alignments = None if output.alignments is None else output.alignments[rows]
    return StepOutput(output.logits[rows], alignments, output.state.select(rows))


def assert_same_step(model: Seq2Seq, found: StepOutput, expected: StepOutput) -> None:
    """Checks that outputs, and the outputs of the next step, are equal; the order of slots may differ."""
    assert torch.equal(found.state.position, expected.state.position)
    tokens = 4 + torch.arange(len(found.logits)) % 5
    for one, other in ((found, expected), (model.decoder.step(tokens, output.state) for output in (found, expected))):
        assert_close(one.logits, other.logits)
        if other.alignments is not None:
            assert one.alignments is not None
            assert_close(one.alignments, other.alignments)


def tensors(state: DecoderState) -> list[Tensor]:
    memory = state.memory
    return [memory.states, memory.mask, *memory.projected, *state.cache, state.position, *state.slots]


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


def _gradients(values: Tensor, weights: list[torch.nn.Parameter]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(values.sum(), weights, materialize_grads=True) if weights else ()


def _ids(batch: int, length: int, vocab_size: int) -> Tensor:
    generator = torch.Generator().manual_seed(batch * length + vocab_size)
    return torch.randint(len(SPECIALS), vocab_size, (batch, length), generator=generator)
