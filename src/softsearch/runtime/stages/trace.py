"""Traces: a record of the beam search for each part of a line, which is searched again in single steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from softsearch.option import Option
from softsearch.runtime.stages.stage import Searched, Stage
from softsearch.search.interface import SearchStrategy, Sentences
from softsearch.text.vocabulary import with_eos

if TYPE_CHECKING:
    from softsearch.runtime.options import Search
    from softsearch.runtime.system import System
    from softsearch.runtime.translation import Candidates
    from softsearch.search.terms import Terms


@dataclass(frozen=True, kw_only=True)
class TraceStage(Stage):
    """Records the search for translations."""

    unavailable: ClassVar = {"libretranslate": "its answers have no such field"}

    trace: Annotated[bool, Option("return the steps of the beam search", True)] = False

    @property
    def is_slow(self) -> bool:
        """Each line is searched in single steps."""
        return True

    def search(self, strategy: "Search") -> "Search":
        """Refuses a search that is neither greedy nor a beam search."""
        from softsearch.search.trace import traceable

        traceable(strategy)
        return strategy

    def written(self, candidates: "Candidates", searched: Searched) -> "Candidates":
        """Adds its record to the best translation of each part."""
        sources = [part.text for part in searched.parts]
        traces = trace_parts(
            searched.system, searched.strategy, sources, searched.src, searched.prefixes, searched.terms
        )
        pairs = zip(candidates, traces, strict=True)
        return [[best._replace(trace=trace), *others] for (best, *others), trace in pairs]


def trace_parts(
    system: "System",
    search: SearchStrategy,
    sources: Sequence[str],
    src: Sentences,
    prefixes: Sentences | None = None,
    terms: "Sequence[Terms | None] | None" = None,
) -> Iterator[dict[str, Any]]:
    """Lazily yields traces of a system's search for sources, given as text and as token ids.

    Raises:
        ConfigError: the search is neither greedy nor a beam search.
    """
    from softsearch.search.trace import trace_search, traceable  # here, because --help needs none of it

    beam, (src_tokenizer, tgt_tokenizer) = traceable(search), system.tokenizers
    names = tgt_tokenizer.names()

    def trace(text: str, ids: Sequence[int], prefix: Sequence[int], needed: "Terms | None") -> dict[str, Any]:
        source = {"source": text, "src_pieces": src_tokenizer.read_pieces(text, with_eos(ids))}
        return source | trace_search(system.step_fn, beam, ids, names, prefix=prefix, terms=needed)

    return map(trace, sources, src, prefixes or repeat(()), terms or repeat(None))
