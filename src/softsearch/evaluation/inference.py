"""Inference with PyTorch: the search backend, translation during training on all processes, scores and loss.

In the backend, a StepFunction, only the k best candidates per row leave the device.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from softsearch.data.dataset import pad
from softsearch.evaluation.metrics import Metric, Scores, corpus_scores, for_text, with_languages
from softsearch.evaluation.test_set import HeldOutText
from softsearch.models.interface import Decoder, DecoderState, StepOutput, over_tokens
from softsearch.models.output_layers import check_shortlist
from softsearch.models.seq2seq import Seq2Seq
from softsearch.search.batching import translate_ids
from softsearch.search.forced_decoding import PairScore, score_pairs
from softsearch.search.interface import Candidates, SearchStrategy, StepFunction, whole_vocabulary
from softsearch.search.shortlist import Shortlist, spread
from softsearch.text.features import padded_features
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers
from softsearch.text.vocabulary import BOS, PAD

BATCH_TOKENS = 2048  # largest number of source tokens, padding included, to search or score at once


class TorchState(NamedTuple):
    """The decoder state of a batch, its source and its shortlist."""

    decoder: DecoderState
    src_mask: Tensor  # [sentences, src_len] bool, True = real token
    words: "Words | None"  # None: the whole vocabulary


class Words(NamedTuple):
    """The output layer for a batch with a shortlist, reduced to the words of the batch."""

    tokens: Tensor  # [words] ids
    mask: Tensor  # [sentences, words] bool, True = the sentence may use the word
    output: dict[str, Tensor]  # weight [words, dim] and bias [words], by name in the decoder


class TorchStepFunction(StepFunction):
    """Search over a ``Seq2Seq``, which must be in evaluation mode.

    With a shortlist, probabilities are normalised over the words allowed in each translation.

    Raises:
        ConfigError: there is a shortlist, but the output layer cannot compute only some of its words.
    """

    def __init__(self, model: Seq2Seq, shortlist: Shortlist | None = None) -> None:
        if shortlist is not None:
            check_shortlist(model.decoder)
        self.model, self.shortlist = model, shortlist
        self.vocab_size, self.has_attention = model.tgt_vocab_size, model.decoder.has_attention
        self.device = model.weights()[0].device

    @torch.inference_mode()
    def start(self, src: Sequence[Sequence[int]]) -> TorchState:
        tokens = pad([np.asarray(sentence, dtype=np.int64) for sentence in src]).to(self.device)
        words = None if self.shortlist is None else self._words(self.shortlist, src)
        features = padded_features(src, self.model.encoder.description.feature_dim, "the model")
        state = self.model.encode(tokens, None if features is None else torch.from_numpy(features).to(self.device))
        return TorchState(state, tokens != PAD, words)

    @torch.inference_mode()
    def step(self, tokens: NDArray[np.int64], state: TorchState, k: int) -> tuple[Candidates, TorchState]:
        """Reads one token per row; with a shortlist, returns at most as many candidates as it has words."""
        read, words = torch.from_numpy(tokens).to(self.device), state.words
        if words is None:
            output = self.model.decoder.step(read, state.decoder)
            logits = output.logits.float()
        else:
            # The output layer has only the rows of these words, so decoders compute no other logits.
            step = _Step(self.model.decoder)
            output = functional_call(step, words.output, (read, state.decoder), tie_weights=False)
            beams = len(tokens) // len(words.mask)
            logits = output.logits.float().masked_fill(~words.mask.repeat_interleave(beams, dim=0), -torch.inf)
        alignments = None
        if output.alignments is not None:
            per_position = self.model.encoder.description.tokens_per_position
            alignments = over_tokens(output.alignments.float(), state.src_mask, per_position).cpu().numpy()
        after = state._replace(decoder=output.state)
        size = logits.shape[-1]
        if k == self.vocab_size:  # sorting everything would take several times as long as the rest
            log_probs = logits.log_softmax(-1).cpu().numpy()
            if words is not None:
                log_probs = spread(log_probs, words.tokens.cpu().numpy(), k)
            return whole_vocabulary(log_probs, alignments), after
        if k == 1:  # greedy search: half the time of a full softmax
            largest, indices = logits.max(-1, keepdim=True)  # [rows, 1]
            best = -(logits - largest).exp_().sum(-1, keepdim=True).log()
        else:
            best, indices = logits.log_softmax(-1).topk(min(k, size))
        ids = indices if words is None else words.tokens[indices]
        return Candidates(best.cpu().numpy(), ids.cpu().numpy(), alignments), after

    @torch.inference_mode()
    def all_heads(self, src: Sequence[int], written: Sequence[int]) -> NDArray[np.float32] | None:
        """Returns the attention of each head of a Transformer that generates these tokens; None for other models.

        Shape: ``[layers, heads, len(written), len(src) + 1]``.
        """
        if not self.model.decoder.alignments_name:
            return None
        state = self.start([src])
        read = torch.tensor([[BOS, *written[:-1]]], device=self.device)
        heads = self.model.decoder.all_heads(read, state.decoder)  # [layers, heads, 1, len(written), positions]
        per_position = self.model.encoder.description.tokens_per_position
        alignments = over_tokens(heads.flatten(0, 3).float(), state.src_mask, per_position)
        return alignments.view(*heads.shape[:2], len(written), -1).cpu().numpy()

    @torch.inference_mode()
    def select(self, state: TorchState, rows: NDArray[np.int64]) -> TorchState:
        return state._replace(decoder=state.decoder.select(torch.from_numpy(rows).to(self.device)))

    @torch.inference_mode()
    def keep(self, state: TorchState, sentences: NDArray[np.int64]) -> TorchState:
        indices = torch.from_numpy(sentences).to(self.device)
        words = None if state.words is None else state.words._replace(mask=state.words.mask[indices])
        return TorchState(state.decoder.keep(indices), state.src_mask[indices], words)

    def _words(self, shortlist: Shortlist, src: Sequence[Sequence[int]]) -> Words:
        tokens, mask = (torch.from_numpy(part).to(self.device) for part in shortlist(src))
        layer = self.model.decoder.output_projection
        rows = {f"decoder.output_projection.{name}": parameter[tokens] for name, parameter in layer.named_parameters()}
        return Words(tokens, mask, rows)


def torch_model(step_fn: StepFunction) -> Seq2Seq:
    """Returns the model behind the step function of a checkpoint."""
    return cast(TorchStepFunction, step_fn).model


class _Step(nn.Module):
    """A module that calls the decoder's step, for ``functional_call``."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        return self.decoder.step(tokens, state)


def evaluate(
    model: Seq2Seq,
    tokenizers: Tokenizers,
    search: SearchStrategy,
    text: HeldOutText,
    metrics: Mapping[str, Metric],
    *,
    seconds: float = math.inf,
) -> tuple[list[str], Scores]:
    """Translates ``text``; returns the translations and their scores for ``metrics.json``.

    Raises:
        TimeoutError: the translation takes more than ``seconds``, a batch included, on one of the processes.
    """
    src, tgt = text.encode(tokenizers)
    hypotheses = translate_sources(model, tokenizers[1], search, src, seconds=seconds)
    with evaluating(model):
        loss = mean_nll(score_pairs(TorchStepFunction(model), src, tgt, batch_tokens=BATCH_TOKENS))
    bound = for_text(metrics, text.text_form, text.tgt_lang)
    scores = corpus_scores(bound, hypotheses, text.references, text.sources)
    return hypotheses, with_languages(scores, hypotheses, text, loss, metrics)


def translate_sources(
    model: Seq2Seq,
    tgt_tokenizer: SentencePieceTokenizer,
    search: SearchStrategy,
    src: Sequence[Sequence[int]],
    *,
    joined: bool = True,
    seconds: float = math.inf,
) -> list[str]:
    """Translates sources, distributed over the processes; returns all translations in order, on every process.

    ``joined`` is passed to ``SentencePieceTokenizer.decode``.

    Raises:
        TimeoutError: on all processes, if one of them takes more than ``seconds``.
    """
    end = monotonic() + seconds

    def check_time(_: int) -> None:
        if monotonic() > end:
            raise TimeoutError

    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    rank, world_size = (torch.distributed.get_rank(), torch.distributed.get_world_size()) if distributed else (0, 1)
    own: list[str] | None = None
    with evaluating(model), suppress(TimeoutError):
        n_best_lists = translate_ids(
            TorchStepFunction(model), search, src[rank::world_size], batch_tokens=BATCH_TOKENS, on_done=check_time
        )
        own = [tgt_tokenizer.decode(n_best[0].tokens, joined=joined) for n_best in n_best_lists]
    shares: list[Any] = [own]
    if distributed:
        shares = [None] * world_size
        torch.distributed.all_gather_object(shares, own)
    if None in shares:
        raise TimeoutError(f"the translation of {len(src)} sentences takes more than {seconds:.0f} seconds")
    translations = [""] * len(src)
    for start, texts in enumerate(shares):
        translations[start::world_size] = texts
    return translations


def mean_nll(scores: Sequence[PairScore]) -> float:
    """Returns the mean -log p of a reference token, EOS included, in nats; infinite if one has the probability 0."""
    return -sum(score.log_prob for score in scores) / sum(len(score.token_log_probs) for score in scores)


@contextmanager
def evaluating(model: Seq2Seq) -> Iterator[None]:
    """Puts the model into evaluation mode, and restores its mode afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


class SentenceScore:
    """A metric of single sentences, such as BLEU, smoothed like ``sacrebleu.sentence_bleu``; 0 to 100 become 0 to 1."""

    def __init__(self, metric: Metric, tokenizer: SentencePieceTokenizer) -> None:
        self.metric, self.tokenizer = metric, tokenizer

    def __call__(self, translation: Sequence[int], reference: Sequence[int]) -> float:
        """Scores token ids without EOS."""
        hypothesis, expected = map(self.tokenizer.decode, (translation, reference))
        return self.metric.sentence_score(self.metric.table([hypothesis], [expected])[0]) / 100
