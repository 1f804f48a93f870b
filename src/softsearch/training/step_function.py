"""A PyTorch model as a StepFunction: only the k best candidates of each row leave the device."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from softsearch.data.batch import pad
from softsearch.models.interface import DecoderState, Seq2Seq
from softsearch.search.interface import Candidates


class TorchStepFunction:
    """Search over a :class:`Seq2Seq`, which must be in evaluation mode."""

    def __init__(self, model: Seq2Seq) -> None:
        self.model = model
        self.vocab_size = model.tgt_vocab_size
        self.device = next(model.parameters()).device

    @torch.inference_mode()
    def start(self, src: Sequence[Sequence[int]]) -> DecoderState:
        """Encodes the sentences (with EOS)."""
        tokens = pad([np.asarray(sentence[:-1], dtype=np.int64) for sentence in src])
        return self.model.encode(tokens.to(self.device))

    @torch.inference_mode()
    def step(self, tokens: NDArray[np.int64], state: DecoderState, k: int) -> tuple[Candidates, DecoderState]:
        """One step of all rows."""
        output = self.model.decoder.step(torch.from_numpy(tokens).to(self.device), state)
        best = output.logits.float().log_softmax(-1).topk(k)
        alignments = output.alignments.float().cpu().numpy()
        return Candidates(best.values.cpu().numpy(), best.indices.cpu().numpy(), alignments), output.state

    @torch.inference_mode()
    def select(self, state: DecoderState, rows: NDArray[np.int64]) -> DecoderState:
        """See StepFunction."""
        return state.select(torch.from_numpy(rows).to(self.device))

    @torch.inference_mode()
    def keep(self, state: DecoderState, sentences: NDArray[np.int64]) -> DecoderState:
        """See StepFunction."""
        return state.keep(torch.from_numpy(sentences).to(self.device))
