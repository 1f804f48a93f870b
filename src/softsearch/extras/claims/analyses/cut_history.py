"""The loss of a language model that reads the last tokens alone."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsearch.data.dataset import pad
from softsearch.evaluation.inference import torch_model
from softsearch.evaluation.test_set import HeldOutText
from softsearch.models.interface import Seq2Seq
from softsearch.runtime.system import System
from softsearch.text.vocabulary import PAD

_BATCH = 512  # windows


def losses_by_context(
    system: System, text: HeldOutText, _: Path, *, contexts: Sequence[int], sentences: int
) -> Iterator[dict[str, Any]]:
    """Rows of the loss (nats a token) and perplexity by ``context``, the last tokens that are read; ``all`` are all.

    What is predicted are the same tokens, those of the first ``sentences`` and their ends.
    """
    model = torch_model(system.step_fn)
    src, tgt = ([np.asarray(ids) for ids in side[:sentences]] for side in text.encode(system.tokenizers))
    sources, targets = pad(src), pad(tgt, bos=True)
    named: list[tuple[int | str, int]] = [*((context, context) for context in contexts), ("all", targets.shape[1])]
    for name, context in named:
        loss = float(cut_losses(model, sources, targets, context).mean())
        yield {"context": name, "loss": loss, "perplexity": float(np.exp(loss))}


@torch.no_grad()
def cut_losses(model: Seq2Seq, src: Tensor, tgt: Tensor, context: int) -> Tensor:
    """-log p of the real tokens of ``tgt`` ``[batch, len]`` after BOS, row by row, after at most ``context`` tokens.

    The model reads them from its first state; BOS is among them only where it is as near.
    """
    rows, places = (tgt[:, 1:] != PAD).nonzero().unbind(1)  # of the last token that is read
    width = min(context, tgt.shape[1])
    first = (places - context + 1).clamp(min=0)
    index = first[:, None] + torch.arange(width)  # [windows, width]
    windows = torch.where(index <= places[:, None], tgt[rows[:, None], index.clamp(max=tgt.shape[1] - 1)], PAD)
    losses = []
    for part in torch.arange(len(rows)).split(_BATCH):
        logits = model(src[rows[part]], windows[part])
        last = logits[torch.arange(len(part)), (places - first)[part]]
        targets = tgt[rows[part], places[part] + 1]
        losses.append(-last.log_softmax(-1).gather(1, targets[:, None])[:, 0])
    return torch.cat(losses)
