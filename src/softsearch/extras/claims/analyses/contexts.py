"""Losses of a decoder that does not read the reference: it reads its own words, or only the last tokens.

Exposure bias: Bengio et al. 2015 (arXiv:1506.03099), section 2; Ranzato et al. 2016 (arXiv:1511.06732).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsearch.data import pad
from softsearch.evaluation import HeldOutText
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resampled_ratio
from softsearch.extras.claims.verdict import Row
from softsearch.models import Seq2Seq
from softsearch.text import BOS, EOS, PAD

_BATCH = 64  # sentences
_WINDOWS = 512  # windows in a batch


def losses_by_history(
    inspected: Inspected, text: HeldOutText, _: Path, *, ends: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yields rows of the loss (nats per token) by ``history``, gold or own, and ``position`` in the reference.

    Positions are grouped: from 1 to ``ends[0]``, and so on; ``all`` is all of them. ``sentences`` are those with tokens
    there.
    """
    model = inspected.model
    src, tgt = ([np.asarray(ids) for ids in side] for side in text.encode(inspected.tokenizers))
    parts = []
    for start in range(0, len(src), _BATCH):
        part = slice(start, start + _BATCH)
        targets = pad(tgt[part], bos=True)
        both = torch.stack([read_losses(model, pad(src[part]), targets, own=own) for own in (False, True)])
        position = torch.arange(1, targets.shape[1]).expand(targets[:, 1:].shape)
        parts.append(torch.cat((position[None], both))[:, targets[:, 1:] != PAD])  # [3, tokens]
    position, *losses = torch.cat(parts, dim=1).numpy()
    sentence = _sentence_of_tokens(tgt)
    groups = {
        f"{first + 1:02}-{last:02}": (position > first) & (position <= last) for first, last in pairwise((0, *ends))
    }
    for group, inside in {**groups, "all": position > 0}.items():
        for history, values in zip(("gold", "own"), losses, strict=True):
            yield {"history": history, "position": group, **_loss(values[inside], sentence[inside], len(tgt))}


def _sentence_of_tokens(tgt: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Returns the number of the sentence of each token, EOS included."""
    return np.repeat(np.arange(len(tgt)), [len(ids) + 1 for ids in tgt])


def _loss(losses: NDArray[np.floating], sentence: NDArray[np.int64], sentences: int) -> Row:
    """Returns the mean loss of tokens, each of a sentence with this number, and that of resampled sentences."""
    sums, tokens = (np.bincount(sentence, weights, minlength=sentences) for weights in (losses, None))
    return resampled_ratio("loss", sums, tokens)


@torch.no_grad()
def read_losses(model: Seq2Seq, src: Tensor, tgt: Tensor, *, own: bool) -> Tensor:
    """Returns -log p of each reference token ``[batch, tgt_len]`` after reference tokens or the model's ``own``.

    ``tgt`` is ``[batch, tgt_len + 1]`` with BOS and EOS. Own tokens are the most probable ones except EOS, so that the
    history is as long as in the reference.
    """
    state, read, losses = model.encode(src), tgt[:, 0], []
    for target in tgt[:, 1:].unbind(1):
        logits, _, state = model.decoder.step(read, state)
        log_probs = logits.log_softmax(-1)
        losses.append(-log_probs.gather(1, target[:, None])[:, 0])
        read = log_probs.index_fill(1, torch.tensor([PAD, BOS, EOS]), -torch.inf).argmax(1) if own else target
    return torch.stack(losses, dim=1)


def losses_by_context(
    inspected: Inspected, text: HeldOutText, _: Path, *, contexts: Sequence[int], sentences: int
) -> Iterator[dict[str, Any]]:
    """Yields rows of the loss (nats per token) and perplexity by ``context``, the number of tokens read, or ``all``.

    The predicted tokens are always the same: those of the first ``sentences``, EOS included.
    """
    model = inspected.model
    src, tgt = ([np.asarray(ids) for ids in side[:sentences]] for side in text.encode(inspected.tokenizers))
    sources, targets = pad(src), pad(tgt, bos=True)
    named: list[tuple[int | str, int]] = [*((context, context) for context in contexts), ("all", targets.shape[1])]
    for name, context in named:
        row = _loss(cut_losses(model, sources, targets, context).numpy(), _sentence_of_tokens(tgt), len(tgt))
        yield {"context": name, **row, "perplexity": float(np.exp(row["loss"]))}


@torch.no_grad()
def cut_losses(model: Seq2Seq, src: Tensor, tgt: Tensor, context: int) -> Tensor:
    """Returns -log p of the tokens of ``tgt`` ``[batch, len]``, except BOS and padding, given ``context`` tokens.

    The model reads them from its first state; BOS is one of them only if it is near enough.
    """
    rows, places = (tgt[:, 1:] != PAD).nonzero().unbind(1)  # of the last token read
    width = min(context, tgt.shape[1])
    first = (places - context + 1).clamp(min=0)
    index = first[:, None] + torch.arange(width)  # [windows, width]
    windows = torch.where(index <= places[:, None], tgt[rows[:, None], index.clamp(max=tgt.shape[1] - 1)], PAD)
    losses = []
    for part in torch.arange(len(rows)).split(_WINDOWS):
        logits = model(src[rows[part]], windows[part])
        last = logits[torch.arange(len(part)), (places - first)[part]]
        targets = tgt[rows[part], places[part] + 1]
        losses.append(-last.log_softmax(-1).gather(1, targets[:, None])[:, 0])
    return torch.cat(losses)
