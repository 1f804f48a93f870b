"""Systems that translate: a bundle, a checkpoint opened by the lab, or an ensemble of either."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from softsearch.runtime.bundle import Bundle
from softsearch.runtime.line_encoder import open_tokenizers
from softsearch.runtime.providers import Provider
from softsearch.search.interface import OptionalAlignments, StepFunction
from softsearch.text.languages import languages_of
from softsearch.text.tokenizer import Tokenizers

if TYPE_CHECKING:
    from softsearch.search.forced_decoding import PairScore

BATCH_TOKENS = 1024  # maximum source tokens in a batch, padding included


@dataclass(frozen=True, kw_only=True)
class System:
    """A model, or several that translate together, with tokenizers."""

    origin: str  # path of the checkpoint or bundle; an ensemble's are listed
    step_fn: StepFunction
    tokenizers: Tokenizers
    text_form: Literal["plain", "lc_tok"]
    src_lang: str
    tgt_lang: str
    max_src_tokens: int | None = None  # per sentence, EOS included; None without a limit

    def score(self, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]) -> "list[PairScore]":
        """The log probability of every translation, given as token ids without EOS.

        Tokens' log probabilities are in the order of the text, EOS last.

        Raises:
            InputError: the numbers of sources and translations differ, or the model returned NaN.
        """
        from softsearch.search.forced_decoding import score_pairs  # translations need none of it

        starts = [*map(languages_of(self.tokenizers[0]).start, src)]  # these tokens have probability 1
        begun = [[*start, *ids] for start, ids in zip(starts, tgt, strict=True)] if any(starts) else tgt
        scores = score_pairs(self.step_fn, src, begun, batch_tokens=BATCH_TOKENS)
        if any(starts):
            pairs = zip(scores, starts, strict=True)
            scores = [score._replace(token_log_probs=score.token_log_probs[len(start) :]) for score, start in pairs]
        if not self.tokenizers[1].reverse:
            return scores
        return [s._replace(token_log_probs=(*s.token_log_probs[-2::-1], s.token_log_probs[-1])) for s in scores]


S = TypeVar("S", bound=System)


def open_bundle(bundle: Bundle | Path | str, provider: Provider = "cpu") -> System:
    """Opens a bundle, given as a Bundle or its folder, as a system.

    Raises:
        BundleError: it is missing, altered or inconsistent, or has a newer format.
        ConfigError: ONNX Runtime does not use the provider.
    """
    from softsearch.runtime.session import OnnxStepFunction  # checkpoints need no ONNX Runtime

    if not isinstance(bundle, Bundle):
        bundle = Bundle.open(bundle)
    manifest = bundle.manifest
    return System(
        origin=str(bundle.path),
        step_fn=OnnxStepFunction(bundle, provider),
        tokenizers=open_tokenizers(bundle),
        text_form=manifest.text_form,
        src_lang=manifest.trained("config.data.src_lang"),
        tgt_lang=manifest.trained("config.data.tgt_lang"),
        max_src_tokens=manifest.max_src_tokens,
    )


def without_alignments(system: S) -> S:
    """Returns the same system; a bundle's steps then do not fetch attention weights."""
    step_fn = system.step_fn
    return replace(system, step_fn=step_fn.without_alignments()) if isinstance(step_fn, OptionalAlignments) else system
