"""Heads: alignments are the attention of one head of a Transformer, which writes the translations once more."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

from softsearch.option import Option
from softsearch.runtime.stages.stage import Searched, Stage

if TYPE_CHECKING:
    from softsearch.runtime.translation import Candidates


@dataclass(frozen=True, kw_only=True)
class HeadStage(Stage):
    """Replaces alignments by those of a head."""

    unavailable: ClassVar = {"libretranslate": "its answers have no alignments"}

    head: Annotated[
        str | None, Option("alignments are those of this head of a Transformer", "layer 0, head 0", metavar="NAME")
    ] = None

    def written(self, candidates: "Candidates", searched: Searched) -> "Candidates":
        """Replaces the alignments; raises ConfigError if the model is an ensemble, or has no such head."""
        from softsearch.runtime.heads import check_head  # here, because --help needs none of it
        from softsearch.runtime.session import OnnxStepFunction
        from softsearch.runtime.system import BATCH_TOKENS
        from softsearch.search.forced_decoding import forced_alignments

        assert self.head is not None
        system, step_fn = searched.system, searched.system.step_fn
        check_head(self.head, step_fn.heads if isinstance(step_fn, OnnxStepFunction) else (), system.origin)
        of_head = cast(OnnxStepFunction, step_fn).with_head(self.head)
        every = [(each.part.ids, each.hypothesis) for n_best in candidates for each in n_best]
        src, tgt = [ids for ids, _ in every], [hypothesis.tokens for _, hypothesis in every]
        weights = forced_alignments(of_head, src, tgt, batch_tokens=BATCH_TOKENS) or []
        hypotheses = iter(replace(h, alignments=w[: h.length]) for (_, h), w in zip(every, weights, strict=True))
        return [[each._replace(hypothesis=next(hypotheses)) for each in n_best] for n_best in candidates]
