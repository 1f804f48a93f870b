"""Unknown words of models of words: each <unk> is replaced by the translation of the word with the most attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from softsearch.errors import ConfigError
from softsearch.option import Option
from softsearch.runtime.stages.stage import Searched, Stage
from softsearch.search.forced_decoding import forced_alignments
from softsearch.search.interface import Hypothesis, Sentences
from softsearch.text.vocabulary import UNK

if TYPE_CHECKING:
    from softsearch.runtime.system import System
    from softsearch.runtime.translation import Candidates


@dataclass(frozen=True, kw_only=True, eq=False)
class UnknownWordStage(Stage):
    """Replaces unknown words by those of a dictionary, or by the source's words."""

    replace_unknown: Annotated[
        bool | Mapping[str, str],
        Option("replace each unknown word by the source word with the most attention, or its translation", True),
    ] = False

    def written(self, candidates: "Candidates", searched: Searched) -> "Candidates":
        """Replaces the words; raises ConfigError if the model does not use words, or has no attention."""
        dictionary = self.replace_unknown if isinstance(self.replace_unknown, Mapping) else {}
        every = list(chain.from_iterable(candidates))
        sources, src = [each.part.text for each in every], [each.part.ids for each in every]
        texts = iter(with_known_words(searched.system, sources, src, [each.hypothesis for each in every], dictionary))
        return [[each._replace(text=next(texts)) for each in n_best] for n_best in candidates]


def with_known_words(
    system: "System",
    sources: Sequence[str],
    src: Sentences,
    hypotheses: Sequence[Hypothesis],
    dictionary: Mapping[str, str],
) -> list[str]:
    """The texts of a system's translations, one for each source, given as text and as token ids.

    Unknown words are replaced, see ``UnknownWords``. The attention for this is computed
    again by forced decoding, so it works after any search.

    Raises:
        ConfigError: the system does not use words, or has no attention.
    """
    from softsearch.runtime.system import BATCH_TOKENS  # here, because --help needs no model
    from softsearch.text.unknown_words import UnknownWords

    texts = [system.tokenizers[1].decode(hypothesis.tokens) for hypothesis in hypotheses]
    replace_unknown = UnknownWords(*system.tokenizers, dictionary)
    if not system.step_fn.has_attention:
        raise ConfigError(
            f"{system.origin} has no attention, which is needed to replace unknown words; leave the option out"
        )
    indices = [index for index, hypothesis in enumerate(hypotheses) if UNK in hypothesis.tokens]
    tgt = [hypotheses[index].tokens for index in indices]
    matrices = forced_alignments(system.step_fn, [src[index] for index in indices], tgt, batch_tokens=BATCH_TOKENS)
    for index, tokens, matrix in zip(indices, tgt, matrices or [], strict=True):
        texts[index] = replace_unknown(sources[index], tokens, matrix)
    return texts
