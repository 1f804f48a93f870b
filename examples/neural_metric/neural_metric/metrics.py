"""Metrics of neural models, which rate each translation with its source and its reference; a text has the mean."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from softsearch import ConfigError
from softsearch.data import TextForm
from softsearch.evaluation import Metric
from softsearch.ranges import AtLeastOne, Count

_SCORE = 250089  # <extra_id_10> of mT5, whose logit is MetricX's score
_MAX_TOKENS = 1536  # as MetricX-24 was trained


class _Rated(Metric):
    """The mean of the ratings of a model, which is loaded when the first translations are rated."""

    needs_sources = True
    package = ""  # that has the model's code

    def __init__(self, model: str) -> None:
        if find_spec(self.package) is None:
            raise ConfigError(f"{type(self).__name__} needs the package {self.package}; see examples/neural_metric")
        self.model, self.signature = model, f"model:{model}"

    def for_text(self, text_form: TextForm, tgt_lang: str) -> Metric | None:
        """None for text that is lower-cased and tokenised, of which these models know nothing."""
        return None if text_form == "lc_tok" else self

    @abstractmethod
    def rate(self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> Sequence[float]:
        """A rating of each translation."""

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] = ()
    ) -> ArrayLike:
        """The rating, and 1."""
        return np.array([(rating, 1) for rating in self.rate(sources, hypotheses, references)]).reshape(-1, 2)

    def score(self, sums: NDArray[np.float64]) -> float:
        """The mean."""
        return float(sums[0] / max(sums[1], 1))


class Comet(_Rated):
    """COMET (Rei et al. 2020, arXiv:2009.09025; the default model: Rei et al. 2022, 2022.wmt-1.52).

    Args:
        model: its name in the hub, or a file ``checkpoints/model.ckpt`` in a folder with
            ``hparams.yaml``. COMET unpickles it: take it from those whom you trust.
        batch_size: sentences.
        gpus: 0 rates on the CPU.
    """

    title, package = "COMET", "comet"

    def __init__(self, *, model: str = "Unbabel/wmt22-comet-da", batch_size: AtLeastOne = 16, gpus: Count = 0) -> None:
        super().__init__(model)
        self.batch_size, self.gpus = batch_size, gpus

    @cached_property
    def scorer(self) -> Any:
        """The model, downloaded if it is not a file."""
        from comet import download_model, load_from_checkpoint

        return load_from_checkpoint(self.model if Path(self.model).is_file() else download_model(self.model))

    def rate(self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> Sequence[float]:
        """Ratings, of which higher ones are better."""
        triples = zip(sources, hypotheses, references, strict=True)
        samples = [{"src": source, "mt": hypothesis, "ref": reference} for source, hypothesis, reference in triples]
        rated = self.scorer.predict(samples, batch_size=self.batch_size, gpus=self.gpus, progress_bar=False)
        ratings: Sequence[float] = rated["scores"]
        return ratings


class MetricX(_Rated):
    """MetricX-24 (Juraska et al. 2024, 2024.wmt-1.35): predicted errors, 0 to 25.

    The model is mT5 with one step of its decoder, as in https://github.com/google-research/metricx.

    Args:
        model: its name in the hub, or a folder.
        tokenizer: that of the mT5 of its size, likewise.
        batch_size: sentences.
        device: of PyTorch.
    """

    title, package, higher_is_better, limits = "MetricX", "transformers", False, (0.0, 25.0)

    def __init__(
        self,
        *,
        model: str = "google/metricx-24-hybrid-large-v2p6",
        tokenizer: str = "google/mt5-large",
        batch_size: AtLeastOne = 16,
        device: str = "cpu",
    ) -> None:
        super().__init__(model)
        self.tokenizer, self.batch_size, self.device = tokenizer, batch_size, device

    @cached_property
    def scorer(self) -> tuple[Any, Any]:
        """The model and its tokenizer, downloaded if they are not folders."""
        from transformers import AutoTokenizer, MT5ForConditionalGeneration

        model = MT5ForConditionalGeneration.from_pretrained(self.model).to(self.device).eval()
        return model, AutoTokenizer.from_pretrained(self.tokenizer)

    @torch.inference_mode()
    def rate(self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> Sequence[float]:
        """Ratings, of which lower ones are better."""
        model, tokenizer = self.scorer
        triples = zip(sources, hypotheses, references, strict=True)
        texts = [f"source: {src} candidate: {hyp} reference: {ref}" for src, hyp, ref in triples]
        ratings: list[float] = []
        for start in range(0, len(texts), self.batch_size):
            batch = [
                tokenizer(text, max_length=_MAX_TOKENS, truncation=True)["input_ids"][:-1]  # without </s>
                for text in texts[start : start + self.batch_size]
            ]
            ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(each) for each in batch], batch_first=True)
            lengths = torch.tensor([[len(each)] for each in batch])
            mask = (torch.arange(ids.shape[1]) < lengths).long()
            first = torch.zeros((len(batch), 1), dtype=torch.int64)
            inputs = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": first}
            logits = model(**{name: tensor.to(self.device) for name, tensor in inputs.items()}).logits
            ratings += logits[:, 0, _SCORE].float().clamp(0, 25).tolist()
        return ratings
