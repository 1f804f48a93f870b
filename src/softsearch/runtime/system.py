"""Systems that translate: a bundle, a checkpoint opened by the lab, or an ensemble of either."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from softsearch.runtime.bundle import Bundle
from softsearch.runtime.line_encoder import open_tokenizers
from softsearch.runtime.providers import Provider
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.forced_decoding import PairScore, score_pairs
from softsearch.search.interface import StepFunction
from softsearch.text.languages import languages_of
from softsearch.text.tokenizer import Tokenizers

BATCH_TOKENS = 1024  # maximum source tokens in a batch, padding included


@dataclass(frozen=True, kw_only=True)
class System:
    """A model, or several that translate together, with tokenizers."""

    name: str  # unique among systems opened together
    origin: str  # path of the checkpoint or bundle; an ensemble's are listed
    backend: str  # torch, onnx or mixed
    architecture: str  # the model config's name, such as rnnsearch; an ensemble's are listed
    step_fn: StepFunction
    tokenizers: Tokenizers
    parameters: int
    size_bytes: int  # size of the weights, or of all files of a bundle
    text_form: Literal["plain", "lc_tok"]
    src_lang: str
    tgt_lang: str
    source: Any = None  # the ParallelSource that a checkpoint was trained on; None for a bundle
    metrics: Mapping[str, Any] = field(default_factory=dict)  # a checkpoint's configured metrics, by name
    described: str = ""  # the origin of the weights, for people: the path and the step
    guided: bool = False  # whether its attention was trained on links; False for a bundle
    max_src_tokens: int | None = None  # per sentence, EOS included; None without a limit
    max_length_factor: float = 0.0  # of the search that a checkpoint was tested with, or that a bundle recommends

    def score(self, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]) -> list[PairScore]:
        """The log probability of every translation, given as token ids without EOS.

        Tokens' log probabilities are in the order of the text, EOS last.

        Raises:
            InputError: the numbers of sources and translations differ, or the model returned NaN.
        """
        starts = [*map(languages_of(self.tokenizers[0]).start, src)]  # these tokens have probability 1
        begun = [[*start, *ids] for start, ids in zip(starts, tgt, strict=True)] if any(starts) else tgt
        scores = score_pairs(self.step_fn, src, begun, batch_tokens=BATCH_TOKENS)
        if any(starts):
            pairs = zip(scores, starts, strict=True)
            scores = [score._replace(token_log_probs=score.token_log_probs[len(start) :]) for score, start in pairs]
        if not self.tokenizers[1].reverse:
            return scores
        return [s._replace(token_log_probs=(*s.token_log_probs[-2::-1], s.token_log_probs[-1])) for s in scores]


def open_bundle(bundle: Bundle | Path | str, provider: Provider = "cpu") -> System:
    """Opens a bundle, given as a Bundle or its folder, as a system.

    Raises:
        BundleError: it is missing, altered or inconsistent, or has a newer format.
        ConfigError: ONNX Runtime does not use the provider.
    """
    if not isinstance(bundle, Bundle):
        bundle = Bundle.open(bundle)
    manifest = bundle.manifest
    trained = manifest.trained
    parameters = trained("parameters").replace(",", "")
    return System(
        name=bundle.path.resolve().name,
        origin=str(bundle.path),
        backend="onnx",
        architecture=trained("model") or "unknown",
        step_fn=OnnxStepFunction(bundle, provider),
        tokenizers=open_tokenizers(bundle),
        parameters=int(parameters) if re.fullmatch("[0-9]{1,15}", parameters) else 0,
        size_bytes=sum(entry.size for entry in manifest.files.values()),
        text_form=manifest.text_form,
        src_lang=trained("config.data.src_lang"),
        tgt_lang=trained("config.data.tgt_lang"),
        described=str(bundle.path),
        max_src_tokens=manifest.max_src_tokens,
        max_length_factor=manifest.search["max_length_factor"],
    )


def without_alignments(system: System) -> System:
    """Returns the same system; a bundle's steps then do not fetch attention weights."""
    step_fn = system.step_fn
    return replace(system, step_fn=step_fn.without_alignments()) if isinstance(step_fn, OnnxStepFunction) else system
