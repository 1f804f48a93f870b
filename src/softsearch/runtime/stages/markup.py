"""Markup: the text of XML or HTML is translated, and its tags are put where the model attends to their words."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

from softsearch.errors import ConfigError
from softsearch.option import Option
from softsearch.runtime.stages.paragraphs import ONE_SENTENCE, join_sentences, sentences_of, split_sentences
from softsearch.runtime.stages.stage import Stage
from softsearch.search.options import OutputOptions
from softsearch.search.rerank import Rerank

if TYPE_CHECKING:
    from softsearch.runtime.line_encoder import LineEncoder
    from softsearch.runtime.options import Search
    from softsearch.runtime.paragraphs import SplitText
    from softsearch.runtime.translation import Lines, Translation


@dataclass(frozen=True, kw_only=True)
class MarkupStage(Stage):
    """Takes the tags out of lines, and puts them into the translations.

    The text of an element with others around it is a segment, which is translated whole unless it is split.
    """

    excludes = ("features", "prefix", "prefixes", "alignments", "head")
    unavailable: ClassVar = {"stream": ONE_SENTENCE, "page": "it shows attention between words"}

    markup: Annotated[
        bool, Option("lines are XML or HTML: translate their text and put the tags back into it", True)
    ] = False
    sentences: bool = False  # whether segments are split into sentences, as by ``paragraphs``
    html: bool = False  # whether it is read as browsers do, or with an error for a tag that is not closed

    def before(self, lines: "Lines", encoder: "LineEncoder") -> "tuple[Lines, Sequence[SplitText]]":
        """Reads tags; raises InputError if one is wrong, and ConfigError if the model does not read such text."""
        from softsearch.runtime.markup import read_markup

        if encoder.tokenizers[0].reads_several_sources:
            raise ConfigError("the model reads several sources, which tags separate already; leave out markup")
        if encoder.tokenizers[0].reads_symbols:
            raise ConfigError("the model reads tags as symbols and keeps them without markup; leave out markup")
        split = (lambda texts: split_sentences(texts, encoder)) if self.sentences else None
        texts = read_markup(lines.texts, next(iter(lines.numbers), 1), encoder.tag, split, html=self.html)
        return sentences_of(texts, lines), texts

    def search(self, strategy: "Search") -> "Search":
        """Makes the search return alignments, by which the tags find their places."""
        changed = copy(strategy)  # a reranker has the search that writes
        writer = changed.search if isinstance(changed, Rerank) else changed
        if not isinstance(writer, OutputOptions):
            raise ConfigError(f"markup needs alignments, which the search {type(writer).__name__} lacks; change search")
        with_alignments = replace(writer, alignments=True)
        if not isinstance(changed, Rerank):
            return cast("Search", with_alignments)
        changed.search = with_alignments
        return changed

    def after(self, translations: "list[Translation]", kept: "Sequence[SplitText]") -> "list[Translation]":
        """Joins the translations of the sentences of each line, with the tags."""
        return join_sentences(kept, translations)
